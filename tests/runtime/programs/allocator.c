/* SPDX-License-Identifier: MIT */
/*
 * A program with its own allocator (lazy_malloc.c). Before the runtime has started,
 * the allocator calls functions that the runtime interposes, with its own lock held.
 */
#define _GNU_SOURCE
#include "threads.h"

static void *allocate(void *arg)
{
	for (size_t n = 1; n < 1000; n++) {
		char *bytes = malloc(n);

		CHECK(bytes != NULL);
		memset(bytes, 1, n);
		if (n % 100 == 0)
			usleep(10);
		free(bytes);
	}
	return arg;
}

TEST(an_allocator_initializes_itself_with_its_lock_held)
{
	allocate(NULL);
	run_all(8, allocate, NULL);
}
