/* SPDX-License-Identifier: MIT */
/*
 * Thread-local storage that nearly fills the stacks of the runtime's own threads.
 * libc leaves room for it on the stacks that it allocates.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "threads.h"

static __thread volatile char large[251000];

static void *use_it(void *arg)
{
	int *fds = arg;
	char byte;

	for (size_t i = 0; i < sizeof(large); i += 4096)
		large[i]++;
	/* These calls may run on any thread of the runtime. */
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	CHECK_EQ(fsync(fds[2]), 0);
	for (size_t i = 0; i < sizeof(large); i += 4096)
		CHECK_EQ(large[i], 1);
	return arg;
}

TEST(threads_have_large_thread_local_storage)
{
	pthread_t threads[8];
	int fds[3];

	CHECK_EQ(pipe(fds), 0);
	fds[2] = memfd_create("large", 0);
	CHECK(fds[2] >= 0);
	start_all(threads, 8, use_it, fds);
	usleep(10000);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(write(fds[1], "x", 1), 1);
	join_all(threads, 8);
}
