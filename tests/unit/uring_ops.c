/* SPDX-License-Identifier: MIT */
/*
 * syscalls.tbl says which calls io_uring has an operation for, uring_ops.c
 * how; the two agree on every call.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../harness.h"
#include "lib/engine/uring_ops.h"
#include "lib/calls/table.h"

#define LOWER	0x1000U		/* a size, a count, a length */

static struct timespec when = { 0, 1 };
static struct pollfd never;	/* ready */
static char memory[64];

/* Arguments that every translation takes, for most calls. */
static struct flexsc_entry plausible(unsigned int nr)
{
	struct flexsc_entry entry;

	memset(&entry, 0, sizeof(entry));
	entry.nr = (uint16_t)nr;
	entry.args[0] = 3;
	entry.args[1] = (uintptr_t)memory;
	entry.args[2] = 8;
	return entry;
}

static void set_args(struct flexsc_entry *entry, uint64_t a, uint64_t b,
		     uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	const uint64_t args[] = { a, b, c, d, e, f };

	memcpy(entry->args, args, sizeof(args));
}

static struct flexsc_entry arguments(unsigned int nr)
{
	struct flexsc_entry entry = plausible(nr);
	uint64_t path = (uintptr_t)"path", ptr = (uintptr_t)memory;
	uint64_t time = (uintptr_t)&when;

	switch (nr) {
	case SYS_nanosleep:
		set_args(&entry, time, 0, 0, 0, 0, 0);
		break;
	case SYS_clock_nanosleep:
		set_args(&entry, CLOCK_MONOTONIC, 0, time, 0, 0, 0);
		break;
	case SYS_splice:
		set_args(&entry, 3, 0, 4, 0, LOWER, 0);
		break;
	case SYS_madvise:
		set_args(&entry, ptr, LOWER, 0, 0, 0, 0);
		break;
	case SYS_setxattr:
	case SYS_getxattr:
		set_args(&entry, path, ptr, ptr, LOWER, 0, 0);
		break;
#ifdef SYS_poll
	case SYS_poll:
		set_args(&entry, (uintptr_t)&never, 1, -1ULL, 0, 0, 0);
		break;
#endif
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
		set_args(&entry, 3, ptr, 1, -1ULL, 0, 0);
		break;
	default:
		break;
	}
	return entry;
}

static bool prepare(const struct flexsc_entry *entry, struct io_uring_sqe *sqe)
{
	/* What a request before it left there must not show. */
	memset(sqe, 0xa5, sizeof(*sqe));
	return flexsc__uring_prepare(entry, sqe, true);
}

TEST(every_operation_in_the_table_has_a_translation)
{
	unsigned int n = 0;
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	never = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	for (unsigned int nr = 0; nr < flexsc__table_size; nr++) {
		const struct table_row *row = flexsc__table_row(nr);
		struct flexsc_entry entry = arguments(nr);
		struct io_uring_sqe sqe;

		if (!row->op)
			continue;
		if (!prepare(&entry, &sqe))
			test_fail(__FILE__, __LINE__, "%s has none", row->name);
		if (sqe.opcode != row->op)
			test_fail(__FILE__, __LINE__,
				  "%s: operation %u, in the table %u",
				  row->name, sqe.opcode, row->op);
		if (sqe.flags || sqe.ioprio || sqe.personality)
			test_fail(__FILE__, __LINE__, "%s: something is left",
				  row->name);
		n++;
	}
	test_note("%u calls", n);
	CHECK(n >= 50);
}

TEST(no_other_call_has_one)
{
	for (unsigned int nr = 0; nr < flexsc__table_size; nr++) {
		const struct table_row *row = flexsc__table_row(nr);
		struct flexsc_entry entry = arguments(nr);
		struct io_uring_sqe sqe;

		if (!row->op && prepare(&entry, &sqe))
			test_fail(__FILE__, __LINE__, "%s", row->name);
	}
}

/* Sizes that an operation would cut to 32 bits are left to the plain call. */
TEST(large_numbers_are_not_cut)
{
	static const unsigned int calls[] = {
		SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_readv,
		SYS_writev, SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2,
		SYS_sendto, SYS_recvfrom, SYS_tee, SYS_fadvise64,
		SYS_sync_file_range,
	};
	struct io_uring_sqe sqe;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		struct flexsc_entry entry = plausible(calls[i]);

		CHECK(prepare(&entry, &sqe));
		entry.args[2] = (1ULL << 32) + 1;
		if (prepare(&entry, &sqe))
			test_fail(__FILE__, __LINE__, "%s",
				  flexsc__table_row(calls[i])->name);
	}
}

/* Any arguments at all: refused or translated, without looking at memory. */
TEST(random_arguments_are_harmless)
{
	struct io_uring_sqe sqe;

	for (unsigned int i = 0; i < MANY(1000000); i++) {
		struct flexsc_entry entry;

		memset(&entry, 0, sizeof(entry));
		entry.nr = (uint16_t)(test_random() % flexsc__table_size);
		for (unsigned int a = 0; a < 6; a++)
			entry.args[a] = test_random() >> test_random() % 64;
		if (prepare(&entry, &sqe))
			CHECK_EQ(sqe.opcode, flexsc__table_row(entry.nr)->op);
	}
}

TEST(results_are_those_of_the_plain_call)
{
	struct flexsc_entry entry = plausible(SYS_nanosleep);

	CHECK_EQ(flexsc__uring_result(&entry, -ETIME), 0);
	CHECK_EQ(flexsc__uring_result(&entry, -ECANCELED), -ECANCELED);
	entry.nr = SYS_read;
	CHECK_EQ(flexsc__uring_result(&entry, -ETIME), -ETIME);
	CHECK_EQ(flexsc__uring_result(&entry, 17), 17);
	for (int code = 512; code <= 516; code++)
		CHECK_EQ(flexsc__uring_result(&entry, -code), -EINTR);
	CHECK_EQ(flexsc__uring_result(&entry, -511), -511);
}
