/* SPDX-License-Identifier: MIT */
/*
 * The counters of a live process. Its loops and the runtime of flexsc run
 * publish them in memfds. This file finds these among the process's
 * descriptors, without disturbing the process.
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
	struct flexsc_stats_cores *cores;	/* of each loop; zero without
						 * kernel_cores */
	unsigned int loops_count;
	struct run_page *run;	/* NULL: no user threads, or not under flexsc run */
};

/*
 * Read a process's counters. Returns 0, also if the process publishes none;
 * -ENOENT: no such process; or the error of reading its descriptors.
 */
int process_read(pid_t pid, struct process *process);
void process_free(struct process *process);

/* Has the process loaded the runtime of flexsc run? */
bool process_has_runtime(pid_t pid);

/* Does this loop belong to a spare carrier that has never run anything? */
bool process_is_unused(const struct process *process,
		       const struct flexsc_stats_page *loop);

/*
 * Number of calls of a loop that were executed on this core by syscall threads or by a
 * polling kernel thread. 0 without kernel_cores.
 */
uint64_t process_core_calls(const struct process *process, unsigned int loop,
			    unsigned int core);

/* Number of system calls made by the loops of the process's carriers. */
uint64_t process_loop_calls(const struct process *process);

#endif /* FLEXSC_PROCESS_H */
