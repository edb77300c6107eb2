/* SPDX-License-Identifier: MIT */
/* The start of threads: their signal mask, their number, and lack of memory. */
#define _GNU_SOURCE
#include <malloc.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "late.h"
#include "threads.h"

/* The signals that a new thread blocks. */

static __thread int handled;
static atomic_int all_handled;

static void handle(int signo)
{
	(void)signo;
	handled++;
	all_handled++;
}

static sigset_t set_of(int a, int b)
{
	sigset_t set;

	sigemptyset(&set);
	if (a)
		sigaddset(&set, a);
	if (b)
		sigaddset(&set, b);
	return set;
}

static void blocks(const sigset_t *expected)
{
	sigset_t set;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
	for (int signo = 1; signo <= SIGRTMAX; signo++)
		if (signo < 32 || signo > 33)
			CHECK_EQ(sigismember(&set, signo),
				 sigismember(expected, signo));
}

static void *has_mask(void *set)
{
	blocks(set);
	for (int i = 0; i < 5; i++) {
		usleep(100);
		blocks(set);
	}
	return set;
}

static pthread_t start_with(const sigset_t *set, void *(*run)(void *),
			    void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;

	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setsigmask_np(&attr, set), 0);
	CHECK_EQ(pthread_create(&thread, &attr, run, arg), 0);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
	return thread;
}

TEST_BY_BOTH(a_thread_begins_with_the_mask_it_is_given)
{
	sigset_t mine = set_of(SIGUSR1, 0), none = set_of(0, 0),
		 other = set_of(SIGUSR2, SIGRTMAX), full;

	sigfillset(&full);
	sigdelset(&full, SIGKILL);
	sigdelset(&full, SIGSTOP);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(pthread_sigmask(SIG_SETMASK, &mine, NULL), 0);
		usleep(100);
		join(start(has_mask, &mine));
		join(start_with(&none, has_mask, &none));
		join(start_with(&other, has_mask, &other));
		join(start_with(&full, has_mask, &full));
		blocks(&mine);
		CHECK_EQ(pthread_sigmask(SIG_SETMASK, &none, NULL), 0);
		usleep(100);
		join(start_with(&mine, has_mask, &mine));
		blocks(&none);
	}
}

/* The signal is pending for the process, and every other thread blocks it. */
static void *take_what_is_pending(void *arg)
{
	CHECK_EQ(handled, 1);
	return arg;
}

TEST(a_thread_that_unblocks_a_signal_gets_it_first)
{
	struct sigaction action = { .sa_handler = handle };
	sigset_t one = set_of(SIGUSR1, 0), none = set_of(0, 0);

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &one, NULL), 0);
	join(start(has_mask, &one));
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		CHECK_EQ(all_handled, i);
		join(start_with(&none, take_what_is_pending, NULL));
		CHECK_EQ(all_handled, i + 1);
	}
}

/* A signal for a thread whose creator has ended. */

#define LATE		500000U
#define SMALL_STACK	((size_t)1 << 20)

static pthread_t newborn;

static void *make_another(void *waits)
{
	/* A carrier runs the creator after a wait. */
	if (waits)
		settle();
	late_to_begin = LATE;
	newborn = start(nothing, NULL);
	return NULL;
}

/* On x86-64, the new thread has inherited a pointer to the creator's memory. */
static void orphan_gets_signal(const sigset_t *signals, uintptr_t waits)
{
	void *stack = mmap(NULL, SMALL_STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t creator;

	CHECK(stack != MAP_FAILED);
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstack(&attr, stack, SMALL_STACK), 0);
	CHECK_EQ(pthread_create(&creator, &attr, make_another, (void *)waits), 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, signals, NULL), 0);
	join(creator);
	CHECK_EQ(munmap(stack, SMALL_STACK), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	join(newborn);
	late_to_begin = 0;
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, signals, NULL), 0);
}

TEST(a_new_thread_gets_a_signal_after_its_creator_has_ended)
{
	const struct sigaction action = { .sa_handler = handle };
	const sigset_t signals = set_of(SIGUSR1, 0);

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	for (int i = 0; i < 4; i++) {
		orphan_gets_signal(&signals, i % 2);
		CHECK_EQ(all_handled, i + 1);
	}
}

/* Thousands of threads, one after the other. */

#define MIB	(1UL << 20)
#define STACK	(8 * MIB)

/* Limits the address space to this much more than the process uses now. */
static void limit_memory(unsigned long more)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	struct rlimit limit;

	CHECK(file);
	CHECK_EQ(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	limit.rlim_cur = limit.rlim_max = pages * 4096 + more;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

static atomic_uint begun;
static sem_t sem;

static void *begin_and_end(void *arg)
{
	begun++;
	CHECK_EQ(sem_post(&sem), 0);
	return arg;
}

static void *wait_and_end(void *arg)
{
	usleep(10);
	return begin_and_end(arg);
}

static pthread_attr_t attributes(int detach)
{
	pthread_attr_t attr;

	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setdetachstate(&attr, detach), 0);
	CHECK_EQ(pthread_attr_setstacksize(&attr, STACK), 0);
	return attr;
}

/*
 * Starts detached threads one after the other, as a server with a thread per client
 * does. awaits: each has posted the semaphore before the next one starts.
 */
static void *start_detached(void *(*run)(void *), unsigned int n, bool awaits)
{
	pthread_attr_t attr = attributes(PTHREAD_CREATE_DETACHED);
	pthread_t thread;
	int err;

	begun = 0;
	for (unsigned int i = 0; i < n; i++) {
		/*
		 * On a busy machine many threads may be waiting for a processor to
		 * end.
		 */
		while ((err = pthread_create(&thread, &attr, run, NULL)) ==
			       EAGAIN && !awaits)
			usleep(1000);
		CHECK_EQ(err, 0);
		while (awaits && sem_wait(&sem))
			;
	}
	while (begun < n)
		usleep(1000);
	while (!sem_trywait(&sem))
		;
	return NULL;
}

static void *start_many(void *arg)
{
	/* Twice as many as there is memory for. */
	start_detached(begin_and_end, 500, true);
	start_detached(wait_and_end, 500, true);
	/* The starter doesn't wait for these, so more of them exist at a time. */
	start_detached(begin_and_end, 1000, false);
	return arg;
}

TEST_LIMIT(threads_that_end_leave_room_for_others, 120)
{
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	join(start(begin_and_end, NULL));
	/* Natively about ten of these threads exist at a time. */
	limit_memory(256 * STACK);
	start_many(NULL);
	join(start(start_many, NULL));
}

/* Start threads until memory is exhausted. */

static void *wait_for_post(void *arg)
{
	while (sem_wait(&sem))
		CHECK_EQ(errno, EINTR);
	return arg;
}

#define MOST	200

/* Starts threads until one can't be created. The threads that exist work. */
static unsigned int start_most(pthread_t *threads)
{
	pthread_attr_t attr = attributes(PTHREAD_CREATE_JOINABLE);
	unsigned int n = 0;
	int err;

	while (n < MOST) {
		err = pthread_create(&threads[n], &attr, wait_for_post, &sem);
		if (err)
			break;
		n++;
	}
	CHECK(n < MOST);
	CHECK_EQ(err, EAGAIN);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(pthread_create(&threads[n], &attr, wait_for_post,
					NULL), EAGAIN);
	return n;
}

static void end_all(const pthread_t *threads, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		CHECK_EQ(sem_post(&sem), 0);
	for (unsigned int i = 0; i < n; i++)
		CHECK(join(threads[i]) == &sem);
}

static void *start_until_none_is_left(void *arg)
{
	pthread_t threads[MOST];
	unsigned int n = 0, maps = 0;

	for (int round = 0; round < 8; round++) {
		unsigned int now = start_most(threads);

		end_all(threads, now);
		CHECK(now >= 8);
		/* The attempts that fail leak no memory. */
		if (round > 1)
			CHECK(now + 2 >= n);
		if (round > 2)
			CHECK(count_maps() <= maps + 4);
		n = now;
		if (round == 2)
			maps = count_maps();
	}
	return arg;
}

TEST_LIMIT(without_memory_no_thread_is_made_and_none_is_lost, 60)
{
	/*
	 * malloc() creates another arena only if it finds 64 MB at an aligned
	 * address. With several arenas, the number of threads would vary.
	 */
	CHECK_EQ(mallopt(M_ARENA_MAX, 1), 1);
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	CHECK_EQ(sem_post(&sem), 0);
	join(start(wait_for_post, NULL));
	limit_memory(16 * STACK);
	start_until_none_is_left(NULL);
	join(start(start_until_none_is_left, NULL));
}

/* The first user thread is created by a kernel thread, which then ends. */

static atomic_int made, have_run;

static void *run_once(void *arg)
{
	usleep(1000);
	have_run++;
	return arg;
}

static void make_one(union sigval value)
{
	(void)value;
	CHECK_EQ(pthread_detach(start(run_once, NULL)), 0);
	made++;
}

TEST(the_first_thread_may_be_made_by_one_that_ends)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = make_one };
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	timer_t timer;

	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	for (int i = 1; i <= 20; i++) {
		CHECK_EQ(timer_settime(timer, 0, &soon, NULL), 0);
		while (made < i || have_run < i)
			usleep(1000);
	}
	join(start(run_once, NULL));
	CHECK_EQ(have_run, 21);
}

/*
 * How often the creator of the first thread waits. On a busy machine each wait lasts
 * until another thread has got a processor, which may take half a second.
 */
static long waits(void)
{
	struct rusage usage;

	CHECK_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

static long waits_of_first(void)
{
	int ends[2], pid;
	long n;

	CHECK_EQ(pipe(ends), 0);
	pid = test_fork();
	if (!pid) {
		pthread_t thread;

		n = waits();
		thread = start(nothing, NULL);
		n = waits() - n;
		CHECK_EQ(write(ends[1], &n, sizeof(n)), sizeof(n));
		join(thread);
		test_leave();
	}
	CHECK_EQ(read(ends[0], &n, sizeof(n)), sizeof(n));
	test_reap(pid);
	close(ends[0]);
	close(ends[1]);
	return n;
}

TEST(the_first_thread_needs_one_wait)
{
	long least = waits_of_first();

	/*
	 * The kernel may add waits, for the lock of the address space or for the
	 * disk.
	 */
	for (int i = 0; i < 20 && least > 1; i++) {
		long n = waits_of_first();

		if (n < least)
			least = n;
	}
	CHECK(least <= 1);
}
