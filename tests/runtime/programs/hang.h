/* SPDX-License-Identifier: MIT */
/*
 * Calls that hang and that no signal ends, like calls that wait for a disk, a network
 * or another process.
 *
 * A call that hangs: the parent of a vfork() returns from the kernel only when its child
 * ends. The child runs in the parent's memory, on a separate stack, and uses nothing
 * from libc.
 */
#ifndef FLEXSC_TESTS_HANG_H
#define FLEXSC_TESTS_HANG_H

#include <poll.h>
#include <stdatomic.h>

#include "threads.h"

struct hang {
	atomic_bool begun, let, expired;
	uint64_t ns;	/* the call ends by itself after this time; 0: never */
	char stack[16384] __attribute__((aligned(16)));
};

enum { EXPIRES_MS = 20000 };

/* Returns the process number of the child, which the caller reaps. */
long hang_unreaped(struct hang *hang);
void hang_here(struct hang *hang);

/* A thread's function: hangs once, on a carrier. */
void *hang_once(void *hang);

/* Threads that hang at the same time, each in one of these calls. */
extern struct hang *hangs;

void await_hang(unsigned int i);
void begin_to_hang(pthread_t *threads, unsigned int n);
void let_go(const pthread_t *threads, unsigned int n);

/* Waits for something to read, longer than a call hangs. */
static inline bool has_byte(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, 30000) == 1;
}

#endif /* FLEXSC_TESTS_HANG_H */
