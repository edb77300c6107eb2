/* SPDX-License-Identifier: MIT */
#include "closing.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/resource.h>

#include "lib/base/ask.h"
#include "guard.h"

static void closing_one(uint64_t fd, void (*each)(uint32_t fd))
{
	if (fds_is_marked((uint32_t)fd))
		each((uint32_t)fd);
}

/*
 * Will a dup2() or dup3() with these arguments fail, and leave the descriptor "to"
 * open?
 */
static bool dup_fails(const struct call_info *row, const __u64 *args)
{
	struct rlimit limit = { .rlim_cur = UINT32_MAX };

	ask(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, PTR(&limit), 0, 0);
	return (row->nargs > 2 && args[2] & ~(__u64)O_CLOEXEC) ||
	       (uint32_t)args[1] >= limit.rlim_cur ||
	       ask(SYS_fcntl, (uint32_t)args[0], F_GETFD, 0, 0, 0, 0) < 0;
}

/*
 * Report only a close_range() without flags. With CLOSE_RANGE_UNSHARE, other threads'
 * descriptors stay open. With CLOSE_RANGE_CLOEXEC, all stay open until exec.
 */
static void closing_range(const __u64 *args, void (*each)(uint32_t fd))
{
	const uint32_t last = (uint32_t)args[1];

	if ((uint32_t)args[2])
		return;
	for (uint64_t fd = flexsc__fds_next((uint32_t)args[0], last); fd <= last;
	     fd = flexsc__fds_next(fd + 1, last))
		closing_one(fd, each);
}

void flexsc__closing_begin_alone(const struct flexsc_entry *entry)
{
	const struct call_info *row = flexsc__call_info(entry->nr);
	const __u64 *args = entry->args;

	switch ((enum call_closes)row->closes) {
	case CLOSES_ONE:
		closing_one(args[0], flexsc__guard_closing);
		break;
	case CLOSES_OTHER:
		if ((uint32_t)args[0] != (uint32_t)args[1] &&
		    fds_is_marked((uint32_t)args[1]) && !dup_fails(row, args))
			flexsc__guard_closing((uint32_t)args[1]);
		break;
	case CLOSES_RANGE:
		closing_range(args, flexsc__guard_closing);
		break;
	case CLOSES_SHUT:
	case CLOSES_NOTHING:
		break;
	}
}

void flexsc__closing_end_alone(const struct flexsc_entry *entry, int64_t ret)
{
	const unsigned int closes = flexsc__call_info(entry->nr)->closes;

	if (closes == CLOSES_ONE)
		/* close() closes the descriptor even if it returns an error. */
		closing_one(entry->args[0], flexsc__guard_closed);
	else if (ret < 0)
		return;
	else if (closes == CLOSES_SHUT)
		closing_one(entry->args[0], flexsc__guard_shut);
	else if (closes == CLOSES_RANGE)
		closing_range(entry->args, flexsc__guard_closed);
	else if (closes != CLOSES_NOTHING)
		closing_one(entry->args[closes == CLOSES_OTHER],
			    flexsc__guard_closed);
}

/* Returns the descriptor that the call closes; NAMELESS: several descriptors. */
static uint32_t subject(const struct flexsc_entry *entry, unsigned int closes)
{
	return closes == CLOSES_RANGE ? NAMELESS :
					(uint32_t)entry->args[closes == CLOSES_OTHER];
}

void flexsc__closing_begin(const struct flexsc_entry *entry)
{
	const unsigned int closes = flexsc__call_info(entry->nr)->closes;

	if (closes != CLOSES_SHUT)
		flexsc__guard_count_closing(subject(entry, closes));
	flexsc__closing_begin_alone(entry);
}

void flexsc__closing_end(const struct flexsc_entry *entry, int64_t ret)
{
	const unsigned int closes = flexsc__call_info(entry->nr)->closes;

	flexsc__closing_end_alone(entry, ret);
	if (closes != CLOSES_SHUT)
		flexsc__guard_count_closed(subject(entry, closes));
}
