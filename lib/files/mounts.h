/* SPDX-License-Identifier: MIT */
/* Properties of the mounts that files are on. Any thread. */
#ifndef FLEXSC_MOUNTS_H
#define FLEXSC_MOUNTS_H

#include <stdint.h>

/* Where a mount's filesystem keeps the attributes of its open files. */
enum mount_kind {
	MOUNT_UNKNOWN = 0,	/* on a server or in a daemon, or unknown */
	MOUNT_LOCAL,		/* in this kernel's memory */
	MOUNT_LAYERED,		/* where its layers keep them */
};

struct statx;

/*
 * The kind of the mount of *file, which statx() filled in. Queries the kernel once per
 * mount. Never queries a filesystem, which might have to wait for its server.
 */
enum mount_kind flexsc__mount_kind(const struct statx *file);

#endif /* FLEXSC_MOUNTS_H */
