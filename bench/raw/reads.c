/* SPDX-License-Identifier: MIT */
/*
 * bench --raw reads: the cost of completing a read while many are outstanding.
 * Each read waits for an eventfd. Then the same thread writes to the eventfds
 * of the active reads, which complete and are posted again.
 *
 * 	dormant		always the same reads are active
 * 	uniform		all reads are active, in turn, in random order
 *
 * The writes, and the kernel's work in them, are measured separately.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <flexsc/flexsc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/cases.h"
#include "loop.h"
#include "report.h"
#include "ring.h"

#define OTHER_FDS	64

struct reads;

struct reader {
	struct flexsc_cb cb;
	struct reads *reads;
	uint64_t value;
	int fd;
};

struct reads {
	const struct bench_settings *settings;
	struct reader *readers;
	uint64_t outstanding;
	uint64_t active;	/* number of reads that complete */
	uint32_t *order;	/* order of the eventfds; the active ones come first */
	uint64_t next;		/* index in "order" of the next write */
	uint64_t left;		/* completions until the end of the round */
	uint64_t wrong;		/* number of unexpected results */
	double resident;	/* memory that posting all reads took, in bytes */
	struct flexsc_loop *loop;	/* NULL: io_uring by hand */
	struct io_uring ring;
	struct bench_series cost;
	struct bench_series writing;
};

static uint64_t now(void)
{
	return bench_clock(CLOCK_MONOTONIC);
}

static void completed(struct reader *reader)
{
	struct reads *reads = reader->reads;

	reads->wrong += reader->cb.ret != sizeof(reader->value) ||
			reader->value != 1;
	reads->left--;
}

/* Reads through the library. */

static void post(struct reader *reader)
{
	flexsc_loop_call(reader->reads->loop, &reader->cb, SYS_read,
			 (uint64_t)reader->fd, (uintptr_t)&reader->value,
			 sizeof(reader->value), 0, 0, 0);
}

static void was_read(struct flexsc_cb *cb)
{
	struct reader *reader = cb->arg;

	completed(reader);
	post(reader);
	if (!reader->reads->left)
		flexsc_loop_stop(reader->reads->loop);
}

static void turn(struct reads *reads)
{
	flexsc_loop_run(reads->loop);
	flexsc_loop_submit(reads->loop);
}

/* Reads by hand-written io_uring. */

static void post_raw(struct reader *reader)
{
	struct io_uring_sqe *sqe = bench_ring_sqe(&reader->reads->ring);

	io_uring_prep_read(sqe, reader->fd, &reader->value,
			   sizeof(reader->value), (uint64_t)-1);
	io_uring_sqe_set_data(sqe, &reader->cb);
}

static void was_read_raw(struct flexsc_cb *cb)
{
	struct reader *reader = cb->arg;

	completed(reader);
	post_raw(reader);
}

static void turn_raw(struct reads *reads)
{
	while (reads->left) {
		io_uring_submit_and_wait(&reads->ring, 1);
		bench_ring_dispatch(&reads->ring);
	}
	io_uring_submit(&reads->ring);
}

/* Reads in both ways. */

static void write_some(struct reads *reads, uint64_t of)
{
	const uint64_t one = 1;

	for (uint64_t i = 0; i < reads->active; i++) {
		uint32_t first = reads->order[reads->next];

		reads->next = reads->next + 1 < of ? reads->next + 1 : 0;
		reads->wrong += write(reads->readers[first].fd, &one,
				      sizeof(one)) != sizeof(one);
	}
}

static void run(struct reads *reads)
{
	bool all = bench_is(reads->settings->scenario, "uniform");
	uint64_t of = all ? reads->outstanding : reads->active;
	uint64_t each = reads->active;
	uint64_t rounds = (uint64_t)reads->settings->calls / each + 1;
	uint64_t writing = 0, reading = 0;

	for (uint64_t round = 0; round < rounds; round++) {
		uint64_t begin = now(), written;

		reads->left = each;
		write_some(reads, of);
		written = now();
		if (reads->loop)
			turn(reads);
		else
			turn_raw(reads);
		writing += written - begin;
		reading += now() - written;
	}
	bench_series_add(&reads->writing,
			 (double)writing / (double)(rounds * each));
	bench_series_add(&reads->cost,
			 (double)reading / (double)(rounds * each));
}

static int open_all(struct reads *reads)
{
	for (uint64_t i = 0; i < reads->outstanding; i++) {
		struct reader *reader = &reads->readers[i];

		reader->reads = reads;
		reader->cb.arg = reader;
		reader->cb.callback = reads->loop ? was_read : was_read_raw;
		reader->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
		if (reader->fd < 0)
			return bench_failed("eventfd", -errno);
	}
	return 0;
}

static void post_all(struct reads *reads)
{
	double before = bench_resident();

	for (uint64_t i = 0; i < reads->outstanding; i++) {
		if (reads->loop)
			post(&reads->readers[i]);
		else
			post_raw(&reads->readers[i]);
	}
	if (reads->loop)
		flexsc_loop_dispatch(reads->loop);
	else
		io_uring_submit(&reads->ring);
	reads->resident = bench_resident() - before;
}

static void report(struct reads *reads)
{
	bench_report_begin("reads", reads->settings);
	bench_report_series(&reads->cost);
	bench_report_series(&reads->writing);
	bench_report_counts();
	bench_report_count("resident", reads->resident);
	if (reads->loop)
		bench_report_stats(reads->loop);
	bench_report_end();
}

static int measure(struct reads *reads)
{
	if (open_all(reads))
		return 1;
	post_all(reads);
	/* The first round is a warm-up. */
	run(reads);
	reads->cost.count = 0;
	reads->writing.count = 0;
	for (long rep = 0; rep < reads->settings->reps; rep++)
		run(reads);
	if (reads->wrong) {
		fprintf(stderr, "flexsc: bench: reads: %llu wrong results\n",
			(unsigned long long)reads->wrong);
		return 1;
	}
	report(reads);
	return 0;
}

/* Wait until the kernel has released the buffers before they are freed. */
static void end(struct reads *reads)
{
	for (uint64_t i = 0; reads->readers && i < reads->outstanding; i++)
		reads->readers[i].cb.callback = NULL;
	flexsc_loop_destroy(reads->loop);
	if (reads->ring.ring_fd)
		io_uring_queue_exit(&reads->ring);
	bench_series_fini(&reads->cost);
	bench_series_fini(&reads->writing);
}

static int check(const struct bench_settings *settings)
{
	if (!bench_is(settings->variant, "uring") &&
	    !bench_is(settings->variant, "liburing")) {
		fprintf(stderr, "flexsc: bench: reads: variant=%s: give uring "
			"or liburing\n", settings->variant);
		return 1;
	}
	if (!bench_is(settings->scenario, "dormant") &&
	    !bench_is(settings->scenario, "uniform")) {
		fprintf(stderr, "flexsc: bench: reads: scenario=%s: give "
			"dormant or uniform\n", settings->scenario);
		return 1;
	}
	return 0;
}

static int ready(struct reads *reads)
{
	if (!bench_is(reads->settings->variant, "liburing"))
		return bench_loop_create(&reads->loop, reads->settings);
	return bench_pin(reads->settings->core) ||
	       bench_ring_init(&reads->ring);
}

int bench_reads(const struct bench_settings *settings)
{
	struct reads reads = {
		.settings = settings,
		.outstanding = (uint64_t)settings->outstanding,
		.active = (uint64_t)(settings->active < settings->outstanding ?
				     settings->active : settings->outstanding),
	};
	int err = 1;

	if (check(settings) || bench_allow("reads", reads.outstanding + OTHER_FDS))
		return 1;
	reads.readers = bench_memory(reads.outstanding, sizeof(*reads.readers));
	reads.order = bench_order(reads.outstanding, reads.active);
	if (reads.readers && reads.order &&
	    !ready(&reads) &&
	    !bench_series_init(&reads.cost, "ns_per_completion", settings) &&
	    !bench_series_init(&reads.writing, "ns_per_write", settings))
		err = measure(&reads);
	end(&reads);
	free(reads.order);
	free(reads.readers);
	return err;
}
