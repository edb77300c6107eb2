/* SPDX-License-Identifier: MIT */
/*
 * Counting a child's instructions by stepping through them one by one: no clock
 * and no other process matters.
 */
#ifndef FLEXSC_TESTS_STEPS_H
#define FLEXSC_TESTS_STEPS_H
#include "harness.h"

#include <sys/ptrace.h>

/* In the child, at the end of what is counted; steps_begin() has the first mark. */
static inline void steps_mark(void)
{
	raise(SIGSTOP);
}

/* In the child, once: instructions are counted from here. */
static inline void steps_begin(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(2);
	steps_mark();
}

/* In the parent: instructions of the child between its two marks. Reaps it. */
static inline uint64_t steps_of(int child)
{
	uint64_t n = 0;
	int status;

	CHECK_EQ(waitpid(child, &status, 0), child);
	if (WIFEXITED(status))
		SKIP("ptrace isn't permitted here");
	CHECK(WIFSTOPPED(status));
	for (;; n++) {
		CHECK_EQ(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK(WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGSTOP)
			break;
		CHECK_EQ(WSTOPSIG(status), SIGTRAP);
	}
	CHECK_EQ(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
	test_reap(child);
	return n;
}

#endif /* FLEXSC_TESTS_STEPS_H */
