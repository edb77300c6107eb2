/* SPDX-License-Identifier: MIT */
/*
 * A well-behaved process with its own registration. It must get correct results
 * only, whatever other processes do. It runs as another user.
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
		_Atomic uint64_t calls;		/* calls with correct results */
		atomic_bool ending;
	} *shared;
};

void honest_start(struct honest *honest);
/* Fails unless the process makes progress within some time. */
void honest_check(struct honest *honest);
void honest_end(struct honest *honest);

#endif /* FLEXSC_TESTS_HONEST_H */
