/* SPDX-License-Identifier: MIT */
/*
 * Tests the cache lines of code that "flexsc study --raw footprint level=l1i" executes.
 * An int3 in a line shows whether the line is executed.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "study/micro/jumps.h"
#include "tests/harness/harness.h"

#define LINES	64
#define TIMES	3	/* repetitions, each in another order */
#define INT3	0xcc

static void make(struct bench_jumps *jumps, size_t chained)
{
	int err = bench_jumps_init(jumps, chained, LINES);

	if (err == -ENOSYS)
		SKIP("the lines are for x86-64");
	CHECK_EQ(err, 0);
}

static void run(struct bench_jumps *jumps, char *line, size_t executed)
{
	int all = PROT_READ | PROT_WRITE | PROT_EXEC;

	if (line && !mprotect(jumps->memory, jumps->size, all))
		*line = (char)INT3;
	for (int i = 0; i < TIMES && !executed; i++)
		bench_jumps_follow(jumps);
	if (executed)
		bench_jumps_execute(jumps, executed);
	_exit(0);
}

/*
 * Does a child execute the line? executed: the number of the function's lines
 * that it executes; 0: it follows the chain.
 */
static bool comes_to(struct bench_jumps *jumps, char *line, size_t executed)
{
	pid_t child = fork();
	int status = 0;

	CHECK(child >= 0);
	if (!child)
		run(jumps, line, executed);
	CHECK_EQ(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		CHECK_EQ(WTERMSIG(status), SIGTRAP);
	else
		CHECK_EQ(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

static void check_chain(size_t chained)
{
	struct bench_jumps jumps;

	make(&jumps, chained);
	CHECK(!comes_to(&jumps, NULL, 0));
	for (size_t i = 0; i < chained; i++)
		CHECK(comes_to(&jumps, jumps.memory + i * BENCH_JUMPS_LINE, 0));
	bench_jumps_fini(&jumps);
}

TEST(a_chain_goes_through_each_of_its_lines)
{
	check_chain(LINES);
	check_chain(LINES / 8 * 7);
}

TEST(a_function_executes_as_many_lines_as_it_is_told)
{
	struct bench_jumps jumps;

	make(&jumps, LINES);
	for (size_t n = 1; n <= LINES; n += 9) {
		char *line = jumps.end - n * BENCH_JUMPS_LINE;

		CHECK(comes_to(&jumps, line, n));
		CHECK(!comes_to(&jumps, line - 1, n));
		CHECK(comes_to(&jumps, jumps.end, n));
	}
	bench_jumps_fini(&jumps);
}
