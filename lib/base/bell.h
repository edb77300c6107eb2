/* SPDX-License-Identifier: MIT */
/* Writing to an eventfd, to wake a thread that waits for it. Any thread, any handler. */
#ifndef FLEXSC_BELL_H
#define FLEXSC_BELL_H

#include <stdint.h>
#include <sys/uio.h>

#include "syscall.h"

/* A filter may forbid write() alone, and the thread would sleep forever. */
static inline void bell_ring(int fd)
{
	uint64_t one = 1;
	const struct iovec vector = { &one, sizeof(one) };

	if (raw_syscall(SYS_write, (uint64_t)fd, PTR(&one), sizeof(one), 0, 0, 0) < 0)
		raw_syscall(SYS_writev, (uint64_t)fd, PTR(&vector), 1, 0, 0, 0);
}

#endif /* FLEXSC_BELL_H */
