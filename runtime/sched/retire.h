/* SPDX-License-Identifier: MIT */
/*
 * Retiring: all carriers sleep for good, before a filter that may forbid the runtime's
 * calls. It never ends. All user threads are on their hosts, and stay.
 */
#ifndef FLEXSC_RUNTIME_RETIRE_H
#define FLEXSC_RUNTIME_RETIRE_H

#include <stdbool.h>

struct carrier;

/*
 * Have all carriers retire. The monitor has ended, so no carrier is adopted any more; no
 * spare is made any more. The carriers' loops give up io_uring and epoll sets, because a
 * thread that waits in one makes further calls when it wakes. When this returns, carriers
 * and syscall threads sleep on futexes, or are about to. A carrier that is stuck retires
 * when it is back.
 */
void flexsc__carriers_retire(void);

/*
 * Carrier c, on its own stack: retire if carriers are to. If c has an heir, or it is too
 * late to enter the kernel, c sleeps here and this doesn't return. False: carriers aren't
 * to retire.
 */
bool flexsc__carrier_retire(struct carrier *c);

/* In a forked child. */
void flexsc__retire_forget(void);

#endif /* FLEXSC_RUNTIME_RETIRE_H */
