/* SPDX-License-Identifier: MIT */
/*
 * Work: a program's own instructions between its system calls. Work consists of
 * units; 256 units are a period, and all periods execute the same instructions
 * on the same data. So the time of a period measures how fast instructions are
 * executed. There are two kinds:
 *
 * 	tree	like a transformation of documents: 1,535 nodes in 48 KiB.
 * 		A node has one of 64 functions, whose branches depend on the
 * 		node's data. A unit goes down ten levels.
 * 	heap	like a program with many objects: a ring of 4,096 objects in
 * 		256 KiB. A unit visits the next 16 objects, and increments a counter in some.
 *
 * One thread uses a struct bench_work. A period depends neither on addresses
 * nor on chance: it adds the same number to the sum in every build.
 */
#ifndef FLEXSC_STUDY_WORK_H
#define FLEXSC_STUDY_WORK_H

#include <stdint.h>

#define BENCH_WORK_PERIOD	256

struct bench_work {
	void (*unit)(struct bench_work *work);
	void *memory;		/* nodes or objects */
	void *place;		/* heap: the next object; tree: the root */
	uint32_t next;		/* number of the next unit in its period */
	uint32_t sum;		/* sum of all units' results */
	uint32_t period;	/* what a period adds to the sum */
	uint64_t units;		/* units done since the work was made */
};

/*
 * Create the work "tree" or "heap", and run one period of it. Returns 0, or 1 after a
 * message.
 */
int bench_work_init(struct bench_work *work, const char *name);
void bench_work_fini(struct bench_work *work);

/*
 * Call this at the end of a period. Returns 0 if the sum is that of the periods
 * done, or 1 after a message.
 */
int bench_work_check(const struct bench_work *work);

static inline void bench_work_run(struct bench_work *work, unsigned int units)
{
	for (unsigned int i = 0; i < units; i++)
		work->unit(work);
}

#endif /* FLEXSC_STUDY_WORK_H */
