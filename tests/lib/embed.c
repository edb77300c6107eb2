/* SPDX-License-Identifier: MIT */
/*
 * A loop inside another one. The outer loop sleeps in epoll or poll, and misses no
 * event of the inner loop.
 */
#include "tests/harness/harness.h"
#include "tests/lib/counted.h"

/* Longer than any sleep of these tests: a sleep of this length has missed an event. */
#define LOST	(10 * SECOND)

static void embed(void)
{
	CHECK(flexsc_loop_fd(loop) >= 0);
}

static int readable_within(uint64_t ns)
{
	struct timespec limit = { (time_t)(ns / SECOND), (long)(ns % SECOND) };
	struct pollfd set = { .fd = flexsc_loop_fd(loop), .events = POLLIN };
	int n;

	do
		n = ppoll(&set, 1, &limit, NULL);
	while (n < 0 && errno == EINTR);
	CHECK(n >= 0);
	return n;
}

static uint64_t prepare(void)
{
	uint64_t ns = 1;

	CHECK_EQ(flexsc_loop_prepare(loop, &ns), 0);
	return ns;
}

/* One turn of the outer loop, which sleeps for as long as it may. */
static int turn(void)
{
	const uint64_t limit = LOST * test_slower();
	uint64_t ns = prepare();
	int ready = readable_within(ns < limit ? ns : limit), n;

	CHECK(ready || ns < limit);
	n = flexsc_loop_dispatch(loop);
	CHECK(n >= 0);
	return n;
}

static void turn_until(unsigned int n)
{
	while (done < n)
		turn();
	CHECK_EQ(done, n);
}

LOOP_TEST(a_loop_has_one_descriptor_until_it_is_destroyed)
{
	unsigned int before;
	uint64_t ns = 7;
	int fd;

	before = count_fds();
	CHECK_EQ(flexsc_loop_fd(NULL), -ENXIO);
	CHECK_EQ(flexsc_loop_prepare(NULL, &ns), -ENXIO);
	CHECK_EQ(flexsc_loop_prepare(loop, &ns), -EINVAL);
	fd = flexsc_loop_fd(loop);
	CHECK(fd >= 0);
	CHECK_EQ(flexsc_loop_fd(loop), fd);
	CHECK_EQ(count_fds(), before + 1);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(flexsc_loop_prepare(loop, NULL), -EINVAL);
	CHECK_EQ(ns, 7);
	test_end_loop();
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
}

LOOP_TEST(an_idle_loop_lets_the_outer_one_sleep)
{
	embed();
	CHECK(prepare() == FLEXSC_FOREVER);
	CHECK_EQ(readable_within(0), 0);
	CHECK_EQ(flexsc_loop_dispatch(loop), 0);
	CHECK_EQ(flexsc_loop_stop(loop), 0);
	CHECK(prepare() == FLEXSC_FOREVER);
	CHECK_EQ(readable_within(0), 0);
}

LOOP_TEST(a_timer_limits_the_sleep)
{
	struct flexsc_cb cb = { .callback = count_done };
	uint64_t before = now_ns(), ns;

	embed();
	CHECK_EQ(flexsc_loop_timer(loop, &cb, 30 * MS), 0);
	ns = prepare();
	CHECK(ns <= 31 * MS);
	turn_until(1);
	CHECK(now_ns() - before >= 30 * MS);
	CHECK(prepare() == FLEXSC_FOREVER);
}

WAITING_TEST(a_call_makes_the_descriptor_readable_until_dispatched)
{
	struct call call = CALL_INIT;
	char c = 0;
	int p[2];

	CHECK_EQ(pipe(p), 0);
	embed();
	POST(loop, &call, SYS_read, p[0], &c, 1);
	while (prepare() != FLEXSC_FOREVER || readable_within(20 * MS))
		CHECK_EQ(flexsc_loop_dispatch(loop), 0);
	CHECK_EQ(call.runs, 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(readable_within(LOST), 1);
	CHECK_EQ(readable_within(0), 1);
	CHECK_EQ(prepare(), 0);
	CHECK_EQ(readable_within(0), 1);
	/*
	 * Linux 6.1 takes two turns: the descriptor is readable before the result is
	 * available.
	 */
	while (!call.runs)
		turn();
	CHECK_EQ(c, 'x');
}

LOOP_TEST(work_pending_at_prepare_makes_the_descriptor_readable)
{
	struct call calls[3] = { CALL_INIT, CALL_INIT, CALL_INIT };

	embed();
	for (unsigned int i = 0; i < 3; i++)
		POST(loop, &calls[i], SYS_getppid);
	while (prepare())
		readable_within(LOST);
	CHECK_EQ(readable_within(0), 1);
	while (!calls[0].runs || !calls[1].runs || !calls[2].runs)
		turn();
	for (unsigned int i = 0; i < 3; i++)
		CHECK_EQ(calls[i].cb.ret, getppid());
}

#define ROUNDS	MANY(5000)

/* More calls complete at a time than one dispatch handles. */
LOOP_TEST(the_next_dispatch_handles_the_remaining_calls)
{
	static struct flexsc_cb cbs[ROUNDS];

	embed();
	for (unsigned int i = 0; i < ROUNDS; i++) {
		cbs[i].callback = count_done;
		CHECK_EQ(flexsc_loop_getppid(loop, &cbs[i]), 0);
	}
	turn_until(ROUNDS);
	CHECK(prepare() == FLEXSC_FOREVER);
}

static void *wake_loop(void *cb)
{
	CHECK_EQ(flexsc_loop_wake(loop, cb), 0);
	return NULL;
}

LOOP_TEST(wake_ups_make_the_descriptor_readable)
{
	struct flexsc_cb cb = { .callback = count_done }, *what[2] = { &cb };
	pthread_t thread;

	embed();
	for (unsigned int i = 0; i < 2; i++) {
		CHECK(prepare() == FLEXSC_FOREVER);
		thread = test_thread(wake_loop, what[i]);
		CHECK_EQ(readable_within(LOST), 1);
		CHECK_EQ(flexsc_loop_dispatch(loop), !i);
		pthread_join(thread, NULL);
		/* A wake-up without a cb ends at most one more sleep. */
		prepare();
		CHECK_EQ(flexsc_loop_dispatch(loop), 0);
	}
	CHECK_EQ(flexsc_loop_wake(loop, NULL), 0);
	CHECK_EQ(prepare(), 0);
	CHECK(prepare() == FLEXSC_FOREVER);
	CHECK_EQ(readable_within(0), 0);
}

LOOP_TEST(a_signal_makes_the_descriptor_readable)
{
	struct flexsc_cb cb = { .callback = count_done };

	embed();
	CHECK_EQ(flexsc_loop_signal(loop, &cb, SIGUSR1), 0);
	CHECK(prepare() == FLEXSC_FOREVER);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(readable_within(LOST), 1);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK_EQ(cb.ret, SIGUSR1);
}

static void prepare_inside(struct flexsc_cb *cb)
{
	uint64_t ns;

	CHECK_EQ(flexsc_loop_prepare(loop, &ns), -EDEADLK);
	count_done(cb);
}

LOOP_TEST(a_callback_prepares_nothing)
{
	struct flexsc_cb cb = { .callback = prepare_inside };

	embed();
	CHECK_EQ(flexsc_loop_getppid(loop, &cb), 0);
	turn_until(1);
}

LOOP_TEST(a_loop_that_was_prepared_can_still_wait_and_run)
{
	struct flexsc_cb cb = { .callback = count_done };
	pthread_t thread;

	embed();
	CHECK(prepare() == FLEXSC_FOREVER);
	thread = test_thread(wake_loop, &cb);
	CHECK_EQ(flexsc_loop_wait(loop, LOST), 1);
	pthread_join(thread, NULL);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK(prepare() == FLEXSC_FOREVER);
	CHECK_EQ(flexsc_loop_timer(loop, &cb, MS), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, 2);
}

LOOP_TEST(a_forked_child_has_no_descriptor)
{
	struct flexsc_cb cb = { .callback = count_done };
	uint64_t ns;
	int fd, pid;

	embed();
	fd = flexsc_loop_fd(loop);
	CHECK(prepare() == FLEXSC_FOREVER);
	pid = test_fork();
	if (!pid) {
		CHECK_EQ(flexsc_loop_fd(loop), -ESTALE);
		CHECK_EQ(flexsc_loop_prepare(loop, &ns), -ESTALE);
		CHECK_EQ(fcntl(fd, F_GETFD), -1);
		test_end_loop();
		test_leave();
	}
	test_reap(pid);
	CHECK_EQ(readable_within(0), 0);
	CHECK_EQ(flexsc_loop_wake(loop, &cb), 0);
	CHECK_EQ(readable_within(LOST), 1);
	turn_until(1);
}

/*
 * Each of several players takes turns with the loop, in one of the ways in which
 * something completes. A missed event stops both. A thread gets a byte for each turn
 * and answers it.
 */
#define TURNS	MANY(4000)
#define PLAYERS	4

struct player {
	struct flexsc_cb cb;	/* first: player_next() finds it here */
	unsigned int turns;
	/* whether the thread answers by a wake-up; otherwise it ends a read */
	bool wakes;
	int ask[2], answer[2];
	char c;
	struct statx st;
	pthread_t thread;
};

static void *player_answer(void *arg)
{
	struct player *player = arg;
	char c;

	while (read(player->ask[0], &c, 1) == 1) {
		if (player->wakes)
			CHECK_EQ(flexsc_loop_wake(loop, &player->cb), 0);
		else
			CHECK_EQ(write(player->answer[1], &c, 1), 1);
	}
	return NULL;
}

static void player_next(struct flexsc_cb *cb);

static void player_post(struct player *player)
{
	struct flexsc_cb *cb = &player->cb;
	int err = 0;

	cb->callback = player_next;
	switch (player->turns % 8) {
	case 0:
		err = flexsc_loop_statx(loop, cb, AT_FDCWD, "/", 0, STATX_SIZE,
					&player->st);
		break;
	case 1:
		err = flexsc_loop_timer(loop, cb, MS / 10);
		break;
	case 2:
		err = flexsc_loop_sched_getaffinity(loop, cb, 0, 0, NULL);
		break;
	default:
		if (!player->wakes)
			err = flexsc_loop_read(loop, cb, player->answer[0],
					       &player->c, 1);
		CHECK_EQ(write(player->ask[1], "x", 1), 1);
	}
	CHECK_EQ(err, 0);
}

static void player_next(struct flexsc_cb *cb)
{
	struct player *player = (struct player *)cb;

	if (++player->turns < TURNS) {
		player_post(player);
		return;
	}
	done++;
	close(player->ask[1]);
}

static void play(unsigned int n, unsigned int wakers)
{
	static struct player players[PLAYERS];
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(EPOLL_CLOEXEC);

	embed();
	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, flexsc_loop_fd(loop), &event), 0);
	for (unsigned int i = 0; i < n; i++) {
		struct player *player = &players[i];

		player->wakes = i < wakers;
		CHECK_EQ(pipe(player->ask), 0);
		CHECK_EQ(pipe(player->answer), 0);
		player->thread = test_thread(player_answer, player);
		player_post(player);
	}
	while (done < n) {
		const uint64_t limit = LOST * test_slower();
		uint64_t ns = prepare();
		uint64_t most = ns < limit ? ns : limit;
		int ready = epoll_wait(set, &event, 1,
				       (int)((most + MS - 1) / MS));

		CHECK(ready == 1 || ns < limit ||
		      (ready < 0 && errno == EINTR));
		CHECK(flexsc_loop_dispatch(loop) >= 0);
	}
	for (unsigned int i = 0; i < n; i++)
		pthread_join(players[i].thread, NULL);
}

/* A single player: with several, another one's turn would hide a missed event. */
LOOP_TEST_LIMIT(an_outer_loop_misses_no_call, 60)
{
	play(1, 0);
}

LOOP_TEST_LIMIT(an_outer_loop_misses_nothing_of_many, 60)
{
	play(PLAYERS, PLAYERS / 2);
}

static atomic_uint asked, wakes;

static void ask_again(struct flexsc_cb *cb)
{
	count_done(cb);
	asked++;
}

/* Wakes the loop soon after each request. Sometimes the loop is falling asleep then. */
static void *wake_when_asked(void *arg)
{
	static struct flexsc_cb cb = { .callback = ask_again };
	unsigned int i;

	for (i = 0; turns_left(i, 10 * TURNS); i++) {
		for (unsigned int n = 0; asked == i; n++)
			if (n % 1024 == 1023)
				sched_yield();
		for (volatile uint64_t n = test_random() % 1024; n; n--)
			;
		CHECK_EQ(flexsc_loop_wake(loop, &cb), 0);
	}
	wakes = i;
	CHECK_EQ(flexsc_loop_wake(loop, NULL), 0);
	return arg;
}

LOOP_TEST_LIMIT(an_outer_loop_misses_no_wake_up_while_falling_asleep, 60)
{
	pthread_t thread;

	embed();
	thread = test_thread(wake_when_asked, NULL);
	asked++;
	while (!wakes || done < wakes)
		turn();
	pthread_join(thread, NULL);
	CHECK_EQ(done, wakes);
}
