/* SPDX-License-Identifier: MIT */
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "syscall.h"

static _Noreturn void child(int (*run)(const void *), const void *arg)
{
	/* A child that a filter ends leaves no core dump. */
	raw_syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
	raw_syscall(SYS_exit_group, (uint64_t)run(arg), 0, 0, 0, 0, 0);
	/* A filter makes exit_group() fail. */
	for (;;)
		__builtin_trap();
}

static bool can_open(const char *path)
{
	long fd = raw_syscall(SYS_openat, (uint64_t)AT_FDCWD, PTR(path),
			      O_RDONLY | O_CLOEXEC, 0, 0, 0);

	if (fd >= 0)
		raw_syscall(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	return fd >= 0;
}

/*
 * Would the child be the first process of a pid namespace? The namespace would end with
 * the child, and the program could make no process any more. A namespace without a
 * process can't be opened. Without /proc the answer is no, right or wrong.
 */
static bool would_be_first(void)
{
	return !can_open("/proc/thread-self/ns/pid_for_children") &&
	       can_open("/proc/thread-self/ns/pid");
}

/*
 * The child has no exit signal: the program gets no SIGCHLD, and its wait(2) doesn't
 * return the child. All signals are blocked, because signals to the process group would
 * run the program's handlers in the child.
 */
int flexsc__trial(int (*run)(const void *arg), const void *arg)
{
	const uint64_t all = ~0ULL;
	uint64_t before;
	int status = 0;
	long pid, ret;

	if (would_be_first())
		return TRIAL_NOT_MADE;
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(&all), PTR(&before),
		    sizeof(all), 0, 0);
	pid = raw_syscall(SYS_clone, 0, 0, 0, 0, 0, 0);
	if (!pid)
		child(run, arg);
	do
		ret = pid < 0 ? pid :
				raw_syscall(SYS_wait4, (uint64_t)pid,
					    PTR(&status), (uint64_t)__WALL, 0,
					    0, 0);
	while (ret == -EINTR);
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(&before), 0,
		    sizeof(before), 0, 0);
	if (pid < 0)
		return TRIAL_NOT_MADE;
	return ret == pid && WIFEXITED(status) ? WEXITSTATUS(status) :
						 TRIAL_KILLED;
}
