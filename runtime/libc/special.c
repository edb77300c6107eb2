/* SPDX-License-Identifier: MIT */
/*
 * Interposed functions that need code of their own: sleeping, the end of the process,
 * and functions whose arguments need a check or a conversion. They run on the program's
 * threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/files/fds.h"
#include "runtime/base/interpose.h"
#include "runtime/base/peek.h"
#include "runtime/calls/hook.h"
#include "runtime/calls/perform.h"
#include "runtime/sched/exit.h"
#include "runtime/sched/state.h"
#include "front.h"
#include "libc.h"
#include "libc_call.h"

/*
 * Get the owner by F_GETOWN_EX, as libc does, because a result of F_GETOWN may look
 * like an error.
 */
static int get_owner(int fd)
{
	struct f_owner_ex owner;
	const uint64_t args[6] = { (uint64_t)fd, F_GETOWN_EX, PTR(&owner) };

	if (flexsc__libc_call(false, SYS_fcntl, args))
		return -1;
	return owner.type == F_OWNER_PGRP ? -owner.pid : owner.pid;
}

static int own_fcntl(int fd, int command, ...)
{
	uint64_t args[6] = { (uint64_t)fd, (uint64_t)command };
	va_list list;

	if (command == F_GETOWN)
		return get_owner(fd);
	va_start(list, command);
	args[2] = va_arg(list, uint64_t);
	va_end(list);
	return (int)flexsc__libc_call(command == F_SETLKW ||
				      command == F_OFD_SETLKW, SYS_fcntl, args);
}

FRONT(fcntl, own_fcntl)
FRONT(fcntl64, own_fcntl)

/* On a kernel without close_range(2), libc's function closes the descriptors. */
static void own_closefrom(int first)
{
	const uint64_t args[6] = { first < 0 ? 0 : (uint64_t)first, ~0U };

	if (flexsc__libc_call(false, SYS_close_range, args))
		REAL(closefrom)(first);
}
FRONT(closefrom, own_closefrom)

static _Noreturn void end_process(int status, enum real which)
{
	void (*foreign)(int) = (void (*)(int))flexsc__real_foreign(which);

	flexsc__exit_begins();
	if (foreign)
		foreign(status);
	for (;;)
		raw_syscall(SYS_exit_group, (uint64_t)status, 0, 0, 0, 0, 0);
}

EXPORT void _exit(int status)
{
	end_process(status, REAL__exit);
}

EXPORT void _Exit(int status)
{
	end_process(status, REAL__Exit);
}

static pid_t own_gettid(void)
{
	return (pid_t)flexsc__hook(SYS_gettid, (uint64_t[6]){ 0 });
}
FRONT(gettid, own_gettid)

static COLD long foreign_syscall(long nr, const uint64_t a[6])
{
	long (*foreign)(long, ...) = (long (*)(long, ...))
		flexsc__real_foreign(REAL_syscall);

	return foreign(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long choose_syscall(long nr, const uint64_t args[6]);

/*
 * The function that makes the calls of syscall(), except forks. NULL stands for
 * flexsc__libc_call(). The first call of syscall() sets this variable.
 */
static long (*syscall_target)(long, const uint64_t[6]) = choose_syscall;

static COLD long choose_syscall(long nr, const uint64_t args[6])
{
	bool foreign = flexsc__real_foreign(REAL_syscall);

	syscall_target = foreign ? foreign_syscall : NULL;
	return foreign ? foreign_syscall(nr, args) :
			 flexsc__libc_call(false, nr, args);
}

/* Declared without "...", which would cost more than the rest of the function. */
EXPORT long own_syscall(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
			uint64_t e, uint64_t f) __asm__("syscall");
EXPORT long own_syscall(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
			uint64_t e, uint64_t f)
{
	const uint64_t args[6] = { a, b, c, d, e, f };

	if (flexsc__forks_makes_child(nr))
		return flexsc__forks_plainly(nr, args);
	if (syscall_target)
		return syscall_target(nr, args);
	return flexsc__libc_call(false, nr, args);
}

/* Sleeping. */

static int own_clock_nanosleep(clockid_t clock, int flags,
			       const struct timespec *time, struct timespec *rest)
{
	const uint64_t args[6] = { (uint64_t)clock, (uint64_t)flags, PTR(time),
				   PTR(rest) };

	/* For this clock libc returns EINVAL, the kernel another error. */
	if (clock == CLOCK_THREAD_CPUTIME_ID)
		return EINVAL;
	return (int)-flexsc__libc_point(SYS_clock_nanosleep, args);
}
FRONT(clock_nanosleep, own_clock_nanosleep)

/* C11's thrd_sleep(). */
static int own_thrd_sleep(const struct timespec *time, struct timespec *rest)
{
	int err = own_clock_nanosleep(CLOCK_REALTIME, 0, time, rest);

	return err ? err == EINTR ? -1 : -2 : 0;
}
FRONT(thrd_sleep, own_thrd_sleep)

static unsigned int own_sleep(unsigned int seconds)
{
	struct timespec time = { .tv_sec = seconds }, rest = { 0 };
	const uint64_t args[6] = { CLOCK_REALTIME, 0, PTR(&time), PTR(&rest) };

	if (flexsc__libc_call(true, SYS_clock_nanosleep, args))
		return (unsigned int)(rest.tv_sec + (rest.tv_nsec > 0));
	return 0;
}
FRONT(sleep, own_sleep)

static int own_usleep(useconds_t us)
{
	struct timespec time = { .tv_sec = us / 1000000,
				 .tv_nsec = us % 1000000 * 1000 };
	const uint64_t args[6] = { CLOCK_REALTIME, 0, PTR(&time) };

	return (int)flexsc__libc_call(true, SYS_clock_nanosleep, args);
}
FRONT(usleep, own_usleep)

/* Passes a copy of the limit, because the kernel stores the remaining time there. */
static int own_ppoll(struct pollfd *fds, nfds_t n,
		     const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec copy = timeout ? *timeout : (struct timespec){ 0 };
	const uint64_t args[6] = { PTR(fds), n, timeout ? PTR(&copy) : 0,
				   PTR(mask), sizeof(sigmask_t) };

	return (int)flexsc__libc_call(true, SYS_ppoll, args);
}
FRONT(ppoll, own_ppoll)

/*
 * Passes a copy of the limit, as ppoll() does. The kernel takes the mask and its size
 * as a pair.
 */
static int own_pselect(int end, fd_set *in, fd_set *out, fd_set *except,
		       const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec copy = timeout ? *timeout : (struct timespec){ 0 };
	const uint64_t pair[2] = { PTR(mask), sizeof(sigmask_t) };
	const uint64_t args[6] = { (uint64_t)end, PTR(in), PTR(out),
				   PTR(except), timeout ? PTR(&copy) : 0,
				   PTR(pair) };

	return (int)flexsc__libc_call(true, SYS_pselect6, args);
}
FRONT(pselect, own_pselect)

/* The hook needs only calls that add a signalfd: FD_SIGNALS, lib/files/fds.h. */
static int own_epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	const uint64_t args[6] = { (uint64_t)set, (uint64_t)op, (uint64_t)fd,
				   PTR(event) };

	if (op == EPOLL_CTL_ADD && fds_find_signals((uint32_t)fd))
		return (int)flexsc__libc_call(false, SYS_epoll_ctl, args);
	return (int)libc_result(flexsc__perform_plainly(SYS_epoll_ctl, args));
}
FRONT(epoll_ctl, own_epoll_ctl)

/* Calls that aarch64 lacks. */

#if defined(__x86_64__)

static int own_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	const uint64_t args[6] = { PTR(fds), n, (uint64_t)timeout };

	return (int)flexsc__libc_call(true, SYS_poll, args);
}

#else

static int own_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct timespec limit = { .tv_sec = timeout / 1000,
				  .tv_nsec = timeout % 1000 * 1000000L };

	return own_ppoll(fds, n, timeout < 0 ? NULL : &limit, NULL);
}
FRONT(poll, own_poll)

static int own_epoll_wait(int set, struct epoll_event *events, int n, int timeout)
{
	const uint64_t args[6] = { (uint64_t)set, PTR(events), (uint64_t)n,
				   (uint64_t)timeout, 0, sizeof(sigmask_t) };

	return (int)flexsc__libc_call(true, SYS_epoll_pwait, args);
}
FRONT(epoll_wait, own_epoll_wait)

/* Stores the remaining time, as the kernel's select(2) does. */
static int own_select(int end, fd_set *in, fd_set *out, fd_set *except,
		      struct timeval *timeout)
{
	struct timespec limit = { 0 };
	const uint64_t args[6] = { (uint64_t)end, PTR(in), PTR(out),
				   PTR(except), timeout ? PTR(&limit) : 0 };
	int ret;

	if (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)) {
		errno = EINVAL;
		return -1;
	}
	if (timeout) {
		limit.tv_sec = timeout->tv_sec + timeout->tv_usec / 1000000;
		limit.tv_nsec = timeout->tv_usec % 1000000 * 1000;
	}
	ret = (int)flexsc__libc_call(true, SYS_pselect6, args);
	if (timeout) {
		timeout->tv_sec = limit.tv_sec;
		timeout->tv_usec = limit.tv_nsec / 1000;
	}
	return ret;
}
FRONT(select, own_select)

/* dup3(2) refuses equal descriptors. */
static int own_dup2(int from, int to)
{
	const uint64_t args[6] = { (uint64_t)from, (uint64_t)to };

	if (from == to)
		return own_fcntl(from, F_GETFL) < 0 ? -1 : to;
	return (int)flexsc__libc_call(false, SYS_dup3, args);
}
FRONT(dup2, own_dup2)

#endif

/* Functions of _FORTIFY_SOURCE, which check the buffer's size. */

static void check(size_t needed, size_t size)
{
	if (needed > size) {
		fputs("*** buffer overflow detected ***: terminated\n", stderr);
		abort();
	}
}

static ssize_t own_read_chk(int fd, void *buf, size_t n, size_t size)
{
	const uint64_t args[6] = { (uint64_t)fd, PTR(buf), n };

	check(n, size);
	return flexsc__libc_call(true, SYS_read, args);
}
FRONT(__read_chk, own_read_chk)

static ssize_t own_pread_chk(int fd, void *buf, size_t n, off_t at, size_t size)
{
	const uint64_t args[6] = { (uint64_t)fd, PTR(buf), n, (uint64_t)at };

	check(n, size);
	return flexsc__libc_call(true, SYS_pread64, args);
}
FRONT(__pread_chk, own_pread_chk)
FRONT(__pread64_chk, own_pread_chk)

static ssize_t own_recvfrom_chk(int fd, void *buf, size_t n, size_t size,
				int flags, struct sockaddr *from,
				socklen_t *length)
{
	const uint64_t args[6] = { (uint64_t)fd, PTR(buf), n, (uint64_t)flags,
				   PTR(from), PTR(length) };

	check(n, size);
	return flexsc__libc_call(true, SYS_recvfrom, args);
}
FRONT(__recvfrom_chk, own_recvfrom_chk)

static ssize_t own_recv_chk(int fd, void *buf, size_t n, size_t size, int flags)
{
	return own_recvfrom_chk(fd, buf, n, size, flags, NULL, NULL);
}
FRONT(__recv_chk, own_recv_chk)

static int own_poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
	check(n * sizeof(*fds), size);
	return own_poll(fds, n, timeout);
}
FRONT(__poll_chk, own_poll_chk)

static int own_ppoll_chk(struct pollfd *fds, nfds_t n,
			 const struct timespec *timeout, const sigset_t *mask,
			 size_t size)
{
	check(n * sizeof(*fds), size);
	return own_ppoll(fds, n, timeout, mask);
}
FRONT(__ppoll_chk, own_ppoll_chk)
