/* SPDX-License-Identifier: MIT */
/* What is known about the mounts that files are on. Any thread. */
#ifndef FLEXSC_MOUNTS_H
#define FLEXSC_MOUNTS_H

#include <stdint.h>

/* Where a mount's filesystem has the attributes of its open files. */
enum mount_kind {
	MOUNT_UNKNOWN = 0,	/* with a server or daemon, or nobody knows */
	MOUNT_LOCAL,		/* in this kernel's memory */
	MOUNT_LAYERED,		/* where the layers have them */
};

struct statx;

/*
 * The kind of the mount that *file is on, as statx() has filled it in. Asks
 * the kernel once for a mount, and never a filesystem, which might have to wait
 * for its server.
 */
enum mount_kind flexsc__mount_kind(const struct statx *file);

#endif /* FLEXSC_MOUNTS_H */
