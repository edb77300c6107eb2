/* SPDX-License-Identifier: MIT */
/* poll(2) of one descriptor. aarch64 has only ppoll(2). Any thread. */
#ifndef FLEXSC_POLL_H
#define FLEXSC_POLL_H

#include <poll.h>
#include <time.h>

#include "ask.h"

/*
 * poll() or ppoll() without a time limit: its number, and its third argument. The first
 * two arguments are the struct pollfd and 1, the others 0.
 */
#ifdef SYS_poll
#define POLL_NR		SYS_poll
#define POLL_FOREVER	(-1ULL)
#else
#define POLL_NR		SYS_ppoll
#define POLL_FOREVER	0ULL
#endif

/* Poll without waiting. Returns -EFAULT if the struct pollfd isn't readable. */
static inline long poll_now(uint64_t one)
{
#ifdef SYS_poll
	return ask(SYS_poll, one, 1, 0, 0, 0, 0);
#else
	/* Not constant: the kernel writes the remaining time, and qemu requires that. */
	struct timespec none = { 0 };

	return ask(SYS_ppoll, one, 1, PTR(&none), 0, 0, 0);
#endif
}

#endif /* FLEXSC_POLL_H */
