/* SPDX-License-Identifier: MIT */
/*
 * A well-behaved process with a registration of its own: beside it others do
 * what they like, and it must see right results only. It is another user than
 * they are.
 */
#ifndef FLEXSC_TESTS_HONEST_H
#define FLEXSC_TESTS_HONEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct honest {
	pid_t pid;
	struct {
		_Atomic uint64_t calls;		/* whose results were right */
		atomic_bool ending;
	} *shared;
};

void honest_start(struct honest *honest);
/* Does it get on? It has a while for it. */
void honest_check(struct honest *honest);
void honest_end(struct honest *honest);

#endif /* FLEXSC_TESTS_HONEST_H */
