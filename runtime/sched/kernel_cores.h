/* SPDX-License-Identifier: MIT */
/*
 * The cores that execute the program's system calls (flexsc run --kernel-cores; OSDI
 * 2010, sections 3.5 and 4.2). The runtime's own threads run on the other cores of the
 * process:
 *
 *	carriers	run the program's code
 *	maker, spares	a spare becomes a carrier, and inherits the maker's cores
 *	monitor		has to move computing threads off carriers, also while pollers
 *			or syscall threads keep the kernel's cores busy
 *
 * Pollers, io_uring's workers and syscall threads run on the listed cores: the library's
 * option kernel_cores. flexsc run moves itself to the other cores before it executes the
 * program, so the program's hosts and children need no rule here.
 *
 * Called by the thread that starts the runtime's threads: runtime/runtime.c.
 */
#ifndef FLEXSC_RUNTIME_KERNEL_CORES_H
#define FLEXSC_RUNTIME_KERNEL_CORES_H

#include <sched.h>
#include <stddef.h>

/*
 * Read FLEXSC_KERNEL_CORES. A forked child keeps its parent's list, even if the program
 * has removed the variable. -EINVAL: the list can't be used; "why" has the reason.
 */
int flexsc__kernel_cores_init(char *why, size_t size);

/* The list, for the library's option; NULL: calls execute on the program's cores. */
const char *flexsc__kernel_cores(void);

/* Number of cores for carriers. */
unsigned int flexsc__kernel_cores_rest(void);

/*
 * Threads that the caller makes between these two calls run on the other cores. The
 * caller itself then gets its own cores back, which may include the listed ones.
 */
void flexsc__kernel_cores_leave(cpu_set_t *own);
void flexsc__kernel_cores_return(const cpu_set_t *own);

#endif /* FLEXSC_RUNTIME_KERNEL_CORES_H */
