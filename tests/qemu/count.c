// SPDX-License-Identifier: MIT
/*
 * Guest instructions per call: the time-stamp counter counts them where QEMU
 * runs with -icount shift=0. Prints one line for each measurement.
 */
#include <liburing.h>
#include <stdio.h>
#include <sys/socket.h>

#include "raw.h"

#define ROUNDS	200

static struct raw raw;

static inline uint64_t instructions(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The median: a timer's interrupt falls into some. */
static double median(uint64_t *counts, unsigned int n)
{
	qsort(counts, n, sizeof(*counts), compare);
	return (double)counts[n / 2];
}

static void report(const char *call, const char *way, unsigned int batch,
		   uint64_t *counts)
{
	printf("%-10s %-8s %4u %8.1f\n", call, way, batch,
	       median(counts, ROUNDS) / batch);
	fflush(stdout);
}

struct what {
	const char *name;
	unsigned int nr;
	uint64_t args[4];
	long expected;
};

static void plain(const struct what *what, unsigned int batch)
{
	uint64_t counts[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t begin = instructions();

		for (unsigned int i = 0; i < batch; i++)
			syscall(what->nr, what->args[0], what->args[1],
				what->args[2], what->args[3]);
		counts[r] = instructions() - begin;
	}
	report(what->name, "plain", batch, counts);
}

static void inlined(const struct what *what, unsigned int batch)
{
	uint64_t counts[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t begin = instructions();
		uint32_t n = 0;

		for (uint32_t i = 0; i < batch; i++)
			raw_post(&raw, i, 0, what->nr, what->args[0],
				 what->args[1], what->args[2]);
		while (n < batch) {
			if (syscall(SYS_ioctl, raw.fd, FLEXSC_IOC_WAIT, 0))
				abort();
			n += raw_reap(&raw);
		}
		counts[r] = instructions() - begin;
		CHECK_EQ(raw.entries[0].ret, what->expected);
	}
	report(what->name, "inline", batch, counts);
}

static void nop(unsigned int batch)
{
	uint64_t counts[ROUNDS];
	struct io_uring ring;

	if (io_uring_queue_init(1024, &ring, IORING_SETUP_SINGLE_ISSUER |
				IORING_SETUP_DEFER_TASKRUN))
		return;
	for (int r = 0; r < ROUNDS; r++) {
		uint64_t begin = instructions();

		for (unsigned int i = 0; i < batch; i++)
			io_uring_prep_nop(io_uring_get_sqe(&ring));
		io_uring_submit_and_wait(&ring, batch);
		io_uring_cq_advance(&ring, batch);
		counts[r] = instructions() - begin;
	}
	report("nop", "uring", batch, counts);
	io_uring_queue_exit(&ring);
}

TEST_LIMIT(count, 600)
{
	static char buffer[64];
	const unsigned int batches[] = { 1, 8, 64, 512 };
	int file = open("/tmp/file", O_RDWR | O_CREAT, 0600);
	int pair[2];

	CHECK_EQ(write(file, buffer, sizeof(buffer)), sizeof(buffer));
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	const struct what whats[] = {
		{ "getppid", SYS_getppid, { 0 }, getppid() },
		{ "pread", SYS_pread64,
		  { (uint64_t)file, (uint64_t)buffer, sizeof(buffer) }, 64 },
		{ "recv", SYS_recvfrom,
		  { (uint64_t)pair[0], (uint64_t)buffer, sizeof(buffer) },
		  -EAGAIN },
	};

	raw_open(&raw, 8, 0);
	raw.shared->timeout = UINT64_MAX;
	for (unsigned int b = 0; b < 4; b++)
		nop(batches[b]);
	for (unsigned int w = 0; w < 3; w++) {
		plain(&whats[w], 64);
		for (unsigned int b = 0; b < 4; b++)
			inlined(&whats[w], batches[b]);
	}
	raw_close(&raw);
}
