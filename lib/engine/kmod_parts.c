/* SPDX-License-Identifier: MIT */
/*
 * The kmod engine's calls that may take several parts, such as long writes. Each has
 * guards (loop/guarded.h), because its remainder enters the kernel again.
 *
 * All parts must go to one file. But until the module looks the descriptor up, another
 * thread may replace it by another file. So such a thread first puts the guard's
 * duplicate into the arguments of entries that haven't begun. Then it waits until
 * entries that have begun are past that lookup.
 *
 * kmod->parts protects the routes, guards and arguments of these entries.
 */
#include "lib/calls/partial.h"
#include "lib/files/closing.h"
#include "kmod.h"

/*
 * How often, and at what interval in ns, a closing thread checks whether entries are past
 * the lookup. After the last check it closes the descriptor in any case, because a long
 * call may be past the lookup without having blocked.
 */
#define LOOKS_NS	20000
#define LOOKS		250U

static bool is_in_parts(struct flexsc_loop *loop, uint32_t index)
{
	const struct call *call = call_of(loop, index);

	return call_is_guarded(call) && call->route == BY_KERNEL_IN_PARTS;
}

/* May the call that has this name still have to look up its descriptor? */
static bool may_look_up(struct kmod *kmod, uint32_t index, uint64_t name)
{
	const struct flexsc_entry *entry = entry_of(kmod->loop, index);
	bool may;

	lock(&kmod->parts);
	may = is_in_parts(kmod->loop, index) &&
	      call_of(kmod->loop, index)->name == name &&
	      entry_status(entry) == FLEXSC_BUSY &&
	      __atomic_load_n(&entry->ret, __ATOMIC_RELAXED) != FLEXSC_BLOCKED;
	unlock(&kmod->parts);
	return may;
}

static void await_lookup(struct kmod *kmod, uint32_t index, uint64_t name,
			 unsigned int *looks)
{
	static const struct timespec moment = { 0, LOOKS_NS };

	for (; *looks && may_look_up(kmod, index, name); --*looks)
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
}

/* Let the entry use the guard's duplicate. True: it used the program's descriptor. */
static bool renew(struct kmod *kmod, uint32_t index, uint64_t *name)
{
	bool changes = false;

	lock(&kmod->parts);
	if (is_in_parts(kmod->loop, index)) {
		*name = call_of(kmod->loop, index)->name;
		changes = flexsc__call_renew(kmod->loop, index);
	}
	unlock(&kmod->parts);
	return changes;
}

static void closing(struct guard_watcher *watcher, uint32_t fd,
		    struct guard *guard)
{
	struct kmod *kmod = (struct kmod *)((char *)watcher -
					    offsetof(struct kmod, watcher));
	const uint32_t n = __atomic_load_n(&kmod->loop->entries.count,
					   __ATOMIC_RELAXED);
	unsigned int looks = LOOKS;
	uint64_t name = 0;

	(void)fd;
	(void)guard;
	for (uint32_t i = 0; i < n; i++)
		if (call_is_guarded(call_of(kmod->loop, i)) &&
		    renew(kmod, i, &name))
			await_lookup(kmod, i, name, &looks);
}

static void closed(struct guard_watcher *watcher, uint32_t fd, bool shut)
{
	(void)watcher;
	(void)fd;
	(void)shut;
}

static COLD void watch(struct kmod *kmod)
{
	kmod->watches = true;
	kmod->watcher = (struct guard_watcher){ .closing = closing,
						.closed = closed };
	flexsc__guard_watch(&kmod->watcher);
}

void flexsc__kmod_in_parts(struct flexsc_loop *loop, uint32_t index)
{
	struct kmod *kmod = kmod_of(loop);

	if (!kmod->watches)
		watch(kmod);
	lock(&kmod->parts);
	call_of(loop, index)->route = BY_KERNEL_IN_PARTS;
	flexsc__call_guard(loop, index);
	flexsc__call_renew(loop, index);
	unlock(&kmod->parts);
}

bool flexsc__kmod_keep(struct flexsc_loop *loop, uint32_t index)
{
	struct kmod *kmod = kmod_of(loop);
	bool all;

	lock(&kmod->parts);
	all = flexsc__call_keep(loop, index);
	unlock(&kmod->parts);
	return all;
}

void flexsc__kmod_by_pool(struct flexsc_loop *loop, uint32_t index)
{
	struct call *call = call_of(loop, index);

	if (call->route != BY_KERNEL_IN_PARTS) {
		call->route = BY_POOL;
		return;
	}
	lock(&kmod_of(loop)->parts);
	call->route = BY_POOL;
	unlock(&kmod_of(loop)->parts);
}

int64_t flexsc__kmod_finish(struct flexsc_loop *loop, uint32_t index,
			    int64_t ret)
{
	struct kmod *kmod = kmod_of(loop);
	struct call *call = call_of(loop, index);

	if (call->route == BY_KERNEL_CLOSING)
		flexsc__closing_end(entry_of(loop, index), ret);
	if (call->route != BY_KERNEL_IN_PARTS)
		return ret;
	lock(&kmod->parts);
	flexsc__call_unguard(loop, index);
	unlock(&kmod->parts);
	return flexsc__partial_result(entry_of(loop, index), &call->partial,
				      ret);
}
