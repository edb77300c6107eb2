/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of different kinds, by user threads: files whose position is
 * shared, terminals, sockets that wait for more, and what was closed meanwhile.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "threads.h"

enum { SHARERS = 8, RECORDS = 2000, RECORD = 64 };

static int shared[SHARERS];
static atomic_uint seen[SHARERS * RECORDS];

/* A file of no name, by one descriptor and copies of it. */
static void open_shared(void)
{
	shared[0] = open(".", O_TMPFILE | O_RDWR, 0600);
	CHECK(shared[0] >= 0);
	for (int i = 1; i < SHARERS; i++)
		shared[i] = i % 2 ? shared[0] : dup(shared[0]);
}

static ssize_t write_somehow(int fd, const struct iovec *record, int way)
{
	switch (way % 3) {
	case 0:
		return write(fd, record->iov_base, record->iov_len);
	case 1:
		return writev(fd, record, 1);
	default:
		return pwritev2(fd, record, 1, -1, 0);
	}
}

static ssize_t read_somehow(int fd, const struct iovec *record, int way)
{
	switch (way % 3) {
	case 0:
		return read(fd, record->iov_base, record->iov_len);
	case 1:
		return readv(fd, record, 1);
	default:
		return preadv2(fd, record, 1, -1, 0);
	}
}

static void *write_records(void *arg)
{
	int number = (int)(intptr_t)arg;
	char text[RECORD + 1];
	struct iovec record = { text, RECORD };

	for (int i = 0; i < RECORDS; i++) {
		snprintf(text, sizeof(text), "%*d", RECORD,
			 number * RECORDS + i);
		CHECK_EQ(write_somehow(shared[number], &record, i), RECORD);
	}
	return NULL;
}

static void *read_records(void *arg)
{
	int number = (int)(intptr_t)arg;
	char text[RECORD + 1] = "";
	struct iovec record = { text, RECORD };
	ssize_t n;

	for (int i = 0; (n = read_somehow(shared[number], &record, i)) > 0; i++) {
		CHECK_EQ(n, RECORD);
		CHECK(atoi(text) < SHARERS * RECORDS);
		seen[atoi(text)]++;
	}
	CHECK_EQ(n, 0);
	return NULL;
}

static void share(void *(*run)(void *))
{
	pthread_t threads[SHARERS];

	for (intptr_t i = 0; i < SHARERS; i++)
		threads[i] = start(run, (void *)i);
	for (int i = 0; i < SHARERS; i++)
		join(threads[i]);
}

TEST_LIMIT(a_shared_position_counts_every_byte_once, 60)
{
	const off_t size = (off_t)SHARERS * RECORDS * RECORD;

	enter_scratch();
	open_shared();
	share(write_records);
	CHECK_EQ(lseek(shared[0], 0, SEEK_CUR), size);
	CHECK_EQ(lseek(shared[0], 0, SEEK_END), size);
	CHECK_EQ(lseek(shared[0], 0, SEEK_SET), 0);
	share(read_records);
	for (int i = 0; i < SHARERS * RECORDS; i++)
		CHECK_EQ(seen[i], 1);
	leave_scratch();
}
