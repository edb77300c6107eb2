/* SPDX-License-Identifier: MIT */
/*
 * Count the system calls that a child makes between two marks, by tracing it. The
 * result depends on no clock and no other process.
 */
#ifndef FLEXSC_TESTS_TRACED_H
#define FLEXSC_TESTS_TRACED_H
#include "harness.h"

#include <sys/ptrace.h>

/* A call that is used for nothing else in these tests. */
#define TRACED_MARK	SYS_getpgid
#define ALL_CALLS	(-1L)

/* Returns 0 in the child, else the child's number. */
static inline int traced_fork(void)
{
	if (SANITIZED)
		SKIP("sanitizers make additional system calls");
	return test_fork();
}

/* Called by the child, once: starts the count. */
static inline void traced_begin(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(2);
	raise(SIGSTOP);
	syscall(TRACED_MARK, 0);
}

/* Called by the child: ends the count. */
static inline void traced_end(void)
{
	syscall(TRACED_MARK, 0);
}

/* Returns the number of the call that the child has just begun, or -1. */
static inline long traced_number(int pid)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return -1;
	return (long)info.entry.nr;
}

/*
 * Called by the parent: returns how many calls with this number the child makes between
 * its marks, and reaps the child.
 */
static inline unsigned int traced_calls(int pid, long nr)
{
	unsigned int calls = 0, marks = 0;
	int status, signo = 0;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		SKIP("ptrace isn't permitted here");
	CHECK(WIFSTOPPED(status));
	CHECK_EQ(ptrace(PTRACE_SETOPTIONS, pid, NULL,
			PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
	for (;;) {
		long number;

		CHECK_EQ(ptrace(PTRACE_SYSCALL, pid, NULL, signo), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status))
			break;
		signo = WSTOPSIG(status);
		if (signo != (SIGTRAP | 0x80))
			continue;
		signo = 0;
		number = traced_number(pid);
		if (number == TRACED_MARK)
			marks++;
		else if (marks == 1 && number >= 0)
			calls += nr == ALL_CALLS || number == nr;
	}
	CHECK_EQ(status, 0);
	CHECK_EQ(marks, 2);
	return calls;
}

#endif /* FLEXSC_TESTS_TRACED_H */
