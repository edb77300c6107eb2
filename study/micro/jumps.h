/* SPDX-License-Identifier: MIT */
/*
 * Lines of code for the instruction cache: a chain of jumps through some lines,
 * and a function that executes other lines. One thread uses them.
 *
 * A processor prefetches along jumps that it can predict, so lines that aren't
 * in the cache would cost next to nothing. Here each line computes the next
 * line, in an order that differs each time. So every jump is mispredicted, and
 * no memory is read as data.
 */
#ifndef FLEXSC_STUDY_JUMPS_H
#define FLEXSC_STUDY_JUMPS_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_JUMPS_LINE	64

struct bench_jumps {
	char *memory;		/* of the chain, then of the function; or NULL */
	size_t size;		/* in bytes */
	char *end;		/* end of the function, where it returns */
	uint32_t chained;	/* lines of the chain */
	uint32_t bits;		/* number of steps through the chain is 2^bits */
	uint64_t chance;
};

/*
 * Make a chain of `chained` lines (at most 4096) and a function of `lines`
 * lines. Returns 0 or -errno: no executable memory; -ENOSYS: not an x86-64
 * processor.
 */
int bench_jumps_init(struct bench_jumps *jumps, size_t chained, size_t lines);
void bench_jumps_fini(struct bench_jumps *jumps);

/*
 * Follow all lines of the chain, in random order. Some are visited twice,
 * unless there are 2^bits lines.
 */
void bench_jumps_follow(struct bench_jumps *jumps);

/* Execute the last n lines of the function. */
void bench_jumps_execute(const struct bench_jumps *jumps, size_t lines);

#endif /* FLEXSC_STUDY_JUMPS_H */
