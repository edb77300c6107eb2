/* SPDX-License-Identifier: MIT */
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "status.h"
#include "syscall.h"

/* The child's result, in memory that it shares with the parent. */
struct result {
	_Atomic int value;	/* TRIAL_KILLED at first; read after the child has
				 * ended */
	_Atomic bool can_wait;	/* the filters permit wait4(2) */
};

static struct result *make_result(void)
{
	struct result *result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (result == MAP_FAILED)
		return NULL;
	result->value = TRIAL_KILLED;
	return result;
}

static _Noreturn void child(struct result *result, int (*run)(const void *),
			    const void *arg)
{
	result->can_wait = raw_syscall(SYS_wait4, (uint64_t)-2, 0, WNOHANG, 0, 0,
				       0) == -ECHILD;
	/* Write no core dump if a filter ends the child. */
	raw_syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
	result->value = run(arg);
	raw_syscall(SYS_exit_group, (uint64_t)result->value, 0, 0, 0, 0, 0);
	/* A filter has made exit_group() fail: end the child by a trap. */
	for (;;)
		__builtin_trap();
}

static int open_to_read(const char *path)
{
	return (int)raw_syscall(SYS_openat, (uint64_t)AT_FDCWD, PTR(path),
				O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

static void close_fd(int fd)
{
	raw_syscall(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
}

/*
 * Find a namespace's number, which fdinfo shows of an open file of it (since Linux 5.14);
 * "" if it is unknown. Filters permit open(2) and read(2) more often than ioctl(2) or
 * readlink(2). False: the namespace can't be opened.
 */
static bool find_namespace(const char *path, struct status_value *number)
{
	const int fd = open_to_read(path);
	char info[48];
	int info_fd;

	*number = (struct status_value){ .name = "ino:" };
	if (fd < 0)
		return false;
	snprintf(info, sizeof(info), "/proc/thread-self/fdinfo/%d", fd);
	info_fd = open_to_read(info);
	if (info_fd >= 0) {
		flexsc__status_read(info_fd, SYS_read, number, 1);
		close_fd(info_fd);
	}
	close_fd(fd);
	return true;
}

/*
 * May the child be the first process of a pid namespace? When that child ends, so does
 * the namespace, and the program could create no process any more. /proc shows this
 * case: the namespace of a thread's children isn't the thread's own. Older kernels
 * can't open it before it has a process. False if /proc isn't mounted.
 */
static bool may_be_first(void)
{
	struct status_value own, children;

	return find_namespace("/proc/thread-self/ns/pid", &own) &&
	       (!find_namespace("/proc/thread-self/ns/pid_for_children",
				&children) ||
		strcmp(own.text, children.text) != 0);
}

/*
 * Make a child without exit signal, and wait until it has ended (CLONE_VFORK). Use the
 * call by which libc makes threads: filters permit it in a program with threads.
 */
static long make_child(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
	const struct clone_args args = { .flags = CLONE_VFORK };
	const long pid = raw_syscall(SYS_clone3, PTR(&args), CLONE_ARGS_SIZE_VER0, 0,
				     0, 0, 0);

	if (pid != -ENOSYS)
		return pid;
#endif
	return raw_syscall(SYS_clone, CLONE_VFORK, 0, 0, 0, 0, 0);
}

/*
 * Get the child's result. If the filters forbid wait4(2), the child stays a zombie until
 * this process ends.
 *
 * If another thread waits for any child, with __WALL or __WCLONE, it may reap this one.
 * Then this wait fails with -ECHILD, and only "result" shows how the child ended.
 */
static int wait_for(long pid, const struct result *result)
{
	int status = 0;
	long ret;

	if (!result->can_wait)
		return result->value;
	do
		ret = raw_syscall(SYS_wait4, (uint64_t)pid, PTR(&status),
				  (uint64_t)__WALL, 0, 0, 0);
	while (ret == -EINTR);
	if (ret == -ECHILD)
		return result->value;
	return ret >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) :
					       TRIAL_KILLED;
}

/*
 * The child has no exit signal, so the program gets no SIGCHLD, and its wait(2) doesn't
 * return the child. All signals are blocked: otherwise a signal to the process group
 * would run the program's handlers in the child.
 */
int flexsc__trial(int (*run)(const void *arg), const void *arg)
{
	const uint64_t all = ~0ULL;
	struct result *result;
	int ret = TRIAL_NOT_MADE;
	uint64_t before;
	long pid;

	if (may_be_first())
		return TRIAL_NOT_MADE;
	result = make_result();
	if (!result)
		return TRIAL_NOT_MADE;
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(&all), PTR(&before),
		    sizeof(all), 0, 0);
	pid = make_child();
	if (!pid)
		child(result, run, arg);
	if (pid > 0)
		ret = wait_for(pid, result);
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(&before), 0,
		    sizeof(before), 0, 0);
	munmap(result, sizeof(*result));
	return ret;
}
