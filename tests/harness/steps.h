/* SPDX-License-Identifier: MIT */
/*
 * Count a child's instructions by single-stepping. The result depends on no clock
 * and no other process.
 */
#ifndef FLEXSC_TESTS_STEPS_H
#define FLEXSC_TESTS_STEPS_H
#include "harness.h"

#include <sys/ptrace.h>

/* Called by the child: ends the count that steps_begin() has started. */
static inline void steps_mark(void)
{
	raise(SIGSTOP);
}

/* Called by the child, once: starts the count. */
static inline void steps_begin(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(2);
	steps_mark();
}

/*
 * Called by the parent: returns the number of instructions between the child's two
 * marks, and reaps the child.
 */
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
