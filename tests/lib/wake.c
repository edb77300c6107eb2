/* SPDX-License-Identifier: MIT */
/*
 * Wake-ups: apart from stopping a loop, the only operation on it for other threads
 * and for signal handlers.
 */
#include "tests/harness/harness.h"

#define THREADS		4
#define EACH		MANY(10000)

static unsigned int done;

struct letter {
	struct flexsc_cb cb;	/* first: letter_read() finds it here */
	unsigned int text;	/* written before the wake-up, read after it */
	unsigned int runs;
};

static void letter_read(struct flexsc_cb *cb)
{
	struct letter *letter = (struct letter *)cb;

	CHECK_EQ(cb->ret, 0);
	CHECK_EQ(letter->text, (uintptr_t)cb->arg);
	letter->runs++;
	done++;
}

static void *send_letters(void *arg)
{
	struct letter *letters = arg;

	for (unsigned int i = 0; i < EACH; i++) {
		letters[i].cb.callback = letter_read;
		letters[i].cb.arg = (void *)(uintptr_t)i;
		letters[i].text = i;
		CHECK_EQ(flexsc_loop_wake(loop, &letters[i].cb), 0);
	}
	return NULL;
}

LOOP_TEST_LIMIT(wake_ups_from_many_threads_are_counted_exactly, 40)
{
	static struct letter *letters[THREADS];
	pthread_t threads[THREADS];

	for (unsigned int i = 0; i < THREADS; i++) {
		letters[i] = calloc(EACH, sizeof(struct letter));
		CHECK(letters[i]);
		threads[i] = test_thread(send_letters, letters[i]);
	}
	CHECK(run_until(loop, &done, THREADS * EACH, 30000));
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	run_for(loop, 20);
	CHECK_EQ(done, THREADS * EACH);
	for (unsigned int i = 0; i < THREADS * EACH; i++)
		CHECK_EQ(letters[i / EACH][i % EACH].runs, 1);
	test_end_loop();
	for (unsigned int i = 0; i < THREADS; i++)
		free(letters[i]);
}

static struct letter one;

static void send_one(unsigned int text)
{
	one.cb = (struct flexsc_cb){ .callback = letter_read };
	one.cb.arg = (void *)(uintptr_t)text;
	one.text = text;
	CHECK_EQ(flexsc_loop_wake(loop, &one.cb), 0);
}

static void *send_later(void *arg)
{
	sleep_ms(100);
	send_one(7);
	return arg;
}

/*
 * The owner may destroy a loop because of a stop or a wake-up, while the thread that
 * has made it is about to return. On one core the owner runs first.
 */
struct ending {
	_Atomic(struct flexsc_loop *) loop;
	bool by_wake;
	struct flexsc_cb cb;
};

static void stop_own(struct flexsc_cb *cb)
{
	CHECK_EQ(flexsc_loop_stop(cb->arg), 0);
}

static void *end_when_made(void *arg)
{
	struct ending *ending = arg;
	struct flexsc_loop *ends;

	while (!(ends = atomic_load(&ending->loop)))
		sched_yield();
	/* By then the owner sleeps. */
	usleep(100);
	if (ending->by_wake)
		CHECK_EQ(flexsc_loop_wake(ends, &ending->cb), 0);
	else
		CHECK_EQ(flexsc_loop_stop(ends), 0);
	return NULL;
}

static void end_from_beside(bool by_wake)
{
	struct ending ending = { .by_wake = by_wake,
				 .cb.callback = stop_own };
	struct flexsc_loop *mine;
	pthread_t thread;

	thread = test_thread(end_when_made, &ending);
	mine = test_loop();
	ending.cb.arg = mine;
	CHECK_EQ(flexsc_loop_ref(mine), 0);
	atomic_store(&ending.loop, mine);
	CHECK_EQ(flexsc_loop_run(mine), 0);
	CHECK_EQ(flexsc_loop_destroy(mine), 0);
	pthread_join(thread, NULL);
}

TEST_LIMIT(an_owner_woken_to_end_may_destroy_the_loop, 60)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	for (unsigned int i = 0; turns_left(i, MANY(1000)); i++)
		end_from_beside(i % 2);
}

LOOP_TEST(a_wake_up_ends_the_sleep_at_once)
{
	pthread_t thread;

	thread = test_thread(send_later, NULL);
	CHECK_EQ(flexsc_loop_wait(loop, 3600 * SECOND), 1);
	CHECK_EQ(done, 0);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK_EQ(done, 1);
	pthread_join(thread, NULL);
}

static void *nudge_later(void *arg)
{
	sleep_ms(100);
	CHECK_EQ(flexsc_loop_wake(loop, NULL), 0);
	return arg;
}

LOOP_TEST(a_wake_up_without_cb_only_wakes)
{
	uint64_t before = now_ns();
	pthread_t thread;

	thread = test_thread(nudge_later, NULL);
	CHECK_EQ(flexsc_loop_wait(loop, 3600 * SECOND), 1);
	CHECK(now_ns() - before >= 50 * MS);
	CHECK_EQ(flexsc_loop_dispatch(loop), 0);
	CHECK_EQ(flexsc_loop_wait(loop, MS), 0);
	pthread_join(thread, NULL);
}

LOOP_TEST(a_wake_up_before_the_sleep_is_not_lost)
{
	send_one(3);
	CHECK_EQ(flexsc_loop_wait(loop, 3600 * SECOND), 1);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK_EQ(flexsc_loop_wake(loop, NULL), 0);
	CHECK_EQ(flexsc_loop_wait(loop, 3600 * SECOND), 1);
	CHECK_EQ(done, 1);
}

/* A thread and the loop take turns. A lost wake-up would stop both. */
static int ball[2];

static void next_volley(struct flexsc_cb *cb)
{
	(void)cb;
	if (turns_left(++done, MANY(10000)))
		CHECK_EQ(write(ball[1], "x", 1), 1);
	else
		CHECK_EQ(flexsc_loop_stop(loop), 0);
}

static void *wake_for_each_byte(void *arg)
{
	static struct flexsc_cb cb = { .callback = next_volley };
	char c;

	while (read(ball[0], &c, 1) == 1)
		CHECK_EQ(flexsc_loop_wake(loop, &cb), 0);
	return arg;
}

TEST_LIMIT(no_wake_up_is_lost_while_falling_asleep, 40)
{
	pthread_t thread;

	CHECK_EQ(pipe(ball), 0);
	loop = test_loop();
	thread = test_thread(wake_for_each_byte, NULL);
	CHECK(turns_left(0, 1));
	CHECK_EQ(write(ball[1], "x", 1), 1);
	/* This loop sleeps without a time limit. */
	CHECK_EQ(flexsc_loop_ref(loop), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	close(ball[1]);
	pthread_join(thread, NULL);
	test_end_loop();
}

#define ALARMS	200

static struct letter letters_of_alarm[ALARMS];
static volatile sig_atomic_t alarms;

static void on_alarm(int signo)
{
	struct letter *letter = &letters_of_alarm[alarms];

	(void)signo;
	if (alarms == ALARMS)
		return;
	letter->cb.callback = letter_read;
	letter->cb.arg = (void *)(uintptr_t)alarms;
	letter->text = (unsigned int)alarms;
	alarms = alarms + 1;
	flexsc_loop_wake(loop, &letter->cb);
}

/* The handler interrupts the thread while it posts, sleeps, or dispatches. */
LOOP_TEST(signal_handlers_may_wake)
{
	static const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, off;

	signal(SIGALRM, on_alarm);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (alarms < ALARMS)
		CHECK_EQ(DO(loop, SYS_getppid), getppid());
	CHECK(run_until(loop, &done, ALARMS, 10000));
	CHECK_EQ(done, ALARMS);
	CHECK_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
	for (unsigned int i = 0; i < ALARMS; i++)
		CHECK_EQ(letters_of_alarm[i].runs, 1);
}

/* A cb is woken that is queued already. */

static struct call one_call = CALL_INIT, other = CALL_INIT;

static void wake(struct call *call)
{
	CHECK_EQ(flexsc_loop_wake(loop, &call->cb), 0);
}

LOOP_TEST(a_cb_that_is_woken_again_runs_once)
{
	wake(&one_call);
	wake(&other);
	wake(&one_call);
	wake(&other);
	CHECK_EQ(flexsc_loop_wait(loop, 3600 * SECOND), 1);
	CHECK_EQ(flexsc_loop_dispatch(loop), 2);
	wake(&one_call);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK_EQ(flexsc_loop_dispatch(loop), 0);
	CHECK_EQ(one_call.runs, 2);
	CHECK_EQ(other.runs, 1);
}

LOOP_TEST(a_cb_that_is_woken_twice_runs_once_when_the_loop_is_destroyed)
{
	wake(&one_call);
	wake(&one_call);
	test_end_loop();
	CHECK_EQ(one_call.runs, 1);
}

/* A stop leaves some cbs queued. They may be woken again. */
static void stop_loop(struct flexsc_cb *cb)
{
	call_done(cb);
	CHECK_EQ(flexsc_loop_stop(loop), 0);
}

LOOP_TEST(a_cb_that_a_stop_left_queued_runs_once)
{
	struct call stopper = { .cb = { .callback = stop_loop } };

	wake(&stopper);
	wake(&one_call);
	wake(&other);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(stopper.runs, 1);
	CHECK_EQ(one_call.runs, 0);
	wake(&one_call);
	wake(&stopper);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(stopper.runs, 2);
	CHECK_EQ(one_call.runs, 1);
	CHECK_EQ(other.runs, 1);
}

/* The other bytes of a cb may have any values, even those of a queued cb. */
LOOP_TEST(only_callback_and_arg_need_initialising)
{
	struct call calls[6] = { CALL_INIT };

	wake(&calls[0]);
	for (unsigned int i = 1; i < 6; i++) {
		if (i == 1)
			calls[i].cb = calls[0].cb;
		else
			memset(&calls[i], (int)(0x33 * (i - 1)),
			       sizeof(calls[i]));
		calls[i].cb.callback = call_done;
		calls[i].runs = 0;
		wake(&calls[i]);
	}
	CHECK_EQ(flexsc_loop_dispatch(loop), 6);
	for (unsigned int i = 0; i < 6; i++) {
		CHECK_EQ(calls[i].runs, 1);
		CHECK_EQ(calls[i].cb.ret, 0);
	}
}

LOOP_TEST(a_woken_cb_can_not_be_cancelled)
{
	wake(&one_call);
	CHECK_EQ(flexsc_loop_cancel(loop, &one_call.cb), -ENOENT);
	CHECK_EQ(flexsc_loop_deadline(loop, &one_call.cb, MS), -ENOENT);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
}

static void wake_while_it_ends(struct flexsc_cb *cb)
{
	call_done(cb);
	CHECK_EQ(flexsc_loop_wake(loop, cb), -ESHUTDOWN);
}

LOOP_TEST(a_loop_that_is_destroyed_takes_no_wake_ups)
{
	struct call call = { .cb = { .callback = wake_while_it_ends } };

	wake(&call);
	test_end_loop();
	CHECK_EQ(call.runs, 1);
}

/* A cb that is queued in the parent isn't queued in the child's own loop. */
TEST(a_forked_child_may_use_a_cb_that_is_queued)
{
	int pid;

	/* The new thread may hold a sanitizer's lock, which the child would inherit. */
	if (SANITIZED && !strcmp(test_engine(), "threads"))
		SKIP("sanitizers can't start threads after such a fork");
	loop = test_loop();
	wake(&one_call);
	pid = test_fork();
	if (!pid) {
		test_end_loop();
		loop = test_loop();
		wake(&one_call);
		CHECK_EQ(flexsc_loop_dispatch(loop), 1);
		CHECK_EQ(one_call.runs, 1);
		test_end_loop();
		test_leave();
	}
	test_reap(pid);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK_EQ(one_call.runs, 1);
}

/* Plain memory, so TSan detects a second wake-up that doesn't publish it. */
static unsigned int note;
static atomic_bool noted;

static void read_note(struct flexsc_cb *cb)
{
	call_done(cb);
	CHECK_EQ(note, 7);
}

static void *write_note(void *arg)
{
	note = 7;
	wake(arg);
	atomic_store_explicit(&noted, true, memory_order_relaxed);
	return NULL;
}

LOOP_TEST(memory_written_by_the_second_waker_is_visible)
{
	struct call call = { .cb = { .callback = read_note } };
	pthread_t thread;

	wake(&call);
	thread = test_thread(write_note, &call);
	while (!atomic_load_explicit(&noted, memory_order_relaxed))
		sleep_ms(1);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK_EQ(call.runs, 1);
	pthread_join(thread, NULL);
}

static volatile sig_atomic_t rings;

static void on_ring(int signo)
{
	(void)signo;
	rings = rings + 1;
	flexsc_loop_wake(loop, rings % 2 ? &one_call.cb : &other.cb);
}

LOOP_TEST(signal_handlers_may_wake_the_same_cb)
{
	static const struct itimerval often = { { 0, 500 }, { 0, 500 } }, off;
	unsigned int runs;

	signal(SIGALRM, on_ring);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (rings < ALARMS) {
		wake(&one_call);
		wake(&other);
		CHECK(flexsc_loop_dispatch(loop) >= 2);
	}
	CHECK_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
	flexsc_loop_dispatch(loop);
	runs = one_call.runs;
	CHECK_EQ(flexsc_loop_dispatch(loop), 0);
	wake(&one_call);
	CHECK_EQ(flexsc_loop_dispatch(loop), 1);
	CHECK_EQ(one_call.runs, runs + 1);
}

/*
 * Threads wake the same few cbs at random. Before a wake-up, a thread counts it for
 * the cb. A callback records the counts that it sees. If all counts have been
 * recorded at the end, a callback ran after every wake-up.
 */
#define FEW	3

static struct bell {
	struct flexsc_cb cb;
	atomic_uint counts[THREADS];
	unsigned int noted[THREADS];
	unsigned int runs;
} bells[FEW];
static atomic_uint ringers;

static void bell_rings(struct flexsc_cb *cb)
{
	struct bell *bell = (struct bell *)cb;

	CHECK_EQ(cb->ret, 0);
	for (unsigned int i = 0; i < THREADS; i++)
		bell->noted[i] = atomic_load_explicit(&bell->counts[i],
						      memory_order_relaxed);
	/* Some callbacks wake their own cb, too. */
	if (++bell->runs % 16 == 0)
		CHECK_EQ(flexsc_loop_wake(loop, cb), 0);
	CHECK_EQ(cb->ret, 0);
}

static void *ring_bells(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg, seed = me;

	for (unsigned int i = 0; i < 4 * EACH; i++) {
		struct bell *bell = &bells[(unsigned int)rand_r(&seed) % FEW];

		atomic_fetch_add_explicit(&bell->counts[me], 1,
					  memory_order_relaxed);
		CHECK_EQ(flexsc_loop_wake(loop, &bell->cb), 0);
		/* Lets the loop fall asleep now and then. */
		if (i % 256 == 0)
			sleep_ms(1);
	}
	if (atomic_fetch_sub(&ringers, 1) == 1)
		CHECK_EQ(flexsc_loop_wake(loop, &one_call.cb), 0);
	return NULL;
}

LOOP_TEST_LIMIT(no_wake_up_of_a_queued_cb_is_lost, 60)
{
	pthread_t threads[THREADS];

	for (unsigned int i = 0; i < FEW; i++)
		bells[i].cb.callback = bell_rings;
	atomic_store(&ringers, THREADS);
	one_call.cb.callback = stop_loop;
	for (unsigned int i = 0; i < THREADS; i++)
		threads[i] = test_thread(ring_bells, (void *)(uintptr_t)i);
	CHECK_EQ(flexsc_loop_ref(loop), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(one_call.runs, 1);
	while (flexsc_loop_dispatch(loop) > 0)
		continue;
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned int i = 0; i < FEW; i++)
		for (unsigned int k = 0; k < THREADS; k++)
			CHECK_EQ(bells[i].noted[k],
				 atomic_load(&bells[i].counts[k]));
}
