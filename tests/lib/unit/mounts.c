/* SPDX-License-Identifier: MIT */
/*
 * The library's table of mounts, compared with the kernel's list. The test uses only
 * mounts that it can access, and that no other mount covers.
 */
#include "tests/harness/harness.h"

#include "lib/files/mounts.h"

static enum mount_kind kind_at(const char *path, unsigned long *id)
{
	struct statx file;

	*id = 0;
	if (syscall(SYS_statx, AT_FDCWD, path,
		    AT_STATX_DONT_SYNC | AT_SYMLINK_NOFOLLOW,
		    STATX_TYPE | STATX_MNT_ID, &file))
		return MOUNT_UNKNOWN;
	*id = file.stx_mnt_id;
	return flexsc__mount_kind(&file);
}

static enum mount_kind kind_expected(const char *type)
{
	if (!strcmp(type, "overlay"))
		return MOUNT_LAYERED;
	return !strcmp(type, "tmpfs") || !strcmp(type, "proc") ||
	       !strcmp(type, "ext4") || !strcmp(type, "xfs") ||
	       !strcmp(type, "btrfs") || !strcmp(type, "sysfs") ?
		       MOUNT_LOCAL : MOUNT_UNKNOWN;
}

TEST(mounts_are_what_the_kernel_lists)
{
	FILE *list = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, path[4096], type[64];
	unsigned int known = 0;
	unsigned long id, found;
	size_t size = 0;

	CHECK(list);
	while (getline(&line, &size, list) > 0) {
		char *dash = strstr(line, " - ");

		CHECK(dash);
		CHECK_EQ(sscanf(line, "%lu %*s %*s %*s %4095s", &id, path), 2);
		CHECK_EQ(sscanf(dash, " - %63s", type), 1);
		/* Once by a query, and once from the cache. */
		for (int i = 0; i < 2; i++) {
			enum mount_kind kind = kind_at(path, &found);

			if (found != id || !kind_expected(type))
				continue;
			CHECK_EQ(kind, kind_expected(type));
			known++;
		}
	}
	CHECK(known);
	free(line);
	fclose(list);
}

TEST(files_of_no_mount_are_unknown)
{
	struct statx file = { .stx_mask = STATX_TYPE };

	CHECK_EQ(flexsc__mount_kind(&file), MOUNT_UNKNOWN);
	file.stx_mask |= STATX_MNT_ID;
	CHECK_EQ(flexsc__mount_kind(&file), MOUNT_UNKNOWN);
	for (file.stx_mnt_id = 1ULL << 29; file.stx_mnt_id;
	     file.stx_mnt_id <<= 1)
		CHECK_EQ(flexsc__mount_kind(&file), MOUNT_UNKNOWN);
}
