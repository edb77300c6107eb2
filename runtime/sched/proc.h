/* SPDX-License-Identifier: MIT */
/*
 * What /proc shows of a carrier's kernel thread: its "syscall" and its "status". Both
 * files stay open. Only the monitor reads them; after it has ended, the thread that
 * retires the carriers. Readers share the descriptors' positions.
 */
#ifndef FLEXSC_RUNTIME_PROC_H
#define FLEXSC_RUNTIME_PROC_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/status.h"

struct carrier;

/* The calling carrier: open its files. Without /proc their descriptors are negative. */
void flexsc__proc_open(struct carrier *c);
void flexsc__proc_close(struct carrier *c);

/* Read values of the carrier's "status". */
void flexsc__proc_status(const struct carrier *c, struct status_value *values,
			 size_t n);

/*
 * Put the call that c's kernel thread is blocked in into c->stuck. True: it is blocked in
 * none, because it runs, or lacks only a processor.
 */
bool flexsc__proc_call(struct carrier *c);

#endif /* FLEXSC_RUNTIME_PROC_H */
