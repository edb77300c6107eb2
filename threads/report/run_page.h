/* SPDX-License-Identifier: MIT */
/*
 * What the runtime of flexsc run counts, and the page that it counts on: a
 * memfd named RUN_PAGE_NAME, which other processes of the same user find in
 * /proc/PID/fd and read. Each carrier has a block of its own; homes, of which
 * there may be thousands, share some. counters.h counts; report.h makes text
 * of it, for the runtime and for the command. Both are of the same build, so
 * the layout may change: RUN_PAGE_MAGIC and "block" tell.
 */
#ifndef FLEXSC_THREADS_RUN_PAGE_H
#define FLEXSC_THREADS_RUN_PAGE_H

#include <stdint.h>

#define RUN_PAGE_NAME	"flexsc-run-stats"
#define RUN_PAGE_MAGIC	0x316e757278656c66ULL	/* "flexrun1" */
#define RUN_PAGE_HOMES	8U	/* blocks that homes share */

/* How a call of a user thread was made. Each is counted once, at its end. */
#define RUN_WAYS(WAY)							\
	WAY(PLAINLY, "plainly", "made on the spot: they don't wait")	\
	WAY(EXPOSED, "exposed", "made on the spot, where signals arrive") \
	WAY(POSTED, "posted", "posted to a carrier's loop")		\
	WAY(FUTEX_WAIT, "futex_waits", "futex waits in user space")	\
	WAY(FUTEX_WAKE, "futex_wakes", "futex wake-ups in user space")	\
	WAY(POLLED, "polled", "polls that waited in a carrier's loop")	\
	WAY(SLEPT, "slept", "sleeps: timers of a carrier's loop")	\
	WAY(ANSWERED, "answered", "answered without a system call")	\
	WAY(KERNEL_WAIT, "kernel_waits", "futex waits in the kernel")	\
	WAY(KERNEL_WAKE, "kernel_wakes", "futex wake-ups that asked the kernel") \
	WAY(AT_HOME, "at_home", "made by the thread's own kernel thread")

enum way {
#define WAY(name, text, meaning) WAY_##name,
	RUN_WAYS(WAY)
#undef WAY
	WAYS
};

/* Why a user thread came home: a system call's number, or one of these. */
enum cause {
	CAUSE_CALLS = 512,	/* numbers below */
	CAUSE_SIGNAL = CAUSE_CALLS,	/* or a cancellation */
	CAUSE_KEPT,	/* the monitor found that it keeps its carrier */
	CAUSE_ENTRY,	/* its carrier's loop had no entry left */
	CAUSE_ENDS,	/* the thread ends */
	CAUSE_FAULT,	/* a fault of the program's */
	CAUSE_UNKNOWN,	/* a call that isn't known */
#define CALL(...)
#define POINT(...)
#define OWN(...)
#define HOME(symbol)		CAUSE_##symbol,
#define FORK(symbol)		CAUSE_##symbol,
#define FORK_JUMP(symbol)	CAUSE_##symbol,
#define WAIT(symbol)		CAUSE_##symbol,
#define TRY(symbol)		CAUSE_##symbol,
#include "../base/symbols.def"
#undef CALL
#undef POINT
#undef OWN
#undef HOME
#undef FORK
#undef FORK_JUMP
#undef WAIT
#undef TRY
	CAUSES
};

/* One kernel thread's, or several homes'. */
struct counters {
	uint64_t switches;	/* user threads run */
	uint64_t ways[WAYS];
	uint64_t given;		/* user threads that came by the inbox */
	uint64_t steals;	/* times it took some from another carrier */
	uint64_t stolen;	/* how many */
	uint64_t wakes;		/* idle carriers woken to share work */
	uint64_t spins;		/* times it looked around before sleeping */
	uint64_t found;		/* of those, found something */
	uint64_t sleeps;
	uint64_t departures;	/* user threads that left home */
	uint64_t own;		/* system calls besides the program's */
	uint64_t started, ended;	/* user threads */
	int32_t tid;		/* of the carrier */
} __attribute__((aligned(64)));

struct run_page {
	uint64_t magic;
	uint32_t block;		/* sizeof(struct counters) */
	uint32_t carriers;
	int32_t pid;
	uint64_t begin;		/* CLOCK_MONOTONIC, ns */
	char engine[16];
	char program[16];
	uint64_t causes[CAUSES];	/* of couplings */
	struct counters blocks[];	/* the carriers', then the homes' */
};

#endif /* FLEXSC_THREADS_RUN_PAGE_H */
