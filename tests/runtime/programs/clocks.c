/* SPDX-License-Identifier: MIT */
/*
 * The processor time of threads: a thread's clock, other threads' views of it,
 * getrusage(2), and timers that use it. The process's clock, which the kernel keeps
 * for all its threads, is the reference.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "threads.h"

/* Tolerances: between two clocks that should agree, and for the delay of a timer. */
#define NEAR		(3 * MS * test_slower())
#define LATE		(60 * MS)

static uint64_t ns_of(clockid_t clock)
{
	struct timespec time;

	CHECK_EQ(clock_gettime(clock, &time), 0);
	CHECK(time.tv_nsec >= 0 && time.tv_nsec < 1000000000);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* For how long threads of the process have waited for a processor. */
static uint64_t queued(void)
{
	DIR *dir = opendir("/proc/self/task");
	uint64_t sum = 0, ns;
	struct dirent *task;
	char name[300];
	FILE *file;

	CHECK(dir);
	while ((task = readdir(dir))) {
		snprintf(name, sizeof(name), "/proc/self/task/%s/schedstat",
			 task->d_name);
		file = fopen(name, "re");
		if (file && fscanf(file, "%*u %lu", &ns) == 1)
			sum += ns;
		if (file)
			fclose(file);
	}
	closedir(dir);
	return sum;
}

static uint64_t mine(void)
{
	return ns_of(CLOCK_THREAD_CPUTIME_ID);
}

static clockid_t clock_of(pthread_t thread)
{
	clockid_t clock;

	CHECK_EQ(pthread_getcpuclockid(thread, &clock), 0);
	return clock;
}

/* Computes until the process has used this much more processor time. */
static void compute(uint64_t ns)
{
	uint64_t end = cpu_ns() + ns;

	while (cpu_ns() < end)
		;
}

/* Waits now and then. After a wait, the thread may run on another carrier. */
static void compute_and_wait(unsigned int times, uint64_t ns)
{
	for (unsigned int i = 0; i < times; i++) {
		compute(ns);
		usleep(100);
	}
}

/* The thread's own clock. Its time was *arg before others computed. */

static void *compute_alone(void *arg)
{
	const uint64_t *before = arg;
	uint64_t process, thread, used;

	usleep(100);
	process = cpu_ns();
	thread = mine();
	CHECK(thread - *before < 50 * MS * test_slower());
	compute_and_wait(40, 5 * MS);
	used = mine() - thread;
	process = cpu_ns() - process;
	CHECK(used >= 150 * MS);
	CHECK(used <= process + NEAR);
	return arg;
}

TEST_LIMIT(a_thread_s_clock_counts_what_it_has_computed, 60)
{
	uint64_t none = 0, begun;
	pthread_t thread = start(compute_alone, &none);

	/* In an emulated guest, the start of the program takes long. */
	begun = mine();
	join(thread);
	compute_alone(&begun);
}

static atomic_bool over;

static void *compute_until_over(void *arg)
{
	while (!over)
		compute_and_wait(1, MS);
	return arg;
}

static void *read_often(void *arg)
{
	uint64_t last = mine(), now;

	for (int i = 0; i < 3000; i++) {
		if (i % 10 == 0)
			usleep(50);
		if (i % 500 == 0)
			compute(15 * MS);
		if (i % 700 == 0)
			CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
		now = mine();
		CHECK(now >= last);
		last = now;
		now = ns_of(clock_of(pthread_self()));
		CHECK(now >= last);
		last = now;
	}
	*(uint64_t *)arg = last;
	return arg;
}

/* Another process computes on the same cores. Its time must not be counted here. */
static int begin_rival(void)
{
	int pid = test_fork();

	if (!pid)
		for (;;)
			;
	return pid;
}

static void end_rival(int pid)
{
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

TEST_LIMIT(clocks_go_forward_and_add_up, 60)
{
	uint64_t sum = 0, seen[4] = { 0 }, last[4];
	pthread_t threads[4];
	clockid_t clocks[4];
	int rivals[2] = { begin_rival(), begin_rival() };

	for (int i = 0; i < 4; i++) {
		threads[i] = start(read_often, &last[i]);
		clocks[i] = clock_of(threads[i]);
	}
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 4; i++) {
			struct timespec time;
			uint64_t now;

			/* The thread may have ended. */
			if (clock_gettime(clocks[i], &time))
				continue;
			now = (uint64_t)time.tv_sec * SECOND +
			      (uint64_t)time.tv_nsec;
			CHECK(now >= seen[i]);
			seen[i] = now;
		}
		usleep(500);
	}
	for (int i = 0; i < 4; i++) {
		join(threads[i]);
		CHECK(seen[i] <= last[i] + 50 * MS);
		sum += last[i];
	}
	CHECK(sum >= 60 * MS);
	CHECK(sum <= cpu_ns() + NEAR);
	for (int i = 0; i < 2; i++)
		end_rival(rivals[i]);
}

/* The clocks of other threads. */

struct seen {
	sem_t go, done;
	_Atomic uint64_t ns;
};

static void *compute_and_say(void *arg)
{
	struct seen *seen = arg;

	for (int i = 0; i < 10; i++) {
		while (sem_wait(&seen->go))
			;
		compute_and_wait(2, 4 * MS);
		compute(i * 4 * MS);
		seen->ns = mine();
		CHECK_EQ(sem_post(&seen->done), 0);
	}
	while (sem_wait(&seen->go))
		;
	return NULL;
}

TEST_BY_BOTH_LIMIT(a_thread_s_clock_is_the_same_for_others, 60)
{
	struct seen seen = { 0 };
	pthread_t thread;
	clockid_t clock;

	CHECK_EQ(sem_init(&seen.go, 0, 0), 0);
	CHECK_EQ(sem_init(&seen.done, 0, 0), 0);
	thread = start(compute_and_say, &seen);
	clock = clock_of(thread);
	for (int i = 0; i < 10; i++) {
		uint64_t now;

		CHECK_EQ(sem_post(&seen.go), 0);
		while (sem_wait(&seen.done))
			;
		/* The clock stops soon: when the thread waits. */
		do {
			settle();
			now = ns_of(clock);
			CHECK(now >= seen.ns);
			CHECK(now <= seen.ns + NEAR);
		} while (ns_of(clock) != now);
	}
	CHECK_EQ(sem_post(&seen.go), 0);
	join(thread);
}

/* Destructors that run when a thread ends read its clock, and so do other threads. */

static pthread_key_t ending;

static void compare_at_end(void *arg)
{
	struct seen *seen = arg;

	CHECK(mine() >= seen->ns);
	seen->ns = mine();
	CHECK_EQ(sem_post(&seen->done), 0);
	while (sem_wait(&seen->go))
		;
}

static void *compute_and_end(void *arg)
{
	struct seen *seen = arg;

	compute_and_wait(10, 4 * MS);
	seen->ns = mine();
	CHECK_EQ(pthread_setspecific(ending, seen), 0);
	return NULL;
}

/* The thread waits, and has already used more time than the timer is set to. */
static void check_timer_that_is_due(clockid_t clock)
{
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	struct itimerspec time = { .it_value.tv_nsec = 20 * MS };
	struct itimerspec left;
	timer_t timer;

	CHECK_EQ(timer_create(clock, &none, &timer), 0);
	CHECK_EQ(timer_settime(timer, TIMER_ABSTIME, &time, NULL), 0);
	CHECK_EQ(timer_gettime(timer, &left), 0);
	CHECK(left.it_value.tv_sec == 0 && left.it_value.tv_nsec <= 1);
	CHECK_EQ(timer_delete(timer), 0);
}

TEST_LIMIT(an_ending_thread_keeps_its_processor_time, 60)
{
	struct seen seen = { 0 };
	pthread_t thread;
	clockid_t clock;

	CHECK_EQ(sem_init(&seen.go, 0, 0), 0);
	CHECK_EQ(sem_init(&seen.done, 0, 0), 0);
	CHECK_EQ(pthread_key_create(&ending, compare_at_end), 0);
	for (int i = 0; i < 10; i++) {
		thread = start(compute_and_end, &seen);
		clock = clock_of(thread);
		while (sem_wait(&seen.done))
			;
		settle();
		CHECK(ns_of(clock) >= seen.ns);
		CHECK(ns_of(clock) <= seen.ns + NEAR);
		check_timer_that_is_due(clock);
		CHECK_EQ(sem_post(&seen.go), 0);
		join(thread);
	}
	CHECK_EQ(pthread_key_delete(ending), 0);
}

/* getrusage(2), and the system calls that programs make themselves. */

static uint64_t use_of(const struct rusage *usage)
{
	return ((uint64_t)usage->ru_utime.tv_sec +
		(uint64_t)usage->ru_stime.tv_sec) * SECOND +
	       ((uint64_t)usage->ru_utime.tv_usec +
		(uint64_t)usage->ru_stime.tv_usec) * 1000;
}

TEST_BY_BOTH_LIMIT(the_kernel_s_figures_are_the_same, 60)
{
	struct rusage usage;
	struct timespec time;
	uint64_t now;

	for (int i = 0; i < 10; i++) {
		compute_and_wait(2, 4 * MS);
		now = mine();
		CHECK_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
		CHECK(use_of(&usage) + NEAR >= now);
		CHECK(use_of(&usage) <= mine() + NEAR);
		now = mine();
		CHECK_EQ(syscall(SYS_getrusage, RUSAGE_THREAD, &usage), 0);
		CHECK(use_of(&usage) + NEAR >= now);
		now = mine();
		CHECK_EQ(syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID,
				 &time), 0);
		CHECK((uint64_t)time.tv_nsec + (uint64_t)time.tv_sec * SECOND >=
		      now);
	}
	CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
	CHECK(use_of(&usage) <= cpu_ns() + NEAR);
	CHECK(use_of(&usage) + NEAR >= mine());
	CHECK_EQ(syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, 8), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(syscall(SYS_getrusage, RUSAGE_THREAD, 8), -1);
	CHECK_EQ(errno, EFAULT);
}

/*
 * A timer may expire neither before its time, by its own clock, nor long after it.
 * The runtime's thread that reads the clocks may have waited for a processor.
 */
static void check_told(uint64_t now, uint64_t when, uint64_t queued_before)
{
	const uint64_t waited = queued() - queued_before;

	CHECK(now >= when - NEAR);
	CHECK(now <= when + LATE + waited);
}

/* Sleep until other threads have computed for a time. */

static void *sleep_by_clocks(void *arg)
{
	const struct timespec ms20 = { 0, 20 * MS };
	pthread_t other = start(compute_until_over, NULL);
	clockid_t clock = clock_of(other);
	struct timespec until;
	uint64_t begin, before;

	begin = cpu_ns();
	CHECK_EQ(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &ms20, NULL), 0);
	CHECK(cpu_ns() - begin >= 20 * MS);
	begin = ns_of(clock);
	CHECK_EQ(clock_nanosleep(clock, 0, &ms20, NULL), 0);
	CHECK(ns_of(clock) - begin >= 20 * MS - NEAR);
	before = queued();
	begin = ns_of(clock) + 20 * MS;
	until = (struct timespec){ (time_t)(begin / SECOND),
				   (long)(begin % SECOND) };
	CHECK_EQ(clock_nanosleep(clock, TIMER_ABSTIME, &until, NULL), 0);
	check_told(ns_of(clock), begin, before);
	CHECK_EQ(clock_nanosleep(clock_of(pthread_self()), 0, &ms20, NULL),
		 EINVAL);
	over = true;
	join(other);
	return arg;
}

TEST_LIMIT(a_thread_sleeps_by_what_others_compute, 60)
{
	sleep_by_clocks(NULL);
	over = false;
	join(start(sleep_by_clocks, NULL));
}

static __thread volatile sig_atomic_t signalled;
static atomic_int all_told;

static void tell(int signo)
{
	(void)signo;
	signalled++;
	all_told++;
}

static void handle(void)
{
	struct sigaction action = { .sa_handler = tell, .sa_flags = SA_RESTART };

	signalled = 0;
	all_told = 0;
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
}

static timer_t timer_to(clockid_t clock, pid_t tid)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGUSR1 };
	timer_t timer;

	event._sigev_un._tid = tid;
	CHECK_EQ(timer_create(clock, &event, &timer), 0);
	return timer;
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / SECOND), (long)(ns % SECOND) };
}

static void set_timer(timer_t timer, int flags, uint64_t first, uint64_t every)
{
	const struct itimerspec spec = { .it_value = time_of(first),
					 .it_interval = time_of(every) };
	struct itimerspec left;

	CHECK_EQ(timer_settime(timer, flags, &spec, NULL), 0);
	CHECK_EQ(timer_gettime(timer, &left), 0);
	if (!(flags & TIMER_ABSTIME))
		CHECK((uint64_t)left.it_value.tv_sec * SECOND +
		      (uint64_t)left.it_value.tv_nsec <= first);
}

static void compute_until_told(clockid_t clock, uint64_t when)
{
	const uint64_t before = queued();

	while (!signalled)
		compute_and_wait(1, MS);
	check_told(ns_of(clock), when, before);
	signalled = 0;
}

static void *time_oneself(void *arg)
{
	const clockid_t clocks[] = { CLOCK_THREAD_CPUTIME_ID,
				     clock_of(pthread_self()),
				     CLOCK_PROCESS_CPUTIME_ID };

	compute_and_wait(5, 5 * MS);
	for (int i = 0; i < 3; i++) {
		timer_t timer = timer_to(clocks[i], gettid());
		uint64_t now = ns_of(clocks[i]);

		set_timer(timer, 0, 40 * MS, 0);
		compute_until_told(clocks[i], now + 40 * MS);
		now = ns_of(clocks[i]) + 40 * MS;
		set_timer(timer, TIMER_ABSTIME, now, 0);
		compute_until_told(clocks[i], now);
		now = ns_of(clocks[i]);
		set_timer(timer, 0, 20 * MS, 20 * MS);
		compute_until_told(clocks[i], now + 20 * MS);
		compute_until_told(clocks[i], now + 40 * MS);
		CHECK_EQ(timer_delete(timer), 0);
		compute_and_wait(5, 5 * MS);
		signalled = 0;
	}
	return arg;
}

TEST_LIMIT(a_timer_signals_a_thread_that_has_computed_for_so_long, 60)
{
	handle();
	time_oneself(NULL);
	join(start(time_oneself, NULL));
}

struct worker {
	_Atomic pid_t tid;
	atomic_bool computes;
};

static void *work(void *arg)
{
	struct worker *worker = arg;

	worker->tid = gettid();
	while (!over) {
		if (worker->computes)
			compute_and_wait(1, MS);
		else
			usleep(1000);
	}
	CHECK_EQ(signalled, 0);
	return NULL;
}

static void *time_other(void *arg)
{
	struct worker worker = { 0 };
	pthread_t thread = start(work, &worker);
	clockid_t clock = clock_of(thread);
	timer_t timer = timer_to(clock, gettid());
	uint64_t when, before;

	signalled = 0;
	worker.computes = true;
	while (ns_of(clock) < 20 * MS)
		usleep(1000);
	for (int i = 0; i < 4; i++) {
		before = queued();
		when = ns_of(clock) + 30 * MS;
		set_timer(timer, i % 2 ? TIMER_ABSTIME : 0,
			  i % 2 ? when : 30 * MS, 0);
		while (!signalled)
			usleep(500);
		check_told(ns_of(clock), when, before);
		signalled = 0;
	}
	worker.computes = false;
	settle();
	set_timer(timer, 0, 30 * MS, 0);
	for (int i = 0; i < 60; i++)
		usleep(1000);
	CHECK_EQ(signalled, 0);
	CHECK_EQ(timer_delete(timer), 0);
	over = true;
	join(thread);
	return arg;
}

TEST_LIMIT(a_timer_signals_what_another_thread_has_computed, 60)
{
	handle();
	time_other(NULL);
	over = false;
	join(start(time_other, NULL));
}
