/* SPDX-License-Identifier: MIT */
#include "handle.h"

#include <errno.h>

#include "loop.h"
#include "multishot.h"
#include "signal.h"

struct multishot *flexsc__cb_multishot(struct flexsc_loop *loop,
				       const struct flexsc_cb *cb)
{
	struct multishot *all = loop->multishots.all.base;
	uint32_t index = multishot_index(cb->handle);

	if (index >= loop->multishots.all.count || all[index].cb != cb)
		return NULL;
	return &all[index];
}

bool flexsc__cb_pending(struct flexsc_loop *loop, const struct flexsc_cb *cb)
{
	/* Atomic, because another thread may be waking the cb. */
	uint64_t handle = __atomic_load_n(&cb->handle, __ATOMIC_RELAXED);
	uint64_t index = handle_index(handle);

	switch (handle_kind(handle)) {
	case HANDLE_CALL:
		return index < loop->calls.count &&
		       call_of(loop, (uint32_t)index)->cb == cb &&
		       call_in_use(loop, (uint32_t)index);
	case HANDLE_STAGED:
		return index < loop->staged.count &&
		       staged_of(loop, (uint32_t)index)->cb == cb;
	case HANDLE_TIMER:
		return index < loop->wheel.timers.count &&
		       wheel_timer(&loop->wheel, (uint32_t)index)->owner ==
			       (uintptr_t)cb;
	case HANDLE_SIGNAL:
		return signal_find(&loop->signal_waits, cb) != NULL;
	case HANDLE_MULTISHOT:
		return flexsc__cb_multishot(loop, cb) != NULL;
	case HANDLE_WOKEN:
	case HANDLE_NONE:
		break;
	}
	return false;
}

int flexsc__post_check(struct flexsc_loop *loop, struct flexsc_cb *cb)
{
	if (!loop)
		return -ENXIO;
	if (loop->stale)
		return -ESTALE;
	if (loop->closing)
		return -ESHUTDOWN;
#ifdef FLEXSC_CHECKS
	if (cb && (flexsc__cb_pending(loop, cb) ||
		   flexsc__wakes_has(&loop->wakes, cb)))
		return -EBUSY;
#else
	(void)cb;
#endif
	return 0;
}
