/* SPDX-License-Identifier: MIT */
#include "userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <flexsc/ecb.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the kernel headers of Linux 6.1. */
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED	(1ULL << 13)	/* Linux 6.4 */
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC		(1ULL << 15)	/* Linux 6.7 */
#endif

#define PROTECTING	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | \
			 UFFD_FEATURE_WP_HUGETLBFS_SHMEM)

/* PAGEMAP_SCAN of Linux 6.7. */
struct scan {
	uint64_t size;
	uint64_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t walk_end;
	uint64_t vec;
	uint64_t vec_len;
	uint64_t max_pages;
	uint64_t category_inverted;
	uint64_t category_mask;
	uint64_t category_anyof_mask;
	uint64_t return_mask;
};

#define SCAN			_IOWR('f', 16, struct scan)
#define SCAN_PROTECTS		0x1	/* PM_SCAN_WP_MATCHING */
#define SCAN_TRACKED		0x2	/* PM_SCAN_CHECK_WPASYNC */
#define PAGE_WRITTEN		0x2	/* PAGE_IS_WRITTEN */
#define PAGE_EXISTS		0x18	/* PAGE_IS_PRESENT, PAGE_IS_SWAPPED */

static int userfault_fails(char *why, size_t size, const char *reason)
{
	if (why)
		snprintf(why, size, "%s", reason);
	return -EOPNOTSUPP;
}

/* The device has permissions of its own, and no filter of system calls sees it. */
static int userfault_from_device(int flags)
{
	int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	int fd;

	if (device < 0)
		return -1;
	fd = ioctl(device, USERFAULTFD_IOC_NEW, flags);
	close(device);
	return fd;
}

/*
 * Faults of system calls are not reported unless requested. A system call of the owner
 * itself would wait for the owner, and only privileged programs get such faults.
 */
static int userfault_new(uint32_t what)
{
	int flags = O_CLOEXEC | O_NONBLOCK;
	int fd, err;

	if (!(what & FLEXSC_MEMORY_CALLS))
		flags |= UFFD_USER_MODE_ONLY;
	fd = (int)syscall(SYS_userfaultfd, flags);
	err = errno;
	if (fd < 0 && (err == EPERM || err == ENOSYS)) {
		fd = userfault_from_device(flags);
		if (fd < 0)
			errno = err;
	}
	return fd;
}

static uint64_t userfault_features(uint32_t what)
{
	uint64_t features = UFFD_FEATURE_THREAD_ID;

	if (what & FLEXSC_MEMORY_PROTECTED)
		features |= PROTECTING | UFFD_FEATURE_WP_UNPOPULATED;
	if (what & FLEXSC_MEMORY_CHANGES)
		features |= PROTECTING | UFFD_FEATURE_WP_UNPOPULATED |
			    UFFD_FEATURE_WP_ASYNC;
	return features;
}

/* Create one with these features. -EINVAL: the kernel lacks one of them. */
static int userfault_with(uint32_t what, uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = userfault_new(what);
	int err;

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, UFFDIO_API, &api))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int userfault_failed(int err, uint32_t what, char *why, size_t size)
{
	switch (err) {
	case -EPERM:
		return userfault_fails(why, size, what & FLEXSC_MEMORY_CALLS ?
			"faults of system calls need CAP_SYS_PTRACE, vm.unprivileged_userfaultfd=1 or access to /dev/userfaultfd" :
			"a filter or security module forbids userfaultfd(2)");
	case -ENOSYS:
		return userfault_fails(why, size,
			"the kernel lacks userfaultfd(2), or a filter forbids it");
	case -EINVAL:
		return userfault_fails(why, size, what & FLEXSC_MEMORY_CHANGES ?
			"changed pages need Linux 6.7 (x86-64) or 6.10 (aarch64)" :
			"write faults need Linux 6.10 on aarch64");
	default:
		return err;
	}
}

int flexsc__userfault_open(uint32_t what, bool *unpopulated, char *why, size_t size)
{
	uint64_t features = userfault_features(what);
	int fd = userfault_with(what, features);

	*unpopulated = fd >= 0;
	if (fd == -EINVAL && !(what & FLEXSC_MEMORY_CHANGES))
		fd = userfault_with(what, features & ~UFFD_FEATURE_WP_UNPOPULATED);
	return fd < 0 ? userfault_failed(fd, what, why, size) : fd;
}

int flexsc__pagemap_written(const struct pagemap *pagemap,
			    struct pagemap_region *regions, unsigned int n)
{
	struct scan scan = {
		.size = sizeof(scan),
		.flags = SCAN_PROTECTS | SCAN_TRACKED,
		.start = pagemap->begin,
		.end = pagemap->end,
		.vec = (uintptr_t)regions,
		.vec_len = n,
		.category_mask = PAGE_WRITTEN,
		.category_anyof_mask = pagemap->present ? PAGE_EXISTS : 0,
		.return_mask = PAGE_WRITTEN,
	};
	int ret = ioctl(pagemap->fd, SCAN, &scan);

	return ret < 0 ? -errno : ret;
}

int flexsc__pagemap_open(char *why, size_t size)
{
	/* An empty range: the kernel has the request if it accepts this. */
	struct scan scan = { .size = sizeof(scan), .return_mask = PAGE_WRITTEN };
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ?
			       -errno :
			       userfault_fails(why, size,
					       "/proc/self/pagemap can't be opened");
	if (ioctl(fd, SCAN, &scan) >= 0)
		return fd;
	close(fd);
	return userfault_fails(why, size, "changed pages need Linux 6.7");
}
