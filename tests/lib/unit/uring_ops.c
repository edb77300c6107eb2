/* SPDX-License-Identifier: MIT */
/*
 * syscalls.tbl lists the calls for which io_uring has an operation. uring_ops.c
 * translates them. The two agree on every call.
 */
#include "tests/harness/harness.h"

#include "lib/engine/uring_fields.h"
#include "lib/engine/uring_ops.h"
#include "lib/calls/call_info.h"

#define LOWER	0x1000U		/* a size, a count, a length */

static struct timespec when = { 0, 1 };
static struct pollfd never;	/* always ready */
static char memory[64];

/* Returns arguments that most calls' translations accept. */
static struct flexsc_entry plausible(unsigned int nr)
{
	struct flexsc_entry entry;

	memset(&entry, 0, sizeof(entry));
	entry.nr = (uint16_t)nr;
	entry.nargs = flexsc__call_info(nr)->nargs;
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
	case SYS_ppoll:
		set_args(&entry, (uintptr_t)&never, 1, 0, 0, 8, 0);
		break;
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
	/* The earlier contents of the request must not show afterwards. */
	memset(sqe, 0xa5, sizeof(*sqe));
	return uring_prepare(sqe, flexsc__call_info(entry->nr)->op, entry,
			     URING_SENDS_TO);
}

TEST(every_operation_in_the_table_has_a_translation)
{
	unsigned int n = 0;
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	never = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	for (unsigned int nr = 0; nr < NR_WORK; nr++) {
		const struct call_info *row = flexsc__call_info(nr);
		struct flexsc_entry entry = arguments(nr);
		struct io_uring_sqe sqe;

		if (!row->op)
			continue;
		if (!prepare(&entry, &sqe))
			test_fail(__FILE__, __LINE__, "%s has no translation", row->name);
		if (sqe.opcode != row->op)
			test_fail(__FILE__, __LINE__,
				  "%s: operation %u, in the table %u",
				  row->name, sqe.opcode, row->op);
		if (sqe.flags || sqe.ioprio || sqe.personality)
			test_fail(__FILE__, __LINE__, "%s: the request still holds old contents",
				  row->name);
		n++;
	}
	test_note("%u calls", n);
	CHECK(n >= 50);
}

/*
 * The field of a request to which each argument goes. The fields are fd, addr, len,
 * off, flags, splice_fd_in and addr3, with one letter each. 'a' to 'f': this
 * argument; '-': 0; '1': 1; 'h': the working directory; 'n': no descriptor; 'p': the
 * one in poll()'s record; 'c': the file's own position; 'w': the flags with
 * MSG_WAITALL; '=': "value".
 */
struct fields {
	const char *name;
	const char *taken;
	uint32_t value;
};

static const struct fields fields[] = {
	{ "read", "abcc---", 0 },
	{ "write", "abcc---", 0 },
	{ "open", "hac-b--", 0 },
	{ "close", "a------", 0 },
	{ "poll", "p---b--", 0 },
	{ "pread64", "abcd---", 0 },
	{ "pwrite64", "abcd---", 0 },
	{ "readv", "abcc---", 0 },
	{ "writev", "abcc---", 0 },
	{ "pipe", "-a-----", 0 },
	{ "madvise", "nab-c--", 0 },
	{ "nanosleep", "na1----", 0 },
	{ "socket", "a-cb---", 0 },
	{ "connect", "ab-c---", 0 },
	{ "accept", "ab-c---", 0 },
	{ "sendto", "abcewf-", 0 },
	{ "recvfrom", "abc-d--", 0 },
	{ "sendmsg", "ab1-w--", 0 },
	{ "recvmsg", "ab1-c--", 0 },
	{ "shutdown", "a-b----", 0 },
	{ "bind", "ab-c---", 0 },
	{ "listen", "a-b----", 0 },
	{ "fsync", "a------", 0 },
	{ "fdatasync", "a---1--", 0 },
	{ "ftruncate", "a--b---", 0 },
	{ "rename", "hahb---", 0 },
	{ "mkdir", "hab----", 0 },
	{ "rmdir", "ha--=--", AT_REMOVEDIR },
	{ "creat", "hab-=--", O_CREAT | O_WRONLY | O_TRUNC },
	{ "link", "hahb---", 0 },
	{ "unlink", "ha-----", 0 },
	{ "symlink", "ha-b---", 0 },
	{ "setxattr", "-bdce-a", 0 },
	{ "fsetxattr", "abdce--", 0 },
	{ "getxattr", "-bdc--a", 0 },
	{ "fgetxattr", "abdc---", 0 },
	{ "fadvise64", "a-cbd--", 0 },
	{ "clock_nanosleep", "nca----", 0 },
	{ "epoll_wait", "abc----", 0 },
	{ "epoll_ctl", "adbc---", 0 },
	{ "waitid", "b-ac-d-", 0 },
	{ "openat", "abd-c--", 0 },
	{ "mkdirat", "abc----", 0 },
	{ "unlinkat", "ab--c--", 0 },
	{ "renameat", "abcd---", 0 },
	{ "linkat", "abcde--", 0 },
	{ "symlinkat", "ba-c---", 0 },
	{ "splice", "ccecfa-", 0 },
	{ "tee", "b-c-da-", 0 },
	{ "sync_file_range", "a-cbd--", 0 },
	{ "ppoll", "p---b--", 0 },
	{ "epoll_pwait", "abc----", 0 },
	{ "fallocate", "adbc---", 0 },
	{ "accept4", "ab-cd--", 0 },
	{ "pipe2", "-a--b--", 0 },
	{ "preadv", "abcd---", 0 },
	{ "pwritev", "abcd---", 0 },
	{ "renameat2", "abcde--", 0 },
	{ "preadv2", "abcd---", 0 },
	{ "pwritev2", "abcdf--", 0 },
	{ "statx", "abdec--", 0 },
	{ "openat2", "abdc---", 0 },
};

/*
 * Returns arguments that differ from each other, where the call's operation accepts
 * that.
 */
static struct flexsc_entry distinct(unsigned int nr)
{
	struct flexsc_entry entry = arguments(nr);

	switch (nr) {
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
#ifdef SYS_poll
	case SYS_poll:
#endif
	case SYS_ppoll:
		return entry;
	case SYS_splice:
		set_args(&entry, 0x20a, 0, 0x20c, 0, 0x20e, 0x20f);
		return entry;
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
		set_args(&entry, 0x20a, 0x20b, 0x20c, -2ULL, 0, 0x20f);
		return entry;
	default:
		set_args(&entry, 0x20a, 0x20b, 0x20c, 0x20d, 0x20e, 0x20f);
		if (nr == SYS_recvfrom || nr == SYS_waitid)
			entry.args[4] = 0;
		if (nr == SYS_recvfrom)
			entry.args[3] = MSG_TRUNC;
		if (nr == SYS_preadv2)
			entry.args[5] = 0;
		if (nr == SYS_pwritev2)
			entry.args[5] = RWF_DSYNC;
		return entry;
	}
}

static char source(const struct flexsc_entry *entry, uint64_t field,
		   uint32_t value)
{
	if (!field)
		return '-';
	if (field == UINT64_MAX)
		return 'c';
	if (field == UINT32_MAX)
		return 'n';
	if (field == (uint32_t)never.fd)
		return 'p';
	if ((int32_t)field == AT_FDCWD)
		return 'h';
	for (unsigned int i = 0; i < 6; i++) {
		if (field == entry->args[i])
			return (char)('a' + i);
		if (field == (entry->args[i] | MSG_WAITALL))
			return 'w';
	}
	return field == value ? '=' : field == 1 ? '1' : '?';
}

TEST(each_argument_goes_to_its_field)
{
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	never = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		const struct fields *f = &fields[i];
		unsigned int nr = 0;
		struct flexsc_entry entry;
		struct io_uring_sqe sqe;
		char taken[8];

		while (nr < flexsc__call_count &&
		       (!flexsc__call_info(nr)->name ||
			strcmp(flexsc__call_info(nr)->name, f->name) != 0))
			nr++;
		/* This machine lacks the call. */
		if (nr == flexsc__call_count)
			continue;
		entry = distinct(nr);
		CHECK(prepare(&entry, &sqe));
		snprintf(taken, sizeof(taken), "%c%c%c%c%c%c%c",
			 source(&entry, (uint32_t)sqe.fd, f->value),
			 source(&entry, sqe.addr, f->value),
			 source(&entry, sqe.len, f->value),
			 source(&entry, sqe.off, f->value),
			 source(&entry, (uint32_t)sqe.rw_flags, f->value),
			 source(&entry, (uint32_t)sqe.splice_fd_in, f->value),
			 source(&entry, sqe.addr3, f->value));
		if (strcmp(taken, f->taken) != 0)
			test_fail(__FILE__, __LINE__, "%s: %s instead of %s",
				  f->name, taken, f->taken);
	}
}

TEST(multishot_requests_have_the_flag)
{
	struct flexsc_entry entry = { .nr = (uint16_t)NR_ACCEPT,
				      .args = { 5, 0, 0, SOCK_CLOEXEC } };
	struct io_uring_sqe sqe;

	CHECK(prepare(&entry, &sqe));
	CHECK_EQ(sqe.opcode, IORING_OP_ACCEPT);
	CHECK_EQ(sqe.fd, 5);
	CHECK_EQ(sqe.addr | sqe.addr2, 0);
	CHECK_EQ(sqe.accept_flags, SOCK_CLOEXEC);
	CHECK_EQ(sqe.ioprio, IORING_ACCEPT_MULTISHOT);
	CHECK_EQ(sqe.flags, 0);
	entry = (struct flexsc_entry){ .nr = (uint16_t)NR_AWAIT, .args = { 6 } };
	CHECK(prepare(&entry, &sqe));
	CHECK_EQ(sqe.opcode, IORING_OP_POLL_ADD);
	CHECK_EQ(sqe.fd, 6);
	CHECK_EQ(sqe.poll32_events, POLLIN);
	entry = (struct flexsc_entry){ .nr = (uint16_t)NR_RECV,
				       .args = { 6, 7, 0, 0 } };
	CHECK(prepare(&entry, &sqe));
	CHECK_EQ(sqe.opcode, IORING_OP_RECV);
	CHECK_EQ(sqe.fd, 6);
	CHECK_EQ(sqe.buf_group, 7);
	CHECK_EQ(sqe.addr | sqe.len, 0);
	CHECK_EQ(sqe.ioprio, IORING_RECV_MULTISHOT);
	CHECK_EQ(sqe.flags, IOSQE_BUFFER_SELECT);
	entry.args[2] = 1;
	entry.args[3] = MSG_DONTWAIT;
	CHECK(prepare(&entry, &sqe));
	CHECK_EQ(sqe.ioprio, 0);
	CHECK_EQ(sqe.msg_flags, MSG_DONTWAIT);
}

TEST(no_other_call_has_a_translation)
{
	for (unsigned int nr = 0; nr < flexsc__call_count; nr++) {
		const struct call_info *row = flexsc__call_info(nr);
		struct flexsc_entry entry = arguments(nr);
		struct io_uring_sqe sqe;

		if (!row->op && prepare(&entry, &sqe))
			test_fail(__FILE__, __LINE__, "%s has a translation", row->name);
	}
}

/* An operation would cut these sizes to 32 bits, so the plain call is made. */
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
			test_fail(__FILE__, __LINE__, "%s: a size above 32 bits",
				  flexsc__call_info(calls[i])->name);
	}
}

/* With these flags an operation waits or succeeds, and the plain call doesn't. */
TEST(calls_that_are_not_polled_are_plain_calls)
{
	static const struct {
		unsigned int nr, argument;
		uint64_t value;
	} plain[] = {
		{ SYS_recvfrom, 3, MSG_ERRQUEUE },
		{ SYS_recvfrom, 3, MSG_OOB },
		{ SYS_recvfrom, 3, MSG_WAITALL | MSG_PEEK },
		{ SYS_recvmsg, 2, MSG_ERRQUEUE },
		{ SYS_recvmsg, 2, MSG_OOB },
		{ SYS_recvmsg, 2, MSG_WAITALL | MSG_PEEK },
		{ SYS_read, 2, 0 },
		{ SYS_write, 2, 0 },
		{ SYS_preadv2, 5, RWF_NOWAIT },
		{ SYS_preadv2, 5, RWF_HIPRI },
		{ SYS_pwritev2, 5, RWF_NOWAIT },
		{ SYS_ppoll, 1, 2 },
		{ SYS_ppoll, 2, LOWER },
		{ SYS_ppoll, 3, LOWER },
	};
	struct io_uring_sqe sqe;

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		struct flexsc_entry entry = arguments(plain[i].nr);

		CHECK(prepare(&entry, &sqe));
		entry.args[plain[i].argument] = plain[i].value;
		if (prepare(&entry, &sqe))
			test_fail(__FILE__, __LINE__, "%s isn't left to the plain call with %#llx",
				  flexsc__call_info(plain[i].nr)->name,
				  (unsigned long long)plain[i].value);
	}
}

#ifdef SYS_poll
TEST(poll_queries_unless_its_poster_has)
{
	struct flexsc_entry entry = arguments(SYS_poll);
	struct io_uring_sqe sqe;
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	never = (struct pollfd){ .fd = fds[1], .events = POLLOUT };
	CHECK(!prepare(&entry, &sqe));
	CHECK(uring_prepare(&sqe, IORING_OP_POLL_ADD, &entry,
			    URING_POLL_WAITS));
	CHECK_EQ(sqe.fd, fds[1]);
}
#endif

/* Any arguments are refused or translated, without access to memory. */
TEST(random_arguments_are_harmless)
{
	struct io_uring_sqe sqe;

	for (unsigned int i = 0; i < MANY(1000000); i++) {
		struct flexsc_entry entry;

		memset(&entry, 0, sizeof(entry));
		entry.nr = (uint16_t)(test_random() % flexsc__call_count);
		entry.nargs = flexsc__call_info(entry.nr)->nargs;
		for (unsigned int a = 0; a < 6; a++)
			entry.args[a] = test_random() >> test_random() % 64;
		if (prepare(&entry, &sqe))
			CHECK_EQ(sqe.opcode, flexsc__call_info(entry.nr)->op);
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
}

#define HAS(op)	(1ULL << IORING_OP_##op)

/* Linux 5.11, 5.19, and 6.0 or later. */
TEST(features_of_sends_are_known_by_operations_of_their_age)
{
	const uint64_t old = HAS(SEND) | HAS(SENDMSG) | HAS(WRITE);

	CHECK_EQ(flexsc__uring_known(old), 0);
	CHECK_EQ(flexsc__uring_known(old | HAS(SOCKET)), URING_SENDS_WHOLE);
	CHECK_EQ(flexsc__uring_known(old | HAS(SOCKET) | HAS(SEND_ZC)),
		 URING_SENDS_WHOLE | URING_SENDS_TO | URING_MULTISHOT);
	CHECK_EQ(flexsc__uring_known(UINT64_MAX),
		 URING_SENDS_WHOLE | URING_SENDS_TO | URING_MULTISHOT);
}

TEST(sends_continue_with_the_rest_if_the_kernel_does_not)
{
	static const unsigned int all[] = { 0, URING_SENDS_TO, URING_SENDS_WHOLE,
		URING_SENDS_WHOLE | URING_SENDS_TO };

	for (unsigned int i = 0; i < 4; i++) {
		bool old = !(all[i] & URING_SENDS_WHOLE);

		CHECK(flexsc__uring_in_parts(IORING_OP_WRITE, all[i]));
		CHECK(flexsc__uring_in_parts(IORING_OP_WRITEV, all[i]));
		CHECK_EQ(flexsc__uring_in_parts(IORING_OP_SEND, all[i]), old);
		CHECK_EQ(flexsc__uring_in_parts(IORING_OP_SENDMSG, all[i]), old);
		CHECK(!flexsc__uring_in_parts(IORING_OP_READ, all[i]));
		CHECK(!flexsc__uring_in_parts(IORING_OP_RECV, all[i]));
		CHECK(!flexsc__uring_in_parts(IORING_OP_CLOSE, all[i]));
	}
}

/* The macros that fill a request for a receive use flags which the table lists. */
TEST(receives_use_the_ring_by_the_flags_of_their_rows)
{
	static const unsigned int receives[] = { SYS_recvfrom, SYS_recvmsg };

	for (unsigned int i = 0; i < 2; i++) {
		const struct call_info *row = flexsc__call_info(receives[i]);

		/* io_uring waits even with any other flag. */
		CHECK_EQ(row->nowait, MSG_DONTWAIT);
		for (uint32_t flag = 1; flag; flag <<= 1)
			CHECK_EQ(sqe_is_polled(flag),
				 !(flag & (row->unpolled | row->all)));
	}
}
