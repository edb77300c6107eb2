/* SPDX-License-Identifier: MIT */
/*
 * Work of a program between its system calls, always the same: units, of which
 * each period of 256 executes the same instructions with the same data. So the
 * time that a period takes tells how fast instructions are executed.
 *
 *	tree	like a transformation of documents: 1,535 nodes in 48 KiB,
 *		64 functions, of which each node has one, and branches that
 *		depend on what they find. A unit goes down ten levels.
 *	heap	like a program with many objects: a ring of 4,096 in 256 KiB. A
 *		unit goes on by 16 of them, and counts in some.
 *
 * One thread has a work. Nothing in it depends on addresses or chance: what a
 * period adds to the sum is equal in every build.
 */
#ifndef FLEXSC_BENCH_WORK_H
#define FLEXSC_BENCH_WORK_H

#include <stdint.h>

#define BENCH_WORK_PERIOD	256

struct bench_work {
	void (*unit)(struct bench_work *work);
	void *memory;		/* nodes or objects */
	void *place;		/* heap: the object that is next */
	uint32_t next;		/* the unit's number in its period */
	uint32_t sum;		/* of all units, and nothing else keeps them */
	uint32_t period;	/* what a period adds to the sum */
	uint64_t units;		/* done since the work was made */
};

/* 0, or 1 after a line on stderr. */
int bench_work_init(struct bench_work *work, const char *name);
void bench_work_fini(struct bench_work *work);

/*
 * At the end of a period: 0 if each unit has been done as it had to, or 1 after
 * a line on stderr.
 */
int bench_work_check(const struct bench_work *work);

static inline void bench_work_run(struct bench_work *work, unsigned int units)
{
	for (unsigned int i = 0; i < units; i++)
		work->unit(work);
}

#endif /* FLEXSC_BENCH_WORK_H */
