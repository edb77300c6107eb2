/* SPDX-License-Identifier: MIT */
/* Times that programs pass to system calls, and that they get back. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "lib/base/syscall.h"
#include "threads.h"

static long made(long ret)
{
	return ret < 0 ? -errno : ret;
}

/* Unreadable or invalid times, passed by a thread that otherwise sleeps. */

static void refuse_time(const struct timespec *bad, long err)
{
	uint32_t word = 0;
	struct pollfd fd = { .fd = -1 };

	CHECK_EQ(made(syscall(SYS_nanosleep, bad, NULL)), err);
	CHECK_EQ(made(syscall(SYS_clock_nanosleep, CLOCK_REALTIME,
			      TIMER_ABSTIME, bad, NULL)), err);
	CHECK_EQ(made(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, bad,
			      NULL, 0)), err);
	CHECK_EQ(made(syscall(SYS_ppoll, &fd, 1, bad, NULL, 8)), err);
}

static void *refuse_times(void *arg)
{
	const struct timespec wrong = { 0, 1000000000 }, negative = { -1, 0 };
	char *pages = arg;

	usleep(100);
	refuse_time((void *)8, -EFAULT);
	refuse_time((void *)(pages + 4096), -EFAULT);
	/* Only half of the time is readable. */
	refuse_time((void *)(pages + 4088), -EFAULT);
	refuse_time(&wrong, -EINVAL);
	refuse_time(&negative, -EINVAL);
	CHECK_EQ(nanosleep((void *)8, NULL), -1);
	CHECK_EQ(errno, EFAULT);
	/* A sleep that isn't interrupted doesn't write the remaining time. */
	CHECK_EQ(nanosleep((void *)pages, (void *)8), 0);
	return arg;
}

TEST(an_unreadable_time_is_refused)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(pages != MAP_FAILED);
	CHECK_EQ(mprotect(pages + 4096, 4096, PROT_NONE), 0);
	join(start(refuse_times, pages));
	refuse_times(pages);
}

/* Waits until a time on a given clock. */

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;

#define TIMES_OUT(clock, wait)						\
	do {								\
		uint64_t begin = now_ns();				\
		struct timespec end = in_ms(clock, 20);			\
									\
		CHECK_EQ(wait, ETIMEDOUT);				\
		CHECK(now_ns() - begin >= 19 * MS);			\
	} while (0)

static int sem_clock(clockid_t clock, const struct timespec *end)
{
	return sem_clockwait(&sem, clock, end) ? errno : 0;
}

static void *wait_by_clocks(void *arg)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };

	for (int i = 0; i < 2; i++) {
		clockid_t clock = clocks[i];

		TIMES_OUT(clock, pthread_rwlock_clockrdlock(&rwlock, clock,
							    &end));
		TIMES_OUT(clock, pthread_rwlock_clockwrlock(&rwlock, clock,
							    &end));
		TIMES_OUT(clock, sem_clock(clock, &end));
	}
	TIMES_OUT(CLOCK_REALTIME, pthread_rwlock_timedrdlock(&rwlock, &end));
	return arg;
}

static void *unlock_later(void *arg)
{
	settle();
	CHECK_EQ(sem_post(&sem), 0);
	return arg;
}

TEST(waits_end_by_the_clock_they_name)
{
	struct timespec late = in_ms(CLOCK_MONOTONIC, 3600000);
	pthread_t thread;

	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
	join(start(wait_by_clocks, NULL));
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &late),
		 0);
	thread = start(unlock_later, NULL);
	CHECK_EQ(sem_clock(CLOCK_MONOTONIC, &late), 0);
	join(thread);
}

/*
 * When memory is exhausted, more threads wait for a time than the runtime has memory
 * for. All of them sleep while they wait. Threads that wait in a loop would be runnable
 * all the time, also on a busy machine, and in a guest that needs seconds to end them.
 */

enum { CROWD = 750, CROWD_WAITS_MS = 1000, CROWD_TRIES = 5 };

static pthread_barrier_t crowd_made, crowd_goes;
static unsigned int crowd, crowd_waits_ms;
static atomic_uint crowd_begun, crowd_ended;

static void wait_for_condition(void)
{
	struct timespec end = in_ms(CLOCK_REALTIME, crowd_waits_ms);
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&mutex);
	CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &end), ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
}

static void *wait_in_a_crowd(void *arg)
{
	struct pollfd nothing = { .fd = *(int *)arg, .events = POLLIN };
	unsigned int i;
	uint64_t begin;

	pthread_barrier_wait(&crowd_made);
	pthread_barrier_wait(&crowd_goes);
	begin = now_ns();
	/* A sleep needs a timer, and nothing else. */
	i = crowd_begun++;
	if (i < crowd * 4 / 5)
		CHECK_EQ(usleep(crowd_waits_ms * 1000), 0);
	else if (i % 2)
		CHECK_EQ(poll(&nothing, 1, (int)crowd_waits_ms), 0);
	else
		wait_for_condition();
	CHECK(now_ns() - begin >= (crowd_waits_ms - 1) * MS);
	crowd_ended++;
	return arg;
}

static void make_crowd(pthread_t *threads, int *fd)
{
	pthread_attr_t small;

	CHECK_EQ(pthread_attr_init(&small), 0);
	CHECK_EQ(pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN + 49152), 0);
	CHECK_EQ(pthread_barrier_init(&crowd_made, NULL, crowd + 1), 0);
	CHECK_EQ(pthread_barrier_init(&crowd_goes, NULL, crowd + 1), 0);
	for (unsigned int i = 0; i < crowd; i++)
		CHECK_EQ(pthread_create(&threads[i], &small, wait_in_a_crowd,
					fd), 0);
	pthread_barrier_wait(&crowd_made);
}

/*
 * Does another thread run, or would it if it got a processor? Makes raw calls and needs
 * no memory, so that it changes nothing for the other threads.
 */
static bool others_run(int tasks)
{
	_Alignas(struct dirent) static char names[4096];
	static char path[32], text[512];
	const long self = raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	bool run = false;
	long n, fd;

	raw_syscall(SYS_lseek, (uint64_t)tasks, 0, SEEK_SET, 0, 0, 0);
	while ((n = raw_syscall(SYS_getdents64, (uint64_t)tasks, PTR(names),
				sizeof(names), 0, 0, 0)) > 0)
		for (long at = 0; at < n;) {
			const struct dirent *d = (const void *)(names + at);

			at += d->d_reclen;
			if (d->d_name[0] == '.' || atol(d->d_name) == self)
				continue;
			snprintf(path, sizeof(path), "%.16s/stat", d->d_name);
			fd = raw_syscall(SYS_openat, (uint64_t)tasks, PTR(path),
					 O_RDONLY, 0, 0, 0);
			/* The name in parentheses has no parentheses. */
			text[0] = 0;
			raw_syscall(SYS_read, (uint64_t)fd, PTR(text),
				    sizeof(text) - 1, 0, 0, 0);
			raw_syscall(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
			/* A poller runs for a while after the last request. */
			run |= strstr(text, ") R ") && !strstr(text, "(iou-sqp");
		}
	return run;
}

/* Returns whether all threads have slept before the first one ended. */
static bool crowd_rests(pthread_t *threads, int *fd)
{
	const int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
	struct rlimit data;
	bool run;

	CHECK(tasks >= 0);
	make_crowd(threads, fd);
	CHECK_EQ(getrlimit(RLIMIT_DATA, &data), 0);
	data.rlim_cur = 1;
	CHECK_EQ(setrlimit(RLIMIT_DATA, &data), 0);
	pthread_barrier_wait(&crowd_goes);
	while (crowd_begun < crowd)
		usleep(1000);
	do {
		settle();
		run = others_run(tasks);
	} while (run && !crowd_ended);
	run |= crowd_ended != 0;
	join_all(threads, crowd);
	return !run;
}

/*
 * On a slow machine the first thread may end before the last one sleeps. Then all wait
 * longer, in a new process, because threads that end leave memory.
 */
TEST_LIMIT(timed_waits_end_without_memory, 90)
{
	bool *rested = mmap(NULL, sizeof(*rested), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int tries = CROWD_TRIES;
	pthread_t *threads;
	int fds[2];

	CHECK(rested != MAP_FAILED);
	crowd = CROWD * (carriers() ?: 1);
	threads = calloc(crowd, sizeof(*threads));
	CHECK_EQ(pipe(fds), 0);
	for (crowd_waits_ms = CROWD_WAITS_MS; !*rested; crowd_waits_ms *= 2) {
		CHECK(tries--);
		IN_CHILD
			*rested = crowd_rests(threads, fds);
	}
	free(threads);
}

/* Joins with a time limit. */

static void *end_with_post(void *arg)
{
	while (sem_wait(&sem))
		;
	return arg;
}

static void *join_for_a_time(void *arg)
{
	pthread_t thread = start(end_with_post, &sem);
	struct timespec late;
	void *ret = NULL;

	CHECK_EQ(pthread_tryjoin_np(thread, &ret), EBUSY);
	TIMES_OUT(CLOCK_REALTIME, pthread_timedjoin_np(thread, &ret, &end));
	TIMES_OUT(CLOCK_MONOTONIC, pthread_clockjoin_np(thread, &ret,
							CLOCK_MONOTONIC,
							&end));
	CHECK_EQ(sem_post(&sem), 0);
	late = in_ms(CLOCK_MONOTONIC, 3600000);
	CHECK_EQ(pthread_clockjoin_np(thread, &ret, CLOCK_MONOTONIC, &late), 0);
	CHECK(ret == &sem);
	return arg;
}

TEST(a_join_gives_up_in_time)
{
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	join(start(join_for_a_time, NULL));
	join_for_a_time(NULL);
}

/* Timers that signal a thread. */

static atomic_int signalled, signalled_me;
static __thread bool me;

static void tell(union sigval value)
{
	CHECK_EQ(value.sival_int, 7);
	signalled++;
}

static void handle(int signo)
{
	(void)signo;
	signalled++;
	signalled_me += me;
}

static timer_t every_ms(struct sigevent *event)
{
	const struct itimerspec ms = { { 0, 1000000 }, { 0, 1000000 } };
	timer_t timer;

	CHECK_EQ(timer_create(CLOCK_MONOTONIC, event, &timer), 0);
	CHECK_EQ(timer_settime(timer, 0, &ms, NULL), 0);
	return timer;
}

static void *be_told(void *arg)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGUSR1 };
	timer_t timer;

	me = true;
	usleep(100);
	event._sigev_un._tid = gettid();
	timer = every_ms(&event);
	while (signalled < 20)
		usleep(1000);
	while (signalled < 40)
		;
	CHECK_EQ(timer_delete(timer), 0);
	return arg;
}

TEST(a_timer_signals_a_thread)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_value.sival_int = 7 };
	struct sigaction action = { .sa_handler = handle,
				    .sa_flags = SA_RESTART };
	timer_t timer;

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	join(start(be_told, NULL));
	CHECK(signalled >= 40);
	CHECK_EQ(signalled_me, signalled);
	signalled = 0;
	event.sigev_notify_function = tell;
	timer = every_ms(&event);
	while (signalled < 20)
		usleep(1000);
	CHECK_EQ(timer_delete(timer), 0);
}
