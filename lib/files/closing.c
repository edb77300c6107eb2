/* SPDX-License-Identifier: MIT */
#include "closing.h"

#include <linux/close_range.h>
#include <sys/syscall.h>

#include "guard.h"

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

void flexsc__closing_begin(const struct flexsc_entry *entry)
{
	if (flexsc__call_info(entry->nr)->closes != CLOSES_SHUT)
		flexsc__closing_each(entry->nr, entry->args,
				     flexsc__guard_closing);
}

void flexsc__closing_end(const struct flexsc_entry *entry)
{
	flexsc__closing_each(entry->nr, entry->args, flexsc__guard_closed);
}
