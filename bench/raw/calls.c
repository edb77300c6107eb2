/* SPDX-License-Identifier: MIT */
/*
 * bench --raw calls: the cost of a call against the size of the batch that it
 * is made in (OSDI 2010, figures 9 and 10). A batch is posted, executed, and
 * every result is consumed by a callback; then comes the next one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <flexsc/flexsc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/cases.h"
#include "loop.h"
#include "report.h"
#include "ring.h"

struct calls {
	unsigned int nr;
	int fd;
	unsigned int batch;
	unsigned int done;	/* completed calls of this batch */
	int64_t expected;
	uint64_t wrong;		/* number of unexpected results */
	struct flexsc_loop *loop;
	struct io_uring ring;
	struct flexsc_cb cbs[BENCH_BATCH_MAX];
	char bytes[BENCH_BATCH_MAX];
};

static void called(struct flexsc_cb *cb)
{
	struct calls *calls = cb->arg;

	calls->done++;
	calls->wrong += cb->ret != calls->expected;
}

/* The calls. */

static int memfd(void)
{
	int fd = memfd_create("flexsc-bench", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, "x", 1) != 1) {
		close(fd);
		return -1;
	}
	return fd;
}

static int choose(struct calls *calls, const char *name)
{
	calls->fd = -1;
	calls->expected = 1;
	if (bench_is(name, "close")) {
		calls->nr = SYS_close;
		calls->expected = -EBADF;
		return 0;
	}
	if (bench_is(name, "getppid")) {
		calls->nr = SYS_getppid;
		calls->expected = getppid();
		return 0;
	}
	if (bench_is(name, "read")) {
		calls->nr = SYS_read;
		calls->fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	} else if (bench_is(name, "pread")) {
		calls->nr = SYS_pread64;
		calls->fd = memfd();
	} else {
		fprintf(stderr, "flexsc: bench: call=%s: give close, read, "
			"pread or getppid\n", name);
		return 1;
	}
	return calls->fd < 0 ? bench_failed(name, -errno) : 0;
}

/* The variants; each function makes one batch. */

/* A plain call needs no callback. */
static void batch_plain(struct calls *calls)
{
	for (unsigned int i = 0; i < calls->batch; i++) {
		long ret = syscall(calls->nr, calls->fd, &calls->bytes[i],
				   1UL, 0UL);

		calls->wrong += (ret < 0 ? -errno : ret) != calls->expected;
	}
}

static void prepare(struct calls *calls, unsigned int i)
{
	struct io_uring_sqe *sqe = bench_ring_sqe(&calls->ring);

	switch (calls->nr) {
	case SYS_close:
		io_uring_prep_close(sqe, calls->fd);
		break;
	case SYS_read:
		io_uring_prep_read(sqe, calls->fd, &calls->bytes[i], 1,
				   (uint64_t)-1);
		break;
	default:
		io_uring_prep_read(sqe, calls->fd, &calls->bytes[i], 1, 0);
		break;
	}
	io_uring_sqe_set_data(sqe, &calls->cbs[i]);
}

static void batch_liburing(struct calls *calls)
{
	for (unsigned int i = 0; i < calls->batch; i++)
		prepare(calls, i);
	calls->done = 0;
	while (calls->done < calls->batch) {
		io_uring_submit_and_wait(&calls->ring, 1);
		bench_ring_dispatch(&calls->ring);
	}
}

static void batch_flexsc(struct calls *calls)
{
	struct flexsc_loop *loop = calls->loop;

	/* Posts in the same way as the typed functions. */
	for (unsigned int i = 0; i < calls->batch; i++)
		if (calls->nr == SYS_pread64)
			flexsc_loop_call(loop, &calls->cbs[i], calls->nr,
					 (uint64_t)calls->fd,
					 (uintptr_t)&calls->bytes[i], 1, 0, 0,
					 0);
		else
			flexsc__call3(loop, &calls->cbs[i], calls->nr,
					  (uint64_t)calls->fd,
					  (uintptr_t)&calls->bytes[i], 1);
	flexsc_loop_run(loop);
}

static int ready(struct calls *calls, const struct bench_settings *settings,
		 void (**batch)(struct calls *calls))
{
	if (bench_is(settings->variant, "plain")) {
		*batch = batch_plain;
		return bench_pin(settings->core);
	}
	if (bench_is(settings->variant, "liburing")) {
		*batch = batch_liburing;
		if (calls->nr == SYS_getppid)
			return bench_failed("getppid as an io_uring request",
					    -EOPNOTSUPP);
		return bench_pin(settings->core) ||
		       bench_ring_init(&calls->ring);
	}
	*batch = batch_flexsc;
	return bench_loop_create(&calls->loop, settings);
}

static int measure(struct calls *calls, const struct bench_settings *settings,
		   void (*batch)(struct calls *calls),
		   struct bench_series *series)
{
	long batches = (settings->calls + settings->batch - 1) /
		       settings->batch;

	for (long rep = -1; rep < settings->reps; rep++) {
		uint64_t begin = bench_clock(CLOCK_MONOTONIC), end;

		for (long i = 0; i < batches; i++)
			batch(calls);
		end = bench_clock(CLOCK_MONOTONIC);
		/* The first repetition is a warm-up. */
		if (rep >= 0)
			bench_series_add(series,
					 (double)(end - begin) /
						 (double)(batches *
							  settings->batch));
	}
	if (calls->wrong)
		fprintf(stderr, "flexsc: bench: %s: %llu wrong results\n",
			settings->call, (unsigned long long)calls->wrong);
	return calls->wrong != 0;
}

static int run(struct calls *calls, const struct bench_settings *settings)
{
	void (*batch)(struct calls *calls);
	struct bench_series series;
	int err;

	if (choose(calls, settings->call) || ready(calls, settings, &batch) ||
	    bench_series_init(&series, "ns_per_call", settings))
		return 1;
	err = measure(calls, settings, batch, &series);
	if (!err) {
		bench_report_begin("calls", settings);
		bench_report_series(&series);
		bench_report_counts();
		if (calls->loop)
			bench_report_stats(calls->loop);
		bench_report_end();
	}
	bench_series_fini(&series);
	return err;
}

int bench_calls(const struct bench_settings *settings)
{
	struct calls *calls = bench_memory(1, sizeof(*calls));
	int err;

	if (!calls)
		return 1;
	calls->batch = (unsigned int)settings->batch;
	for (unsigned int i = 0; i < calls->batch; i++) {
		calls->cbs[i].callback = called;
		calls->cbs[i].arg = calls;
	}
	err = run(calls, settings);
	flexsc_loop_destroy(calls->loop);
	if (calls->ring.ring_fd)
		io_uring_queue_exit(&calls->ring);
	if (calls->fd >= 0)
		close(calls->fd);
	free(calls);
	return err;
}
