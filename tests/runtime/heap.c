/* SPDX-License-Identifier: MIT */
/* The heap of the runtime of flexsc run, tested from inside. */
#include "tests/harness/harness.h"
#include "runtime/base/heap.c"

#define BLOCKS		(2 * CHUNK / 1024)

/*
 * Simulates another thread that is taking a chunk into use: it has stored the start
 * of the chunk, but not its end. The stored end, of the previous chunk, is beyond
 * the new chunk.
 */
static void stop_between_two_stores(void)
{
	char *chunk = heap_map(2 * CHUNK);

	CHECK(chunk);
	CHECK_EQ(mprotect(chunk + CHUNK, CHUNK, PROT_NONE), 0);
	heap.chunk = chunk;
	heap.end = chunk + 2 * CHUNK;
	lock(&heap.lock);
}

TEST(a_child_allocates_after_a_fork_at_any_time)
{
	int pid;

	stop_between_two_stores();
	pid = test_fork();
	if (!pid) {
		flexsc__heap_forked();
		for (unsigned int i = 0; i < BLOCKS; i++)
			memset(flexsc__heap_malloc(900), 1, 900);
		test_leave();
	}
	test_reap(pid);
}
