/* SPDX-License-Identifier: MIT */
/* A loop's counters, which count from its creation: flexsc-stats(3). */
#ifndef FLEXSC_STATS_H
#define FLEXSC_STATS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct flexsc_loop;

/* New versions only append fields. */
struct flexsc_stats {
	uint64_t posted;	/* calls accepted */
	uint64_t completed;	/* calls whose result was consumed */
	uint64_t cancelled;	/* calls that ended early on request */
	uint64_t waited;	/* calls that had to wait for an entry */
	uint64_t batches;	/* batches submitted to the engine */
	uint64_t batched;	/* calls in these batches; mean = batched / batches */
	uint64_t mode_switches;	/* system calls made by the library and its threads */
	uint64_t by_inline;	/* calls made inline by the owner */
	uint64_t by_uring;	/* calls executed by io_uring */
	uint64_t by_thread;	/* calls executed by syscall threads; may lag behind */
	uint64_t timers;	/* timers armed, including deadlines */
	uint64_t wakeups;	/* wake-ups of the sleeping loop */
	/* Current values, not counters. */
	uint64_t outstanding;	/* calls posted and not completed */
	uint64_t waiting;	/* outstanding calls that wait for an entry */
	uint64_t entries;	/* entries in the pages */
	uint64_t max_entries;	/* maximum of "entries" */
	uint64_t threads;	/* syscall threads */
	uint64_t max_threads;	/* maximum of "threads" */
	uint64_t bytes;		/* library memory in use for calls */
	uint64_t by_kmod;	/* calls executed by the kernel module */
	uint64_t failed_unseen;	/* calls without a cb that ended with ret < 0 */
};

/* Copy the first size bytes of the counters to stats. Any thread. */
int flexsc_loop_stats(const struct flexsc_loop *loop,
		      struct flexsc_stats *stats, size_t size);

/* For other processes: the name of the memfd with a loop's counters. */
#define FLEXSC_STATS_NAME	"flexsc-stats"
#define FLEXSC_STATS_MAGIC	0x637378656c66ULL	/* "flexsc" */

struct flexsc_stats_page {
	uint64_t magic;
	uint32_t size;		/* of the whole structure */
	int32_t tid;		/* thread id of the owner */
	char engine[16];
	struct flexsc_stats stats;
};

/*
 * Calls by the core where they were executed, without those that the owner made. With
 * the option kernel_cores, the memfd has this structure at the offset
 * FLEXSC_STATS_CORES.
 */
#define FLEXSC_STATS_CORES	4096U
#define FLEXSC_STATS_CORES_MAX	1024U

struct flexsc_stats_cores {
	/*
	 * 1 + the core whose kernel thread takes the loop's requests: it has executed
	 * the calls that by_uring counts. 0: there is none.
	 */
	uint64_t poller;
	uint64_t by_thread[FLEXSC_STATS_CORES_MAX];	/* calls executed by syscall
							 * threads */
};

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_STATS_H */
