/* SPDX-License-Identifier: MIT */
#include "private_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/futex.h"
#include "lib/base/plain.h"
#include "lib/base/ask.h"

/*
 * Duplicates get numbers from COPIES, or from flexsc__private_fd_floor / 2 if that is
 * lower. The numbers are not higher, because the kernel's table of descriptors grows
 * with the highest one.
 */
#define COPIES		4096

int flexsc__private_fd_floor;

/* Upper bounds of the numbers of descriptors with FD_OWN, and with FD_COPY. */
static _Atomic uint32_t own_end, copies_end;

/*
 * Counts the threads that are changing the library's own descriptors (CHANGING), and
 * the threads that block such changes, in units of FREEZE_RANGE and FREEZE_FORK. A
 * thread that blocks changes waits until none is in progress.
 */
#define CHANGING	(FREEZE_RANGE - 1)

static _Atomic uint32_t changing;
/*
 * How much the calling thread has added to CHANGING. In a signal handler that has
 * interrupted a change, this isn't 0. If the handler calls fork() or close_range(), it
 * must not wait for the change that it has interrupted.
 */
static _Thread_local uint32_t changing_here;

/*
 * While a close_range() runs, a thread that is about to create a descriptor of the
 * library waits for its end, but at most this long: the close_range() may itself block
 * until other threads proceed, for example on a filesystem that the program serves.
 * After that time, the close_range() may close the new descriptor as well.
 */
#define RANGE_NS	100000000ULL

/*
 * How long must a change wait while "changing" is n? "until" is the end of the wait, 0
 * before it. The time doesn't restart after a signal: flexsc run sends many to a thread
 * that waits here.
 */
static uint64_t change_waits_ns(uint32_t n, uint64_t *until)
{
	uint64_t now;

	if (n < FREEZE_RANGE)
		return 0;
	if (n >= FREEZE_FORK)
		return UINT64_MAX;
	now = time_monotonic();
	if (!*until)
		*until = now + RANGE_NS;
	return now < *until ? *until - now : 0;
}

/* Returns whether what the caller changes is safe from every close_range(). */
static bool change_begin(void)
{
	uint32_t n = atomic_load(&changing);
	uint64_t until = 0, ns;

	for (;;) {
		ns = change_waits_ns(n, &until);
		if (ns) {
			futex_wait(&changing, n, ns);
			n = atomic_load(&changing);
		} else if (atomic_compare_exchange_weak(&changing, &n, n + 1)) {
			changing_here++;
			return n < FREEZE_RANGE;
		}
	}
}

static void change_end(void)
{
	uint32_t n;

	changing_here--;
	n = atomic_fetch_sub(&changing, 1);
	if (n >= FREEZE_RANGE && (n & CHANGING) == 1)
		futex_wake_all(&changing);
}

void flexsc__private_fds_freeze(enum freeze why)
{
	uint32_t n = atomic_fetch_add(&changing, why) + why;

	while ((n & CHANGING) > changing_here) {
		futex_wait(&changing, n, UINT64_MAX);
		n = atomic_load(&changing);
	}
}

void flexsc__private_fds_thaw(enum freeze why)
{
	atomic_fetch_sub(&changing, why);
	futex_wake_all(&changing);
}

void flexsc__private_fd_begin(void)
{
	change_begin();
}

int flexsc__private_fd_made(int fd)
{
	int high = -1;

	if (fd >= 0 && flexsc__private_fd_floor)
		high = plain_copy(fd, flexsc__private_fd_floor);
	if (high >= 0) {
		plain_close(fd);
		fd = high;
	}
	if (fd >= 0) {
		fds_keep((uint32_t)fd, FD_MARKED);
		fds_learn((uint32_t)fd, FD_OWN);
		fds_raise_end(&own_end, (uint32_t)fd);
	}
	change_end();
	return fd;
}

/* Duplicate fd, and end the change that the caller has begun. */
static int copy_and_end(int fd)
{
	int floor = flexsc__private_fd_floor / 2 < COPIES ? flexsc__private_fd_floor / 2 :
						     COPIES;
	long copy;

	copy = ask(SYS_fcntl, (uint64_t)fd, F_DUPFD_CLOEXEC, (uint64_t)floor,
		   0, 0, 0);
	if (copy >= 0) {
		/*
		 * Drop facts that remain because the program closed the number by a
		 * plain close().
		 */
		fds_keep((uint32_t)copy, FD_MARKED);
		fds_learn((uint32_t)copy, FD_OWN | FD_COPY);
		fds_raise_end(&copies_end, (uint32_t)copy);
	}
	change_end();
	return (int)copy;
}

int flexsc__private_fd_copy(int fd)
{
	change_begin();
	return copy_and_end(fd);
}

int flexsc__private_fd_safe_copy(int fd)
{
	if (change_begin())
		return copy_and_end(fd);
	change_end();
	return -EBUSY;
}

int flexsc__private_memfd(const char *name, size_t size)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	int fd;

	raw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, PTR(&limit), 0, 0);
	if (limit.rlim_cur < size)
		return -1;
	fd = flexsc__private_fd(memfd_create(name, MFD_CLOEXEC));
	if (fd >= 0 && ftruncate(fd, (off_t)size)) {
		flexsc__private_fd_close(fd);
		fd = -1;
	}
	return fd;
}

static void close_below(_Atomic uint32_t *limit, uint32_t fact)
{
	uint32_t end = atomic_load(limit);

	for (uint32_t fd = 0; fd < end && fd < FDS_MAX; fd++)
		if (fds_known(fd) & fact)
			flexsc__private_fd_close((int)fd);
	atomic_store(limit, 0);
}

void flexsc__private_fds_forked(void)
{
	atomic_store(&changing, changing_here);
	close_below(&copies_end, FD_COPY);
}

void flexsc__private_fd_close_all(void)
{
	flexsc__private_fds_forked();
	close_below(&own_end, FD_OWN);
}

void flexsc__private_fd_close(int fd)
{
	flexsc__private_fd_begin();
	fds_forget((uint32_t)fd);
	flexsc__asks++;
	plain_close(fd);
	change_end();
}
