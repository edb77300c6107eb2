// SPDX-License-Identifier: MIT
/*
 * Cancellation (ATC 2011, section 4.2): an entry that hasn't started never does, an
 * executing entry is interrupted, and no other entry is. Runs in a guest, as root.
 */
#include "raw.h"

RAW_TEST(an_entry_cancelled_before_it_starts_never_does)
{
	enum { COUNT = 64 };
	char bytes[COUNT];

	for (uint32_t i = 0; i < COUNT; i++)
		raw_post(&raw, i, i % 3 ? 0 : DEFER, SYS_write, fds[1], &bytes[i], 1);
	for (uint32_t i = 0; i < COUNT; i++)
		if (i % 2)
			CHECK(raw_cancel(&raw, i, FLEXSC_SUBMITTED));
	raw_finish(&raw, COUNT);
	for (uint32_t i = 0; i < COUNT; i++)
		CHECK_EQ(raw.entries[i].ret, i % 2 ? -ECANCELED : 1);
	CHECK_EQ(read(fds[0], bytes, COUNT), COUNT / 2);
	CHECK_EQ(raw_shown(NULL, " cancelled "), 0);
}

/* The same while other entries wait in the kernel, and no thread is free. */
RAW_TEST(a_cancelled_entry_ends_while_others_wait)
{
	enum { COUNT = 32 };
	static char bytes[COUNT];
	int fds[COUNT][2];

	for (uint32_t i = 0; i < COUNT; i++) {
		CHECK_EQ(pipe(fds[i]), 0);
		raw_post(&raw, i, DEFER, SYS_read, fds[i][0], &bytes[i], 1);
	}
	for (uint32_t i = COUNT / 2; i < COUNT; i++)
		CHECK(raw_cancel(&raw, i, FLEXSC_SUBMITTED));
	raw_finish(&raw, COUNT / 2);
	for (uint32_t i = 0; i < COUNT; i++) {
		if (i < COUNT / 2)
			CHECK_EQ(write(fds[i][1], "x", 1), 1);
		else
			CHECK_EQ(raw.entries[i].ret, -ECANCELED);
	}
	raw_finish(&raw, COUNT / 2);
	for (uint32_t i = 0; i < COUNT / 2; i++)
		CHECK_EQ(raw.entries[i].ret, 1);
}

/*
 * At random: entries that wait for a byte, and entries that don't wait. Some get
 * their byte, and some are cancelled in any state.
 */
enum { ENTRIES = 48, CANCELS = 20000 };

static struct {
	int fds[2];
	char byte;
	bool posted, reads, written, cancelled;
	int bytes;		/* in the pipe */
} calls[ENTRIES];

static int cancels_early, cancels_busy, completions;

static void post(uint32_t i)
{
	calls[i].posted = true;
	calls[i].written = calls[i].bytes;
	calls[i].cancelled = false;
	calls[i].reads = test_random() % 4;
	if (calls[i].reads)
		raw_post(&raw, i, DEFER, SYS_read, calls[i].fds[0], &calls[i].byte, 1);
	else
		raw_post(&raw, i, DEFER, SYS_getppid);
}

static void check(uint32_t i)
{
	const struct flexsc_entry *entry = &raw.entries[i];

	CHECK(calls[i].posted);
	CHECK_EQ(entry->status, FLEXSC_DONE);
	CHECK(!(entry->nargs & FLEXSC_INTERRUPTED));
	calls[i].posted = false;
	if (calls[i].cancelled &&
	    (entry->ret == -EINTR || entry->ret == -ECANCELED))
		return;
	if (calls[i].reads) {
		CHECK_EQ(entry->ret, 1);
		CHECK(calls[i].written);
		calls[i].bytes = 0;
	} else {
		CHECK_EQ(entry->ret, getppid());
	}
}

static void take(void)
{
	uint32_t i = raw_take(&raw);

	while (i != FLEXSC_NO_ENTRY) {
		uint32_t next = raw.entries[i].link;

		check(i);
		raw.entries[i].status = FLEXSC_FREE;
		raw.seen++;
		completions++;
		i = next;
	}
}

static void stir(uint32_t i)
{
	if (!calls[i].posted) {
		post(i);
	} else if (test_random() % 3 == 0 && !calls[i].written) {
		CHECK_EQ(write(calls[i].fds[1], "x", 1), 1);
		calls[i].written = true;
		calls[i].bytes = 1;
	} else if (!calls[i].cancelled && raw_cancel(&raw, i, FLEXSC_SUBMITTED)) {
		calls[i].cancelled = true;
		cancels_early++;
	} else if (!calls[i].cancelled && raw_cancel(&raw, i, FLEXSC_BUSY)) {
		calls[i].cancelled = true;
		cancels_busy++;
	}
}

RAW_TEST_LIMIT(no_other_entry_is_cancelled, 100)
{
	for (int i = 0; i < ENTRIES; i++)
		CHECK_EQ(pipe(calls[i].fds), 0);
	while (cancels_early + cancels_busy < CANCELS) {
		for (int n = 0; n < 16; n++)
			stir((uint32_t)(test_random() % ENTRIES));
		raw_kick(&raw);
		/* Sometimes the owner executes all entries that can be executed. */
		if (test_random() % 8 == 0)
			CHECK(raw_wait(&raw, test_random() % 4 * MS / 4) >= 0);
		take();
	}
	for (uint32_t i = 0; i < ENTRIES; i++)
		if (calls[i].posted && calls[i].reads && !calls[i].bytes)
			CHECK_EQ(write(calls[i].fds[1], "x", 1), 1),
				calls[i].written = true;
	for (uint32_t i = 0; i < ENTRIES; i++)
		while (calls[i].posted) {
			CHECK(raw_wait(&raw, FOREVER) >= 0);
			take();
		}
	test_note("%d completed; cancelled before they started: %d, while "
		  "they executed: %d; interrupted: %ld",
		  completions, cancels_early, cancels_busy,
		  (long)raw_shown(NULL, " cancelled "));
	CHECK(cancels_early > 100);
	CHECK(cancels_busy > 100);
	CHECK(raw_shown(NULL, " cancelled ") > 100);
	CHECK_EQ(raw_take(&raw), FLEXSC_NO_ENTRY);
}

/*
 * The same while threads execute one entry after the other, and each entry waits for
 * a moment: one of them is cancelled at any time.
 */
RAW_TEST_LIMIT(the_next_entry_of_a_thread_is_not_cancelled, 60)
{
	enum { COUNT = 64, ROUNDS = 300 };
	char byte;

	for (int round = 0; round < ROUNDS; round++) {
		struct timespec { int64_t s, ns; } moment = { 0, 1000 };
		bool cancelled = false;

		for (uint32_t i = 0; i < COUNT; i++)
			if (i != COUNT / 4)
				raw_post(&raw, i, DEFER, SYS_nanosleep, &moment);
			else
				raw_post(&raw, i, DEFER, SYS_read, fds[0], &byte, 1);
		raw_kick(&raw);
		while (!cancelled) {
			cancelled = raw_cancel(&raw, COUNT / 4, FLEXSC_BUSY) ||
				    raw_cancel(&raw, COUNT / 4, FLEXSC_SUBMITTED);
			if (test_random() % 2)
				usleep((useconds_t)(test_random() % 200));
		}
		raw_finish(&raw, COUNT);
		for (uint32_t i = 0; i < COUNT; i++)
			if (i != COUNT / 4)
				CHECK_EQ(raw.entries[i].ret, 0);
			else
				CHECK(raw.entries[i].ret == -EINTR ||
				      raw.entries[i].ret == -ECANCELED);
	}
}

static void post_read(uint32_t i)
{
	raw_post(&raw, i, DEFER, SYS_read, calls[i].fds[0], &calls[i].byte, 1);
	raw_kick(&raw);
	raw_await(&raw, i, FLEXSC_BUSY);
}

static void feed(uint32_t i)
{
	CHECK_EQ(write(calls[i].fds[1], "x", 1), 1);
	raw_finish(&raw, 1);
	CHECK_EQ(raw.entries[i].ret, 1);
}

/*
 * The call ends before its cancellation. By then its thread, which went idle last,
 * executes the next entry.
 */
RAW_TEST(a_late_cancellation_hits_no_entry)
{
	CHECK_EQ(pipe(calls[0].fds), 0);
	CHECK_EQ(pipe(calls[1].fds), 0);
	for (int round = 0; round < 20; round++) {
		post_read(0);
		CHECK(__sync_bool_compare_and_swap(&raw.entries[0].status,
						   FLEXSC_BUSY, FLEXSC_CANCEL));
		feed(0);
		while (raw_shown(NULL, " idle ") != raw.threads)
			usleep(100);
		post_read(1);
		CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_CANCEL, 0), 0);
		usleep(1000);
		CHECK_EQ(raw.entries[1].status, FLEXSC_BUSY);
		feed(1);
	}
	CHECK_EQ(raw_shown(NULL, " cancelled "), 0);
}
