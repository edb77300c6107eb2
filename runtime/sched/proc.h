/* SPDX-License-Identifier: MIT */
/*
 * The files "syscall" and "status" of carriers in /proc, which stay open. The monitor
 * reads them, and, after the monitor's end, the thread that retires the carriers. Hosts
 * read "status" (identity.h).
 */
#ifndef FLEXSC_RUNTIME_PROC_H
#define FLEXSC_RUNTIME_PROC_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/status.h"

struct carrier;

/* The calling carrier: open its files. Without /proc the descriptors are negative. */
void flexsc__proc_open(struct carrier *c);
void flexsc__proc_close(struct carrier *c);

/* Read values of the carrier's "status" file. */
void flexsc__proc_status(const struct carrier *c, struct status_value *values,
			 size_t n);

/*
 * Store the call that c's kernel thread is blocked in into c->stuck. True: it is in no
 * call, because it runs or only lacks a processor.
 */
bool flexsc__proc_call(struct carrier *c);

#endif /* FLEXSC_RUNTIME_PROC_H */
