/* SPDX-License-Identifier: MIT */
/*
 * The counters of a live process: its loops and the runtime of flexsc run
 * publish them in memfds, which are found among its descriptors. The process
 * isn't disturbed.
 */
#ifndef FLEXSC_PROCESS_H
#define FLEXSC_PROCESS_H

#include <flexsc/stats.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/counters/run_page.h"

struct process {
	struct flexsc_stats_page *loops;
	unsigned int loops_count;
	struct run_page *run;	/* NULL: no user thread, or no flexsc run */
};

/*
 * Read a process's counters. 0, also if it publishes none; -ENOENT: there is no
 * such process; or why its descriptors can't be seen.
 */
int process_read(pid_t pid, struct process *process);
void process_free(struct process *process);

/* Has the process the runtime of flexsc run in its memory? */
bool process_has_runtime(pid_t pid);

/* Is this the loop of a spare that has run nothing so far? */
bool process_is_unused(const struct process *process,
		       const struct flexsc_stats_page *loop);

/* System calls that the loops of the process's carriers made. */
uint64_t process_loop_calls(const struct process *process);

#endif /* FLEXSC_PROCESS_H */
