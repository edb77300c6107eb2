/* SPDX-License-Identifier: MIT */
/*
 * What the runtime of flexsc run counts, and the page with the counters: a memfd named
 * RUN_PAGE_NAME, which other processes of the same user find in /proc/PID/fd and read.
 * Each carrier has a block of its own. Host threads, of which there may be thousands,
 * share RUN_PAGE_HOSTS blocks.
 *
 * The runtime counts with counters.h. report.h formats the page as text, both in the
 * runtime and in the command. Both must be of one build, because the layout may change:
 * see RUN_PAGE_MAGIC and "block".
 */
#ifndef FLEXSC_RUNTIME_RUN_PAGE_H
#define FLEXSC_RUNTIME_RUN_PAGE_H

#include <stdint.h>

#define RUN_PAGE_NAME	"flexsc-run-stats"
#define RUN_PAGE_MAGIC	0x326e757278656c66ULL	/* "flexrun2" */
#define RUN_PAGE_HOSTS	8U	/* blocks that host threads share */

/* How a user thread's call was made. Each call is counted once, at its end. */
#define RUN_WAYS(WAY)							\
	WAY(PLAINLY, "plainly", "made inline: they don't wait")	\
	WAY(EXPOSED, "exposed", "made inline, where signals may interrupt them") \
	WAY(POSTED, "posted", "posted to a carrier's loop")		\
	WAY(FUTEX_WAIT, "futex_waits", "futex waits in user space")	\
	WAY(FUTEX_WAKE, "futex_wakes", "futex wake-ups in user space")	\
	WAY(POLLED, "polled", "polls that waited in a carrier's loop")	\
	WAY(SLEPT, "slept", "sleeps: timers of a carrier's loop")	\
	WAY(ANSWERED, "answered", "answered without a system call")	\
	WAY(KERNEL_WAIT, "kernel_waits", "futex waits in the kernel")	\
	WAY(KERNEL_WAKE, "kernel_wakes", "futex wake-ups in the kernel") \
	WAY(ON_HOST, "on_host", "made by the thread's own kernel thread") \
	WAY(NATIVELY, "natively", "made by event loops on their hosts")

enum way {
#define WAY(name, text, meaning) WAY_##name,
	RUN_WAYS(WAY)
#undef WAY
	WAYS
};

/* Why a user thread returned to its host: a system call's number, or one of these. */
enum cause {
	CAUSE_CALLS = 512,	/* below this: system calls' numbers */
	CAUSE_SIGNAL = CAUSE_CALLS,	/* a signal or a cancellation */
	CAUSE_KEPT,	/* it kept its carrier, so the monitor moved it */
	CAUSE_ENTRY,	/* its carrier's loop had no free entry */
	CAUSE_ENDS,	/* the thread ends */
	CAUSE_FAULT,	/* the program faulted */
	CAUSE_ANCHORED,	/* anchored: it may compute on its host only */
	CAUSE_UNKNOWN,	/* a call with an unknown number */
#undef freopen64	/* musl's <stdio.h> defines this name as a macro */
#define SYMBOL(symbol)	CAUSE_##symbol,
#define CALL(...)
#define POINT(...)
#define MADE(...)
#define OWN(...)
#include "runtime/base/symbols.def"
	CAUSES
};

/* What a carrier does. Each counter is a line of the report. */
#define RUN_COUNTERS(COUNTER)						\
	COUNTER(switches, "times a carrier ran a user thread")		\
	COUNTER(given, "user threads passed to a carrier")	\
	COUNTER(steals, "times a carrier stole user threads")	\
	COUNTER(stolen, "user threads stolen")			\
	COUNTER(wakes, "carriers woken to share work")			\
	COUNTER(spins, "times a carrier polled before it slept") \
	COUNTER(found, "polls that found work")			\
	COUNTER(sleeps, "times a carrier slept")			\
	COUNTER(handovers, "times an event loop was found to be a listener") \
	COUNTER(adoptions, "times a carrier took over from one that was stuck " \
			   "in a call")

/* Counts of one carrier, or of several host threads. */
struct counters {
#define COUNTER(name, meaning) uint64_t name;
	RUN_COUNTERS(COUNTER)
#undef COUNTER
	uint64_t ways[WAYS];
	uint64_t departures;	/* user threads that left their hosts */
	uint64_t own;		/* system calls besides the program's */
	uint64_t started, ended;	/* user threads */
	int32_t tid;		/* of the carrier; 0 for host threads */
} __attribute__((aligned(64)));

struct run_page {
	uint64_t magic;
	uint32_t block;		/* sizeof(struct counters) */
	uint32_t carriers;	/* without spares */
	uint32_t room;		/* number of blocks before those of the host threads */
	uint32_t spares;	/* spares made so far */
	uint32_t stuck;		/* stuck carriers, at the monitor's last check */
	int32_t pid;
	uint64_t begin;		/* CLOCK_MONOTONIC, ns */
	char engine[16];
	char program[16];
	uint64_t causes[CAUSES];	/* times user threads returned to their hosts */
	/* first of carriers and spares, then of host threads */
	struct counters blocks[];
};

#endif /* FLEXSC_RUNTIME_RUN_PAGE_H */
