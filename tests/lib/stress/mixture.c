/* SPDX-License-Identifier: MIT */
/*
 * A random mixture of all functions, for a while, by several loops at the same time.
 * Each callback runs exactly once, no byte is lost, and no descriptor leaks.
 *
 *	stress-mixture [seconds=N] [seed=N] [loops=N]
 *
 * A worker is a thread with a loop and a set of jobs. It works in rounds, each with
 * a new loop that has other options. Meanwhile the main thread wakes loops, sends
 * signals, and feeds descriptors at random.
 */
#include "job.h"

#include <sys/ioctl.h>

#define LOOPS_MAX	8
#define ROUND_NS	(300 * MS)
/* Of each worker. */
#define LEAST_POSTED	400
#define LEAST_WAKES	40

static struct worker workers[LOOPS_MAX];
static unsigned int loops;
static uint64_t end_time;
static atomic_uint working;

/* Rounds. */

static void choose_options(struct worker *worker, struct flexsc_options *o)
{
	static const uint32_t entries[] = { 0, 64, 64, 128 };
	static const uint32_t threads[] = { 0, 2, 4, 16 };

	*o = (struct flexsc_options)FLEXSC_OPTIONS_INIT;
	o->max_entries = entries[random_of(worker) % 4];
	o->max_threads = threads[random_of(worker) % 4];
	o->poll_us = once_in(worker, 4) ? 50 : 0;
}

static void set_target(struct worker *worker, struct flexsc_loop *target)
{
	pthread_mutex_lock(&worker->lock);
	worker->target = target;
	pthread_mutex_unlock(&worker->lock);
}

static void turn(struct worker *worker)
{
	unsigned int n = (unsigned int)(random_of(worker) % 32);

	for (unsigned int i = 0; i < n; i++) {
		struct job *job = &worker->jobs[random_of(worker) % JOBS];

		if (job_busy(job))
			job_disturb(job);
		else
			job_start(job);
	}
	if (once_in(worker, 2))
		CHECK(flexsc_loop_wait(worker->loop,
				       random_of(worker) % MS) >= 0);
	CHECK(flexsc_loop_dispatch(worker->loop) >= 0);
}

/* Ends a round: each call completes or is cancelled. */
static void wind_up(struct worker *worker)
{
	worker->ending = true;
	for (unsigned int i = 0; i < JOBS; i++) {
		struct job *job = &worker->jobs[i];

		if (job->a.pending)
			job_cancel(job, &job->a);
		if (job->b.pending && once_in(worker, 2))
			job_cancel(job, &job->b);
	}
	CHECK_EQ(flexsc_loop_run(worker->loop), 0);
	/* A stray stop or wake-up doesn't end the run, so every callback has run. */
	CHECK_EQ(worker->ran, worker->posted);
}

/* Ends a round by destroying the loop: each pending call ends as cancelled. */
static void cut_off(struct worker *worker)
{
	worker->ending = true;
	for (unsigned int i = 0; i < JOBS; i++)
		worker->jobs[i].cancelled = true;
}

static void check_stats(struct worker *worker, bool wound_up)
{
	struct flexsc_stats stats = stats_of(worker->loop);

	CHECK_EQ(stats.posted, worker->calls);
	CHECK(stats.entries <= stats.max_entries);
	CHECK(stats.threads <= stats.max_threads);
	if (!wound_up)
		return;
	CHECK_EQ(stats.completed, worker->calls);
	CHECK_EQ(stats.outstanding, 0);
	CHECK_EQ(stats.waiting, 0);
	CHECK(stats.by_inline + stats.by_uring + stats.by_thread +
		      stats.by_kmod <=
	      worker->calls);
	CHECK(stats.batched <= worker->calls);
}

/* No byte or count was lost between the descriptors and the callbacks. */
static void check_balance(struct worker *worker, bool wound_up)
{
	uint64_t sum = 0;

	CHECK_EQ(worker->ran, worker->posted);
	CHECK_EQ(worker->wakes_ran, atomic_load(&worker->wakes_sent));
	if (read(worker->counter, &sum, 8) < 0)
		CHECK_EQ(errno, EAGAIN);
	/* Destroying a loop cancels posted writes without a cb. */
	CHECK(wound_up ? sum == worker->forgotten : sum <= worker->forgotten);
	for (unsigned int i = 0; i < JOBS; i++) {
		struct job *job = &worker->jobs[i];
		int left = 0;

		CHECK(!job_busy(job));
		CHECK_EQ(ioctl(job->p[0], FIONREAD, &left), 0);
		CHECK_EQ(left, job->fed - job->eaten);
		job_drain_pipe(job);
		while (atomic_load(&job->given) > job->taken) {
			CHECK_EQ(read(job->event, &sum, 8), 8);
			job->taken++;
		}
		CHECK_EQ(poll(&(struct pollfd){ job->event, POLLIN, 0 }, 1, 0),
			 0);
	}
	worker->forgotten = 0;
	worker->calls = 0;
}

/* Waits until the main thread has fed everything that was requested. */
static void await_gifts(struct worker *worker)
{
	for (unsigned int i = 0; i < JOBS; i++)
		while (atomic_load(&worker->jobs[i].given) !=
		       atomic_load(&worker->jobs[i].wanted))
			sched_yield();
}

static void round_of(struct worker *worker)
{
	uint64_t until = now_ns() + ROUND_NS;
	bool wound_up = worker->round++ % 2;
	struct flexsc_options options;

	choose_options(worker, &options);
	worker->loop = test_loop_with(&options);
	worker->ending = false;
	set_target(worker, worker->loop);
	while (now_ns() < until)
		turn(worker);
	set_target(worker, NULL);
	if (wound_up)
		wind_up(worker);
	else
		cut_off(worker);
	check_stats(worker, wound_up);
	CHECK_EQ(flexsc_loop_destroy(worker->loop), 0);
	await_gifts(worker);
	check_balance(worker, wound_up);
}

static void make_jobs(struct worker *worker)
{
	worker->counter = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(worker->counter >= 0);
	for (unsigned int i = 0; i < JOBS; i++) {
		struct job *job = &worker->jobs[i];

		job->worker = worker;
		job->a.job = job;
		job->b.job = job;
		CHECK_EQ(pipe2(job->p, O_CLOEXEC), 0);
		job->event = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
		CHECK(job->event >= 0);
	}
}

static void free_jobs(struct worker *worker)
{
	CHECK_EQ(close(worker->counter), 0);
	for (unsigned int i = 0; i < JOBS; i++) {
		CHECK_EQ(close(worker->jobs[i].p[0]), 0);
		CHECK_EQ(close(worker->jobs[i].p[1]), 0);
		CHECK_EQ(close(worker->jobs[i].event), 0);
	}
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	/* On a busy machine, the time may end before much has happened. */
	while (now_ns() < end_time || worker->posted < LEAST_POSTED ||
	       worker->wakes_ran < LEAST_WAKES)
		round_of(worker);
	atomic_fetch_sub(&working, 1);
	return NULL;
}

/* The main thread. */

static void wake_done(struct flexsc_cb *cb)
{
	struct wake *wake = (struct wake *)cb;
	struct worker *worker = wake->worker;

	CHECK_EQ(cb->ret, 0);
	CHECK(pthread_equal(pthread_self(), worker->thread));
	worker->wakes_ran++;
	CHECK(atomic_exchange(&wake->pending, false));
}

static void wake_some(struct worker *worker)
{
	struct wake *wake = &worker->wakes[test_random() % WAKES];

	pthread_mutex_lock(&worker->lock);
	if (worker->target && !atomic_load(&wake->pending)) {
		atomic_store(&wake->pending, true);
		atomic_fetch_add(&worker->wakes_sent, 1);
		wake->worker = worker;
		wake->cb.callback = wake_done;
		CHECK_EQ(flexsc_loop_wake(worker->target, &wake->cb), 0);
		if (test_random() % 4 == 0)
			CHECK_EQ(flexsc_loop_wake(worker->target, NULL), 0);
	}
	pthread_mutex_unlock(&worker->lock);
}

static void give(struct worker *worker)
{
	/* The sync engine runs the call when it is submitted, so the worker feeds it. */
	if (worker->serial)
		return;
	for (unsigned int i = 0; i < JOBS; i++) {
		struct job *job = &worker->jobs[i];

		if (atomic_load(&job->given) == atomic_load(&job->wanted))
			continue;
		CHECK_EQ(eventfd_write(job->event, 1), 0);
		atomic_fetch_add(&job->given, 1);
	}
}

static void stir(void)
{
	while (atomic_load(&working)) {
		struct worker *worker = &workers[test_random() % loops];

		wake_some(worker);
		give(worker);
		if (test_random() % 16 == 0)
			CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		if (test_random() % 4 == 0)
			nanosleep(&(struct timespec){ 0, 50000 }, NULL);
	}
}

TEST(a_random_mixture_loses_nothing)
{
	uint64_t seed = test_parameter("seed", 1), posted = 0, wakes = 0;
	unsigned int fds = count_fds(), rounds = 0;

	loops = (unsigned int)test_parameter("loops", 3);
	CHECK(loops >= 1 && loops <= LOOPS_MAX);
	CHECK(raise_fd_limit(4096));
	test_note("seed=%llu loops=%u", (unsigned long long)seed, loops);
	/* While no loop handles the signal, it has to be ignored. */
	signal(SIGUSR1, SIG_IGN);
	end_time = now_ns() + test_parameter("seconds", 2) * SECOND;
	atomic_store(&working, loops);
	for (unsigned int i = 0; i < loops; i++) {
		struct worker *worker = &workers[i];

		worker->number = i;
		worker->random = seed * 0x9e3779b97f4a7c15ULL + i + 1;
		worker->serial = strcmp(test_engine(), "sync") == 0;
		pthread_mutex_init(&worker->lock, NULL);
		make_jobs(worker);
		worker->thread = test_thread(work, worker);
	}
	stir();
	for (unsigned int i = 0; i < loops; i++) {
		pthread_join(workers[i].thread, NULL);
		free_jobs(&workers[i]);
		posted += workers[i].posted;
		wakes += workers[i].wakes_ran;
		rounds += workers[i].round;
	}
	test_note("%llu callbacks, %llu wake-ups, %u rounds",
		  (unsigned long long)posted, (unsigned long long)wakes, rounds);
	CHECK(rounds >= loops);
	CHECK_EQ(count_fds(), fds);
	CHECK(falls_to(count_tasks, 1 + TSAN_TASKS));
}
