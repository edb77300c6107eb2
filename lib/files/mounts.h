/* SPDX-License-Identifier: MIT */
/* Properties of the mounts that files are on. Any thread. */
#ifndef FLEXSC_MOUNTS_H
#define FLEXSC_MOUNTS_H

#include <stdint.h>

/* Where the attributes of a mount's open files are kept. */
enum mount_kind {
	MOUNT_UNKNOWN = 0,	/* on a file server or in a daemon, or unknown */
	MOUNT_LOCAL,		/* in this kernel's memory */
	MOUNT_LAYERED,		/* on the filesystems below it (overlayfs) */
};

struct statx;

/*
 * Returns the kind of the mount of *file, which statx() filled in. Reads mountinfo once
 * per mount, and never queries the filesystem, which might wait for its server.
 */
enum mount_kind flexsc__mount_kind(const struct statx *file);

#endif /* FLEXSC_MOUNTS_H */
