/* SPDX-License-Identifier: MIT */
/*
 * Attributes of an open file are in this kernel's memory, unless its filesystem has a
 * server. Reading them inline is cheaper than handing the call to another thread.
 * statx() with AT_STATX_DONT_SYNC returns the cached attributes and the mount's number.
 * If that mount is local, these are the call's result. Otherwise a thread that may wait
 * has to make the call.
 */
#include "local_stat.h"

#include <fcntl.h>

#include "lib/base/ask.h"
#include "lib/base/statx.h"
#include "effects.h"
#include "fds.h"
#include "mounts.h"

#define TELLS	(STATX_TYPE | STATX_BLOCKS | STATX_MNT_ID)
#define EXPECTED \
	(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | \
	 AT_STATX_DONT_SYNC)

static enum mount_kind stat_kind(const struct statx *file)
{
	/* An open socket isn't on its mount, even if the socket has a name there. */
	return S_ISSOCK(file->stx_mode) ? MOUNT_LOCAL :
					  flexsc__mount_kind(file);
}

static bool stat_find_local(uint32_t fd)
{
	struct statx file;

	if (fds_known(fd) & FD_LOCAL)
		return true;
	if (ask(SYS_statx, fd, PTR(""), AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		TELLS, PTR(&file), 0) ||
	    stat_kind(&file) == MOUNT_UNKNOWN)
		return false;
	fds_learn(fd, FD_LOCAL);
	flexsc__fds_note_regular(fd, &file);
	return true;
}

static bool stat_make_fstat(const __u64 *a, int64_t *ret)
{
	if (!stat_find_local((uint32_t)a[0]))
		return false;
	*ret = raw_syscall(SYS_fstat, a[0], a[1], 0, 0, 0, 0);
	return true;
}

static bool stat_make_statx(const __u64 *a, int64_t *ret)
{
	const struct statx *file = (const struct statx *)(uintptr_t)a[4];
	enum mount_kind kind;

	if ((int)a[0] < 0 || !(a[2] & AT_EMPTY_PATH) || a[2] & ~(__u64)EXPECTED)
		return false;
	*ret = raw_syscall(SYS_statx, a[0], a[1], a[2] | AT_STATX_DONT_SYNC,
			   a[3] | TELLS, a[4], 0);
	if (*ret)
		return true;
	flexsc__fds_note_regular((uint32_t)a[0], file);
	kind = stat_kind(file);
	if (kind == MOUNT_LAYERED && !(a[2] & AT_STATX_DONT_SYNC))
		*ret = ask(SYS_statx, a[0], a[1], a[2], a[3], a[4], 0);
	return kind != MOUNT_UNKNOWN || a[2] & AT_STATX_DONT_SYNC;
}

bool flexsc__stat_make(const struct flexsc_entry *entry, int64_t *ret)
{
	switch (entry->nr) {
	case SYS_fstat:
		return stat_make_fstat(entry->args, ret);
	case SYS_statx:
		return stat_make_statx(entry->args, ret);
	default:
		return false;
	}
}
