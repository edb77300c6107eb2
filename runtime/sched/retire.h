/* SPDX-License-Identifier: MIT */
/*
 * Retiring: before a seccomp filter is installed that may forbid the runtime's calls,
 * all carriers go to sleep for good. By then all user threads are on their hosts, and
 * they stay there.
 */
#ifndef FLEXSC_RUNTIME_RETIRE_H
#define FLEXSC_RUNTIME_RETIRE_H

#include <stdbool.h>

struct carrier;

/*
 * Make all carriers retire. The monitor and the maker have ended, so no carrier is
 * adopted or created any more. The loops give up io_uring, the module and epoll sets,
 * because a thread that wakes from one makes further system calls, which the filter may
 * forbid.
 * On return, carriers and syscall threads sleep on futexes, or are about to. A stuck
 * carrier retires when it is back.
 */
void flexsc__carriers_retire(void);

/*
 * Carrier c, on its own stack: retire if carriers have to. If c has an heir, or a
 * filter may forbid c's calls by now, c sleeps here for good. False: carriers don't
 * have to retire.
 */
bool flexsc__carrier_retire(struct carrier *c);

/* In a forked child: forget that carriers had to retire. */
void flexsc__retire_forget(void);

#endif /* FLEXSC_RUNTIME_RETIRE_H */
