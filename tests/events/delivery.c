/* SPDX-License-Identifier: MIT */
/* Events in memory: which are delivered, when, in which order, and how often. */
#include "events.h"

#include <pty.h>

ECB_TEST(an_event_is_delivered)
{
	struct flexsc_ecb_event event;
	int fds[2], cookie, index;

	test_pair(fds);
	index = flexsc_ecb_watch(ecb, fds[0], POLLIN, 3, &cookie);
	CHECK(index >= 0);
	test_none(ecb, ALL);
	test_write(fds[1]);
	event = test_next(ecb, ALL);
	CHECK_EQ(event.event, index);
	CHECK_EQ(event.type, FLEXSC_EVT_IOREADY);
	CHECK_EQ(event.group, 3);
	CHECK_EQ(event.fd, fds[0]);
	CHECK(event.ready & POLLIN);
	CHECK(event.data == &cookie);
	test_none(ecb, ALL);
}

ECB_TEST(the_first_state_is_an_event)
{
	int fds[2];

	test_pair(fds);
	test_write(fds[1]);
	CHECK(flexsc_ecb_watch(ecb, fds[0], POLLIN, 0, NULL) >= 0);
	CHECK(test_next(ecb, ALL).ready & POLLIN);
}

ECB_TEST(events_that_are_not_taken_coalesce)
{
	int fds[2];

	watched_pair(fds, 0);
	for (int i = 0; i < 100; i++)
		test_write(fds[1]);
	CHECK(test_next(ecb, ALL).ready & POLLIN);
	test_none(ecb, ALL);
	/* An event reports a change: another byte is another event. */
	test_write(fds[1]);
	CHECK(test_next(ecb, ALL).ready & POLLIN);
	test_none(ecb, ALL);
}

ECB_TEST(a_hang_up_is_reported)
{
	struct flexsc_ecb_event event;
	char byte;
	int fds[2];

	watched_pair(fds, 0);
	close(fds[1]);
	event = test_next(ecb, ALL);
	CHECK(event.ready & (POLLIN | POLLHUP));
	CHECK_EQ(read(fds[0], &byte, 1), 0);
}

ECB_TEST(the_oldest_comes_first_and_the_lowest_group_before)
{
	int user[6];

	for (int i = 0; i < 6; i++)
		user[i] = flexsc_ecb_user(ecb, i % 2 ? 7 : 31, NULL);
	for (int i = 0; i < 6; i++)
		CHECK_EQ(flexsc_ecb_post(ecb, (unsigned int)user[i], 1), 0);
	CHECK_EQ(test_next(ecb, ALL).event, user[1]);
	/* Posted later, and in a lower group than the remaining events. */
	CHECK_EQ(flexsc_ecb_post(ecb, (unsigned int)user[1], 1), 0);
	CHECK_EQ(test_next(ecb, 1U << 31).event, user[0]);
	CHECK_EQ(test_next(ecb, ALL).event, user[3]);
	CHECK_EQ(test_next(ecb, ALL).event, user[5]);
	CHECK_EQ(test_next(ecb, ALL).event, user[1]);
	CHECK_EQ(test_next(ecb, ALL).event, user[2]);
	CHECK_EQ(test_next(ecb, ALL).event, user[4]);
	test_none(ecb, ALL);
}

ECB_TEST(words_of_posts_are_ored)
{
	struct flexsc_ecb_event event;
	int user = flexsc_ecb_user(ecb, 0, NULL);

	for (int i = 0; i < 64; i += 3)
		CHECK_EQ(flexsc_ecb_post(ecb, (unsigned int)user, 1ULL << i),
			 0);
	event = test_next(ecb, ALL);
	CHECK_EQ(event.type, FLEXSC_EVT_USER);
	CHECK_EQ(event.payload[0], 0x9249249249249249ULL);
	test_none(ecb, ALL);
	CHECK_EQ(flexsc_ecb_post(ecb, (unsigned int)user, 0), -EINVAL);
}

QUIET_ECB_TEST(an_event_that_may_not_be_delivered_is_held)
{
	struct flexsc_ecb_event event;
	int fds[2];

	watched_pair(fds, 5);
	test_write(fds[1]);
	test_none(ecb, ALL);
	CHECK_EQ(flexsc_ecb_deliver(ecb, 1U << 4), 0);
	test_none(ecb, ALL);
	CHECK_EQ(flexsc_ecb_deliver(ecb, 1U << 5), 0);
	CHECK_EQ(flexsc_ecb_next(ecb, ALL, &event), 1);
	CHECK(event.ready & POLLIN);
	/* A plain store suffices. */
	__atomic_store_n(&flexsc_ecb_control(ecb)->deliver, 0,
			 __ATOMIC_RELAXED);
	test_write(fds[1]);
	test_none(ecb, ALL);
	/* A wait for the group delivers it like its bit in "deliver". */
	CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 5, SECOND), 1);
	CHECK_EQ(flexsc_ecb_next(ecb, ALL, &event), 1);
}

ECB_TEST(a_forgotten_event_is_not_posted)
{
	int fds[2], index, user = flexsc_ecb_user(ecb, 0, NULL);

	test_pair(fds);
	CHECK_EQ(flexsc_ecb_forget(ecb, (unsigned int)user), 0);
	CHECK_EQ(flexsc_ecb_post(ecb, (unsigned int)user, 1), -ENOENT);
	/* Another source may use the slot now. */
	index = flexsc_ecb_watch(ecb, fds[0], POLLIN, 0, NULL);
	CHECK(index >= 0);
	CHECK_EQ(flexsc_ecb_post(ecb, (unsigned int)index, 1), -EINVAL);
	test_none(ecb, ALL);
}

QUIET_ECB_TEST(the_oldest_of_held_events_comes_first)
{
	int fds[6], index[6];

	for (int i = 0; i < 6; i++) {
		fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		index[i] = flexsc_ecb_watch(ecb, fds[i], POLLIN, i == 2, NULL);
		eventfd_write(fds[i], 1);
		test_none(ecb, ALL);
	}
	/* One from the middle of the list, and the newest. */
	CHECK_EQ(flexsc_ecb_forget(ecb, (unsigned int)index[1]), 0);
	CHECK_EQ(flexsc_ecb_forget(ecb, (unsigned int)index[5]), 0);
	CHECK_EQ(flexsc_ecb_deliver(ecb, 1), 0);
	CHECK_EQ(test_next(ecb, 1).event, index[0]);
	CHECK_EQ(test_next(ecb, 1).event, index[3]);
	CHECK_EQ(test_next(ecb, 1).event, index[4]);
	CHECK_EQ(flexsc_ecb_deliver(ecb, 0), 0);
	for (int i = 3; i < 5; i++) {
		eventfd_write(fds[i], 1);
		test_none(ecb, ALL);
	}
	CHECK_EQ(flexsc_ecb_deliver(ecb, ALL), 0);
	CHECK_EQ(test_next(ecb, 1).event, index[3]);
	CHECK_EQ(test_next(ecb, 1).event, index[4]);
	CHECK_EQ(test_next(ecb, ALL).event, index[2]);
	test_none(ecb, ALL);
}

ECB_TEST(a_forgotten_source_has_no_events)
{
	int fds[2], index;

	index = watched_pair(fds, 0);
	test_write(fds[1]);
	CHECK_EQ(flexsc_ecb_wait(ecb, ALL, SECOND), 1);
	/* The event of the forgotten source is on a list. */
	CHECK_EQ(flexsc_ecb_forget(ecb, (unsigned int)index), 0);
	test_none(ecb, ALL);
	test_write(fds[1]);
	test_none(ecb, ALL);
	CHECK_EQ(flexsc_ecb_forget(ecb, (unsigned int)index), -ENOENT);
	/* The descriptor is unchanged, and may be watched again. */
	CHECK(flexsc_ecb_watch(ecb, fds[0], POLLIN, 0, NULL) >= 0);
	CHECK(test_next(ecb, ALL).ready & POLLIN);
}

ECB_TEST(a_closed_descriptor_has_no_events)
{
	for (int i = 0; i < 50; i++) {
		int fds[2], next[2], index;
		char byte;

		test_pair(fds);
		index = flexsc_ecb_watch(ecb, fds[0], POLLIN, 0, NULL);
		test_write(fds[1]);
		CHECK_EQ(flexsc_ecb_close(ecb, (unsigned int)index), 0);
		/* The number refers to another file at once. */
		test_pair(next);
		CHECK_EQ(next[0], fds[0]);
		/* Nothing holds the closed file. */
		CHECK_EQ(read(fds[1], &byte, 1), -1);
		CHECK(errno == ECONNRESET || errno == EPIPE || errno == EAGAIN);
		index = flexsc_ecb_watch(ecb, next[0], POLLIN, 0, NULL);
		CHECK(index >= 0);
		test_none(ecb, ALL);
		CHECK_EQ(flexsc_ecb_close(ecb, (unsigned int)index), 0);
		close(fds[1]);
		close(next[1]);
	}
}

ECB_TEST(a_peer_sees_the_end_at_once)
{
	struct pollfd end;
	int fds[2], index;

	index = watched_pair(fds, 0);
	CHECK_EQ(flexsc_ecb_close(ecb, (unsigned int)index), 0);
	end = (struct pollfd){ .fd = fds[1], .events = POLLIN };
	CHECK_EQ(poll(&end, 1, -1), 1);
	CHECK(end.revents & POLLHUP);
}

/* Files whose state never changes have one event, their initial state. */
static void has_one_event(struct flexsc_ecb *ecb, int fd)
{
	CHECK(fd >= 0);
	CHECK(flexsc_ecb_watch(ecb, fd, POLLIN, 0, NULL) >= 0);
	CHECK(test_next(ecb, ALL).ready & POLLIN);
	test_none(ecb, ALL);
}

ECB_TEST(a_file_that_never_changes_has_one_event)
{
	int master, slave;

	if (test_is_kmod(ecb))
		SKIP("only for the backend uring");
	CHECK_EQ(openpty(&master, &slave, NULL, NULL, NULL), 0);
	close(master);
	has_one_event(ecb, slave);
	has_one_event(ecb, open("/proc/uptime", O_RDONLY | O_CLOEXEC));
}

ECB_TEST(a_checked_event_is_true)
{
	char byte;
	int fds[2];

	test_pair(fds);
	CHECK(flexsc_ecb_watch_as(ecb, fds[0], FLEXSC_EVT_IOREADY, POLLIN, 0,
				  FLEXSC_WATCH_CHECKED, NULL) >= 0);
	test_write(fds[1]);
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	test_none(ecb, ALL);
	test_write(fds[1]);
	CHECK(test_next(ecb, ALL).ready & POLLIN);
}

ECB_TEST(slots_are_used_again, .events = 4)
{
	int fds[2], index[4];

	test_pair(fds);
	test_write(fds[0]);
	test_write(fds[1]);
	for (int round = 0; round < 30; round++) {
		for (int i = 0; i < 4; i++) {
			index[i] = flexsc_ecb_watch(ecb, fds[i % 2], POLLIN, i,
						    NULL);
			CHECK(index[i] >= 0);
		}
		CHECK_EQ(flexsc_ecb_watch(ecb, fds[0], POLLIN, 0, NULL),
			 -ENOSPC);
		test_next(ecb, 1);
		test_next(ecb, 2);
		/* Two sources have events on lists, and two have none. */
		for (int i = 0; i < 4; i++)
			CHECK_EQ(flexsc_ecb_forget(ecb,
						   (unsigned int)index[i]), 0);
		test_none(ecb, ALL);
	}
}

QUIET_ECB_TEST(a_wait_ends)
{
	uint64_t began = now_ns();
	int fds[2], user;

	CHECK_EQ(flexsc_ecb_wait(ecb, ALL, 30 * MS), 0);
	CHECK(now_ns() - began >= 30 * MS);
	CHECK_EQ(flexsc_ecb_wait(ecb, ALL, 0), 0);
	watched_pair(fds, 2);
	user = flexsc_ecb_user(ecb, 3, NULL);
	test_write(fds[1]);
	/* Not by an event of another group. */
	CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 3, 20 * MS), 0);
	CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 2, FLEXSC_FOREVER), 1);
	CHECK_EQ(flexsc_ecb_post(ecb, (unsigned int)user, 1), 0);
	CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 3, FLEXSC_FOREVER), 1);
}

ECB_TEST(a_batched_wait_that_does_not_sleep_delivers, .flags = FLEXSC_ECB_BATCHED)
{
	struct flexsc_ecb_event event;
	int fds[2], user;

	watched_pair(fds, 2);
	user = flexsc_ecb_user(ecb, 3, NULL);
	test_write(fds[1]);
	CHECK_EQ(flexsc_ecb_wait(ecb, ALL, 0), 1);
	CHECK_EQ(flexsc_ecb_next(ecb, ALL, &event), 1);
	CHECK_EQ(event.fd, fds[0]);
	/* Posts don't delay the descriptor's events. */
	test_write(fds[1]);
	CHECK_EQ(flexsc_ecb_post(ecb, (unsigned int)user, 1), 0);
	CHECK_EQ(flexsc_ecb_wait(ecb, ALL, SECOND), 1);
	CHECK_EQ(flexsc_ecb_next(ecb, ALL, &event), 1);
	CHECK_EQ(event.fd, fds[0]);
}

static atomic_uint handled;

static void on_alarm(int signo)
{
	handled++;
}

ECB_TEST(a_signal_ends_a_wait)
{
	/* The first signal may arrive before the wait. */
	const struct itimerval often = { { 0, 20000 }, { 0, 20000 } }, none = { 0 };
	const struct sigaction action = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &action, NULL);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	CHECK_EQ(flexsc_ecb_wait(ecb, ALL, FLEXSC_FOREVER), -EINTR);
	CHECK_EQ(setitimer(ITIMER_REAL, &none, NULL), 0);
	CHECK(handled);
}

/* Threads post events. Each continues until the owner has seen its last post. */

#define POSTERS	4

struct poster {
	pthread_t thread;
	struct flexsc_ecb *ecb;
	unsigned int event, posts;
	atomic_uint posted;
	unsigned int seen, events;	/* used by the owner */
};

static void *post_many(void *arg)
{
	struct poster *poster = arg;

	for (unsigned int i = 0; i < poster->posts; i++) {
		atomic_fetch_add_explicit(&poster->posted, 1,
					  memory_order_relaxed);
		CHECK_EQ(flexsc_ecb_post(poster->ecb, poster->event, 1), 0);
		if (!(i % 64))
			sched_yield();
	}
	return NULL;
}

/* Takes events until the last post of each thread was seen. */
static void see_all(struct flexsc_ecb *ecb, struct poster *posters, bool sleep)
{
	unsigned int left = POSTERS;
	struct flexsc_ecb_event event;

	while (left) {
		if (sleep)
			CHECK_EQ(flexsc_ecb_wait(ecb, ALL, 3600 * SECOND), 1);
		while (flexsc_ecb_next(ecb, ALL, &event)) {
			struct poster *poster = event.data;
			unsigned int posted =
				atomic_load_explicit(&poster->posted,
						     memory_order_relaxed);

			CHECK_EQ(event.payload[0], 1);
			poster->events++;
			if (posted == poster->posts &&
			    poster->seen != poster->posts)
				left--;
			poster->seen = posted;
		}
	}
}

static void posts_are_seen(bool sleep)
{
	struct poster posters[POSTERS] = { 0 };
	struct flexsc_ecb_event event;

	ecb = test_ecb();
	for (int i = 0; i < POSTERS; i++) {
		struct poster *poster = &posters[i];
		int user = flexsc_ecb_user(ecb, i / 2, poster);

		CHECK(user >= 0);
		poster->ecb = ecb;
		poster->event = (unsigned int)user;
		poster->posts = MANY(200000) / test_slower();
		poster->thread = test_thread(post_many, poster);
	}
	see_all(ecb, posters, sleep);
	for (int i = 0; i < POSTERS; i++) {
		pthread_join(posters[i].thread, NULL);
		CHECK(posters[i].events <= posters[i].posts);
	}
	/* A thread counts its last post before it makes the post. */
	while (flexsc_ecb_next(ecb, ALL, &event))
		;
	test_none(ecb, ALL);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST_LIMIT(no_post_is_lost_to_an_owner_that_polls, 60)
{
	posts_are_seen(false);
}

TEST_LIMIT(no_post_is_lost_to_an_owner_that_sleeps, 60)
{
	posts_are_seen(true);
}

struct bit {
	pthread_t thread;
	struct flexsc_ecb *ecb;
	unsigned int event;
	uint64_t word;
};

static void *post_bit(void *arg)
{
	const struct bit *bit = arg;

	for (unsigned int i = 0; i < MANY(100000); i++)
		CHECK_EQ(flexsc_ecb_post(bit->ecb, bit->event, bit->word), 0);
	CHECK_EQ(flexsc_ecb_post(bit->ecb, bit->event, bit->word << 32), 0);
	return NULL;
}

ECB_TEST_LIMIT(threads_post_to_one_event, 60)
{
	struct bit bits[POSTERS];
	unsigned int event = (unsigned int)flexsc_ecb_user(ecb, 0, NULL);
	uint64_t last = 0;

	for (int i = 0; i < POSTERS; i++) {
		bits[i] = (struct bit){ .ecb = ecb, .event = event,
					.word = 1ULL << i };
		bits[i].thread = test_thread(post_bit, &bits[i]);
	}
	while (last != (1U << POSTERS) - 1)
		last |= test_next(ecb, ALL).payload[0] >> 32;
	for (int i = 0; i < POSTERS; i++)
		pthread_join(bits[i].thread, NULL);
}

/* Misuse. */

static void ignore(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	while (flexsc_ecb_next(ecb, ALL, &event))
		;
}

static void *use_it(void *arg)
{
	CHECK_EQ(flexsc_ecb_watch(ecb, 0, POLLIN, 0, NULL), -EPERM);
	CHECK_EQ(flexsc_ecb_wait(ecb, ALL, 0), -EPERM);
	CHECK_EQ(flexsc_ecb_destroy(ecb), -EPERM);
	return NULL;
}

TEST(an_ecb_is_its_thread_s)
{
	struct flexsc_ecb *other;

	ecb = test_ecb();
	CHECK_EQ(flexsc_ecb_create(&other, NULL), -EBUSY);
	pthread_join(test_thread(use_it, NULL), NULL);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	CHECK_EQ(flexsc_ecb_destroy(test_ecb()), 0);
}

TEST(a_child_has_no_event_control_block)
{
	unsigned int fds_before;
	int fds[2], user, pid;

	ecb = test_ecb();
	watched_pair(fds, 0);
	user = flexsc_ecb_user(ecb, 0, NULL);
	fds_before = count_fds();
	pid = test_fork();
	if (!pid) {
		CHECK(count_fds() < fds_before);
		CHECK_EQ(flexsc_ecb_wait(ecb, ALL, 0), -ESTALE);
		CHECK_EQ(flexsc_ecb_post(ecb, (unsigned int)user, 1), -ESTALE);
		CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
		ecb = test_ecb();
		CHECK(flexsc_ecb_watch(ecb, fds[0], POLLIN, 0, NULL) >= 0);
		test_write(fds[1]);
		CHECK(test_next(ecb, ALL).ready & POLLIN);
		CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
		test_leave();
	}
	test_reap(pid);
	/* The parent's block still works: the child has written the byte. */
	CHECK(test_next(ecb, ALL).ready & POLLIN);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

/* More changes than the ring holds end the poll request, and a new one is made. */
static struct flexsc_ecb_event replaced(struct flexsc_ecb *ecb, int fd, int by)
{
	struct flexsc_ecb_event event = { 0 };

	CHECK(flexsc_ecb_watch(ecb, fd, POLLIN, 0, NULL) >= 0);
	flexsc_ecb_critical_begin(ecb);
	for (int i = 0; i < 2000; i++)
		CHECK_EQ(eventfd_write(fd, 1), 0);
	if (by < 0)
		CHECK_EQ(close(fd), 0);
	else
		CHECK_EQ(dup3(by, fd, O_CLOEXEC), fd);
	flexsc_ecb_critical_end(ecb);
	while (!event.error && flexsc_ecb_wait(ecb, ALL, 20 * MS))
		while (!event.error && flexsc_ecb_next(ecb, ALL, &event))
			;
	test_none(ecb, ALL);
	return event;
}

ECB_TEST(a_poll_that_fails_later_is_an_event, .events = 4)
{
	struct flexsc_ecb_event event;
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (test_is_kmod(ecb))
		SKIP("only for the backend uring");
	event = replaced(ecb, fd, file);
	CHECK_EQ(event.error, -EPERM);
	CHECK_EQ(event.type, FLEXSC_EVT_IOREADY);
	CHECK_EQ(event.fd, fd);
	CHECK(event.ready & POLLERR);
	/* A closed descriptor has no events. */
	event = replaced(ecb, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), -1);
	CHECK_EQ(event.error, 0);
}

/* The program forbids io_uring_enter() after the ECB has used it. */
static void forbid_entering(uint32_t flags, bool notifies, int error)
{
	const int enter = SYS_io_uring_enter;
	const struct flexsc_ecb_inherit inherit = { .want = POLLIN };
	int fds[2], listener, watched, user;

	ecb = NEW_ECB(.events = 600, .flags = flags);
	if (test_is_kmod(ecb))
		SKIP("only for the backend uring");
	CHECK_EQ(flexsc_ecb_handler(ecb, ignore, NULL), 0);
	test_pair(fds);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK_EQ(listen(listener, 1), 0);
	watched = flexsc_ecb_watch(ecb, fds[0], POLLIN, 0, NULL);
	CHECK(watched >= 0);
	user = flexsc_ecb_user(ecb, 1, NULL);
	CHECK_EQ(notifies ? flexsc_ecb_notify(ecb, ALL) :
			    flexsc_ecb_deliver(ecb, ALL), 0);
	forbid(&enter, 1, error);
	/* More than the ring holds. */
	for (int i = 0; i < 600; i++)
		CHECK_EQ(flexsc_ecb_watch(ecb, fds[1], POLLIN, 0, NULL),
			 -error);
	CHECK_EQ(flexsc_ecb_autoaccept(ecb, listener, 0, &inherit, NULL),
		 -error);
	CHECK_EQ(flexsc_ecb_timer(ecb, 1, 0, 0, NULL), -error);
	CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 1, FLEXSC_FOREVER), -error);
	CHECK_EQ(flexsc_ecb_flush(ecb), -error);
	flexsc_ecb_critical_begin(ecb);
	CHECK_EQ(flexsc_ecb_post(ecb, (unsigned int)user, 1), 0);
	CHECK_EQ(flexsc_ecb_wait(ecb, 1U << 1, FLEXSC_FOREVER), 1);
	CHECK_EQ(test_next(ecb, 1U << 1).event, user);
	flexsc_ecb_critical_end(ecb);
	CHECK_EQ(flexsc_ecb_close(ecb, (unsigned int)watched), 0);
	CHECK_EQ(fcntl(fds[0], F_GETFD), -1);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	CHECK_EQ(close(listener), 0);
}

TEST(a_filter_that_forbids_to_enter_the_ring_is_an_error)
{
	forbid_entering(0, false, EPERM);
}

/* Kernels before 5.19 return this error while completions aren't taken. */
TEST(a_ring_that_stays_busy_is_an_error)
{
	forbid_entering(0, false, EBUSY);
}

TEST(a_filter_that_forbids_to_enter_the_ring_ends_batches)
{
	if (getenv("FLEXSC_ECB") && !strcmp(getenv("FLEXSC_ECB"), "kmod"))
		SKIP("only for the backend uring");
	forbid_entering(FLEXSC_ECB_BATCHED, false, EPERM);
}

TEST(a_filter_that_forbids_to_enter_the_ring_ends_notification)
{
	forbid_entering(0, true, EPERM);
}

TEST(nothing_is_left_behind)
{
	unsigned int fds = count_fds(), maps = 0;

	for (int i = 0; i < 50; i++) {
		struct flexsc_ecb *ecb = test_ecb();
		int pair[2];

		test_pair(pair);
		CHECK(flexsc_ecb_watch(ecb, pair[0], POLLIN, 0, NULL) >= 0);
		test_write(pair[1]);
		test_next(ecb, ALL);
		CHECK(flexsc_ecb_timer(ecb, SECOND, 0, 0, NULL) >= 0);
		CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
		close(pair[0]);
		close(pair[1]);
		if (i == 10)
			maps = count_maps();
	}
	CHECK(falls_to(count_fds, fds));
	if (!SANITIZED)
		CHECK(count_maps() <= maps + 1);
}

TEST(descriptors_belong_to_the_program_again)
{
	CHECK_EQ(flexsc_ecb_destroy(test_ecb()), 0);
	for (int i = 0; i < 20; i++) {
		const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		CHECK_EQ(flexsc_fd_hint(fd, FLEXSC_FD_BLOCKING), 0);
	}
}

/* Options of a newer program are accepted if the unknown ones are zero. */
TEST(the_size_of_the_options_is_checked)
{
	struct {
		struct flexsc_ecb_options options;
		uint64_t later[2];
	} newer = { { sizeof(newer), NULL, 0, 0, NULL, 0 }, { 0, 0 } };

	CHECK_EQ(flexsc_ecb_create(&ecb, &newer.options), 0);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	newer.later[1] = 1;
	CHECK_EQ(flexsc_ecb_create(&ecb, &newer.options), -EINVAL);
	/* An older program has neither "events" nor "flags". */
	newer.options.size = offsetof(struct flexsc_ecb_options, events);
	newer.options.flags = UINT32_MAX;
	CHECK_EQ(flexsc_ecb_create(&ecb, &newer.options), 0);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	newer.options.size--;
	CHECK_EQ(flexsc_ecb_create(&ecb, &newer.options), -EINVAL);
}

TEST(bad_arguments_are_refused)
{
	struct flexsc_ecb_options options = FLEXSC_ECB_OPTIONS_INIT;
	int fds[2], file;

	CHECK_EQ(flexsc_ecb_create(NULL, NULL), -EINVAL);
	options.flags = 0x40;
	CHECK_EQ(flexsc_ecb_create(&ecb, &options), -EINVAL);
	options.flags = 0;
	options.backend = "nothing";
	CHECK_EQ(flexsc_ecb_create(&ecb, &options), -EINVAL);
	options.backend = NULL;
	options.events = FLEXSC_ECB_EVENTS_MAX + 1;
	CHECK_EQ(flexsc_ecb_create(&ecb, &options), -EINVAL);
	CHECK_EQ(flexsc_ecb_destroy(NULL), 0);
	ecb = test_ecb();
	test_pair(fds);
	CHECK_EQ(flexsc_ecb_watch(NULL, fds[0], POLLIN, 0, NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_watch(ecb, fds[0], POLLIN, 32, NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_watch(ecb, fds[0], 0x10000, 0, NULL), -EINVAL);
	CHECK_EQ(flexsc_ecb_watch(ecb, -1, POLLIN, 0, NULL), -EBADF);
	CHECK_EQ(flexsc_ecb_watch(ecb, 987, POLLIN, 0, NULL), -EBADF);
	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CHECK(file >= 0);
	CHECK_EQ(flexsc_ecb_watch(ecb, file, POLLIN, 0, NULL), -EPERM);
	CHECK_EQ(flexsc_ecb_forget(ecb, 5), -ENOENT);
	CHECK_EQ(flexsc_ecb_forget(ecb, 1U << 30), -EINVAL);
	CHECK_EQ(flexsc_ecb_post(ecb, 5, 1), -ENOENT);
	CHECK_EQ(flexsc_ecb_notify(ecb, 1), -EINVAL);
	CHECK_EQ(flexsc_ecb_wait(ecb, 0, 0), -EINVAL);
	CHECK_EQ(flexsc_ecb_group(ecb, FLEXSC_EVT_TIMER, 40), -EINVAL);
	CHECK_EQ(flexsc_ecb_group(ecb, FLEXSC_EVT_IOREADY, 9), 0);
	CHECK(flexsc_ecb_watch(ecb, fds[0], POLLOUT, -1, NULL) >= 0);
	CHECK_EQ(test_next(ecb, ALL).group, 9);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}
