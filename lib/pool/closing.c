/* SPDX-License-Identifier: MIT */
#include "closing.h"

#include <linux/close_range.h>
#include <sys/syscall.h>

#include "lib/calls/call_info.h"
#include "lib/loop/all.h"
#include "lib/loop/loop.h"
#include "hold.h"

static void closing_one(uint64_t fd, void (*each)(uint32_t fd))
{
	if (fds_is_marked((uint32_t)fd))
		each((uint32_t)fd);
}

void flexsc__closing_each(long nr, const __u64 *args,
			  void (*each)(uint32_t fd))
{
	const uint32_t first = (uint32_t)args[0], second = (uint32_t)args[1];

	switch ((enum call_closes)flexsc__call_info((unsigned int)nr)->closes) {
	case CLOSES_ONE:
	case CLOSES_SHUT:
		closing_one(first, each);
		break;
	case CLOSES_OTHER:
		if (first != second)
			closing_one(second, each);
		break;
	case CLOSES_RANGE:
		if (args[2] & CLOSE_RANGE_CLOEXEC)
			break;
		for (uint64_t fd = flexsc__fds_next(first, second);
		     fd <= second; fd = flexsc__fds_next(fd + 1, second))
			closing_one(fd, each);
		break;
	case CLOSES_NOTHING:
		break;
	}
}

void flexsc__closing_hold(struct flexsc_loop *loop, uint32_t fd)
{
	/* The owner may change it: see loop_notify(). */
	const struct engine *engine =
		__atomic_load_n(&loop->engine, __ATOMIC_ACQUIRE);
	struct pool *pool = loop_pool(loop);

	if (engine->hold)
		engine->hold(loop, (int)fd);
	if (pool)
		flexsc__hold_fd(pool, (int)fd);
}

void flexsc__closing_closed(struct flexsc_loop *loop, uint32_t fd)
{
	struct pool *pool = loop_pool(loop);

	if (pool)
		flexsc__hold_closed(pool, (int)fd);
}

/*
 * The mark is taken off first: a mark that is set from here on is a call's that
 * has begun to wait since, and flexsc__closing_end() sees it.
 */
static void closing_begin_all(uint32_t fd)
{
	flexsc__fds_unmark(fd);
	flexsc__all_each(flexsc__closing_hold, fd);
}

void flexsc__closing_begin(const struct flexsc_entry *entry)
{
	if (flexsc__call_info(entry->nr)->closes != CLOSES_SHUT)
		flexsc__closing_each(entry->nr, entry->args, closing_begin_all);
}

static void closing_end_all(uint32_t fd)
{
	flexsc__all_each(flexsc__closing_closed, fd);
}

void flexsc__closing_end(const struct flexsc_entry *entry)
{
	flexsc__closing_each(entry->nr, entry->args, closing_end_all);
}
