/* SPDX-License-Identifier: MIT */
/*
 * Lines of code, for the instruction cache: a chain of jumps through some
 * lines, and a function that executes others. One thread uses them.
 *
 * A processor fetches ahead along jumps that it can predict, so that lines
 * which aren't in the cache would cost next to nothing. Here each line computes
 * which line comes next, in an order that is another one each time: every jump
 * is predicted wrongly, and nothing but registers is read.
 */
#ifndef FLEXSC_STUDY_JUMPS_H
#define FLEXSC_STUDY_JUMPS_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_JUMPS_LINE	64

struct bench_jumps {
	char *memory;		/* the chain's, then the function's; or NULL */
	size_t size;		/* bytes of the memory */
	char *end;		/* of the function: where it returns */
	uint32_t chained;	/* lines of the chain */
	uint32_t bits;		/* 2^bits steps go through the chain */
	uint64_t chance;
};

/*
 * Make a chain of so many lines, 4096 at most, and a function of so many. 0, or
 * -errno: there is no memory that may be executed; -ENOSYS: the processor isn't
 * an x86-64 one.
 */
int bench_jumps_init(struct bench_jumps *jumps, size_t chained, size_t lines);
void bench_jumps_fini(struct bench_jumps *jumps);

/*
 * Go through all lines of the chain, in random order, some of them twice,
 * unless there are 2^bits lines.
 */
void bench_jumps_follow(struct bench_jumps *jumps);

/* Execute the last so many lines of the function. */
void bench_jumps_execute(const struct bench_jumps *jumps, size_t lines);

#endif /* FLEXSC_STUDY_JUMPS_H */
