/* SPDX-License-Identifier: MIT */
/*
 * Another thread changes facts of a descriptor while a function uses them. The
 * changes of that thread must stay. A signal handler takes the place of the other
 * thread, because it runs between any two instructions, even on a single processor.
 */
#include "tests/harness/harness.h"

#include <fcntl.h>
#include <sys/time.h>

#include "lib/base/ask.h"
#include "lib/files/effects.h"
#include "lib/files/fds.h"
#include "lib/files/guard.h"
#include "lib/files/plan.h"
#include "lib/files/private_fd.h"

/* number of signals that arrive while the function runs */
#define SIGNALS		3000U
#define PERIOD_US	20

static uint32_t fd;
static void (*note)(void);
static atomic_uint notes;

static void handle(int signo)
{
	note();
	atomic_fetch_add(&notes, 1);
}

/*
 * Calls prepare(), and then run(), which signals interrupt. If a signal did, the
 * descriptor has all facts of "has" and doesn't have all of "lacks".
 */
static void interrupt(void (*prepare)(void), void (*run)(void),
		      void (*handler)(void), uint32_t has, uint32_t lacks)
{
	const struct sigaction action = { .sa_handler = handle,
					  .sa_flags = SA_RESTART };
	const struct itimerval period = { { 0, PERIOD_US }, { 0, PERIOD_US } };
	const struct itimerval none = { { 0, 0 }, { 0, 0 } };
	unsigned int hits = 0;

	CHECK_EQ(flexsc__plan_init(), 0);
	fd = (uint32_t)socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	note = handler;
	CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &period, NULL), 0);
	while (hits < SIGNALS) {
		unsigned int before;

		prepare();
		before = atomic_load(&notes);
		run();
		if (atomic_load(&notes) == before)
			continue;
		hits++;
		CHECK((fds_known(fd) & has) == has);
		CHECK(!lacks || (fds_known(fd) & lacks) != lacks);
	}
	CHECK_EQ(setitimer(ITIMER_REAL, &none, NULL), 0);
	close((int)fd);
}

static void unmark(void)
{
	flexsc__fds_unmark(fd);
}

static void forget_closed(void)
{
	/* Repeated, so that most signals arrive here. */
	for (unsigned int i = 0; i < 100; i++)
		fds_forget_closed(fd);
}

static void mark(void)
{
	flexsc__fds_mark(fd);
}

TEST(a_wait_that_begins_during_a_close_is_known)
{
	interrupt(unmark, forget_closed, mark, FD_MARKED, 0);
}

static void make(void)
{
	const struct flexsc_entry made = { .nr = SYS_socket };

	flexsc__fds_note_made(&made, fd);
	/* The SO_RCVLOWAT of an accepted socket is the listener's, which is unknown. */
	flexsc__fds_note_accepted(FDS_MAX, fd);
}

static void find_lowat(void)
{
	flexsc__fds_find_lowat(fd);
}

static void copy(void)
{
	const struct flexsc_entry copied = { .nr = SYS_dup, .args = { fd } };

	flexsc__fds_note(&copied);
}

TEST(a_duplicate_made_during_a_query_is_known)
{
	interrupt(make, find_lowat, copy, 0, FD_ALONE);
}

static void forget(void)
{
	flexsc_fd_forget((int)fd);
}

static void admit(void)
{
	const struct flexsc_entry receive = { .nr = SYS_recvmsg, .args = { fd } };

	plan_admit(&receive);
}

static void limit(void)
{
	const struct flexsc_entry set = {
		.nr = SYS_setsockopt,
		.args = { fd, SOL_SOCKET, SO_RCVTIMEO },
	};

	flexsc__fds_note(&set);
}

TEST(a_time_limit_set_during_a_query_is_known)
{
	interrupt(forget, admit, limit, 0, FD_TIMEOUT | FD_WAITS);
}

TEST(facts_are_exchanged_once_and_while_the_descriptor_is_open)
{
	CHECK_EQ(flexsc__plan_init(), 0);
	fd = 100;
	fds_learn(fd, FD_OPENED | FD_LOCAL);
	CHECK(flexsc__fds_exchange(fd, FD_OPENED, FD_READING));
	CHECK(!flexsc__fds_exchange(fd, FD_OPENED, FD_READING));
	CHECK_EQ(fds_known(fd), FD_READING | FD_LOCAL);
	CHECK(flexsc__fds_exchange(fd, FD_READING, FD_OPENED));
	CHECK_EQ(fds_known(fd), FD_OPENED | FD_LOCAL);
	CHECK(flexsc__fds_exchange(fd, FD_OPENED, FD_READING));
	fds_forget_closed(fd);
	CHECK(!flexsc__fds_exchange(fd, FD_READING, FD_OPENED));
	CHECK_EQ(fds_known(fd), 0);
}

/* A forked child closes the library's duplicates, which have this fact. */
TEST(a_duplicate_stays_the_librarys_when_a_range_is_closed)
{
	const struct flexsc_entry range = {
		.nr = SYS_close_range, .args = { 3, ~0U, 0 },
	};

	CHECK_EQ(flexsc__plan_init(), 0);
	fd = 100;
	fds_learn(fd, FD_OWN | FD_COPY | FD_OPENED);
	flexsc__fds_note(&range);
	CHECK_EQ(fds_known(fd), FD_OWN | FD_COPY);
}

/*
 * fcntl(F_SETFL) as flexsc run makes it. Meanwhile, other() makes calls that set
 * flags.
 */
static void set_flags(int flags, void (*other)(void))
{
	const struct flexsc_entry entry = { .nr = SYS_fcntl,
					    .args = { fd, F_SETFL, (__u64)flags } };
	uint64_t begun;

	flexsc__fds_note(&entry);
	begun = flexsc__fds_set_begin();
	if (other)
		other();
	CHECK_EQ(fcntl((int)fd, F_SETFL, flags), 0);
	flexsc__fds_note(&entry);
	flexsc__fds_set_end(fd, (uint64_t)flags, begun, 0);
}

static void make_blocking(void)
{
	set_flags(0, NULL);
}

/*
 * Returns how many system calls it takes to find out whether calls on the descriptor
 * wait.
 */
static uint32_t queries(bool nonblock)
{
	asks_take();
	CHECK_EQ(flexsc__fds_find_nonblock(fd), nonblock);
	return asks_take();
}

TEST(flags_that_a_call_has_set_need_no_query)
{
	const struct flexsc_entry made = { .nr = SYS_socket,
					   .args = { AF_UNIX, SOCK_STREAM, 0 } };

	CHECK_EQ(flexsc__plan_init(), 0);
	fd = (uint32_t)socket(AF_UNIX, SOCK_STREAM, 0);
	flexsc__fds_note_made(&made, fd);
	set_flags(O_NONBLOCK, NULL);
	CHECK_EQ(queries(true), 0);
	set_flags(0, NULL);
	CHECK_EQ(queries(false), 0);
	/*
	 * Two calls were made at the same time, and their order in the kernel is
	 * unknown.
	 */
	set_flags(O_NONBLOCK, make_blocking);
	CHECK(queries(true) > 0);
	/* The file may have another descriptor, through which its flags may change. */
	flexsc__fds_share();
	set_flags(O_NONBLOCK, NULL);
	CHECK_EQ(fcntl((int)fd, F_SETFL, 0), 0);
	CHECK(queries(false) > 0);
	close((int)fd);
}

TEST(a_guard_uses_the_descriptor_itself_if_no_other_is_free)
{
	struct rlimit limit, none;
	struct guard *guard;

	CHECK_EQ(flexsc__plan_init(), 0);
	fd = (uint32_t)socket(AF_UNIX, SOCK_STREAM, 0);
	/* Another thread is closing a descriptor, so the guard needs a duplicate. */
	flexsc__guard_count_closing(fd);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	guard = flexsc__guard_begin(fd);
	CHECK(guard);
	CHECK_EQ(guard_fd(guard), (int)fd);
	flexsc__guard_end(guard);
	flexsc__guard_count_closed(fd);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	close((int)fd);
}

/* Imitates a handler that forks while its thread creates a private descriptor. */
TEST(a_thread_that_makes_a_descriptor_may_fork)
{
	int child;

	CHECK_EQ(flexsc__plan_init(), 0);
	flexsc__private_fd_begin();
	flexsc__private_fds_freeze(FREEZE_FORK);
	child = test_fork();
	if (child)
		flexsc__private_fds_thaw(FREEZE_FORK);
	else
		flexsc__private_fds_forked();
	CHECK_EQ(flexsc__private_fd_made(-1), -1);
	/* No thread is creating one any more. */
	flexsc__private_fds_freeze(FREEZE_FORK);
	flexsc__private_fds_thaw(FREEZE_FORK);
	if (!child)
		test_leave();
	test_reap(child);
}
