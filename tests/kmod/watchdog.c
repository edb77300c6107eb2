// SPDX-License-Identifier: MIT
/*
 * No call keeps a processor: whatever a process has in its memory, and whichever
 * of the module's calls it makes, a real-time task of the same processor comes
 * to run soon. Runs in a guest with one processor whose clock counts
 * instructions, so what the host does meanwhile doesn't matter; as root.
 *
 *	kmod-watchdog [seed=N] [rounds=N]
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "chance.h"
#include "raw.h"

#define LATE	(50 * MS)
#define TICK	MS
#define SPAN	(100 * MS)	/* of a process */
#define NOBODY	65534

static struct raw raw;

/* Processes that mean ill: nobody's, and each by itself on the processor. */

static void be_nobody(void)
{
	const struct sched_param none = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK_EQ(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	CHECK_EQ(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY), 0);
}

static void wait_again(uint32_t flags)
{
	raw.shared->wait_flags = flags;
	raw.shared->timeout = 0;
	ioctl(raw.fd, FLEXSC_IOC_WAIT, 0);
}

/* Put aside by the owner, and nobody is there to take it. */
static void one_aside(void)
{
	raw_post(&raw, 0, FLEXSC_ASIDE, SYS_getppid, 0, 0, 0);
	wait_again(FLEXSC_WAIT_NO_MORE);
	wait_again(FLEXSC_WAIT_NO_MORE);
	CHECK_EQ(raw_reap(&raw), 1);
	CHECK_EQ(raw.entries[0].ret, -EAGAIN);
}

static void never_readable(void)
{
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	raw_post(&raw, 0, FLEXSC_IF_READABLE, SYS_getppid, (uint64_t)fds[0], 0,
		 0);
	wait_again(FLEXSC_WAIT_NO_MORE);
	wait_again(FLEXSC_WAIT_NO_MORE);
	CHECK_EQ(raw_reap(&raw), 1);
	CHECK_EQ(raw.entries[0].ret, -EAGAIN);
	close(fds[0]);
	close(fds[1]);
}

/* There seem to be two billion entries, and none is submitted. */
static void a_lying_tail(void)
{
	raw.shared->tail += 1U << 31;
	wait_again(0);
}

/* Anything of the kind, with calls that end soon. */

static void *serve(void *arg)
{
	struct flexsc_serve args = { .index = FLEXSC_NO_ENTRY, .core = -1 };

	(void)arg;
	for (;;) {
		int result = ioctl(raw.fd, FLEXSC_IOC_SERVE, &args);

		args.flags = (uint32_t)below(16);
		if (result == FLEXSC_SERVE_END)
			return NULL;
	}
}

static void post_any(void)
{
	static const struct timespec brief = { 0, 1000 };
	const uint32_t index = (uint32_t)below(4);

	if (one_in(3))
		raw_post(&raw, index, (uint8_t)(below(16) << 3), SYS_nanosleep,
			 PTR(&brief), 0, 0);
	else
		raw_post(&raw, index, (uint8_t)(below(16) << 3), SYS_getppid,
			 below(4), 0, 0);
	if (one_in(4))
		raw.shared->tail += (uint32_t)below(1000);
}

static void set_any_policy(void)
{
	struct flexsc_policy policy = {
		.cores = (uint32_t)below(2),
		.spin = (uint32_t)below(3),
		.spin_us = (uint32_t)below(FLEXSC_SPIN_US_MAX),
		.idle_ms = (uint32_t)below(3),
		.backlog = (uint32_t)below(3),
	};

	ioctl(raw.fd, FLEXSC_IOC_SET_POLICY, &policy);
}

static void anything(void)
{
	pthread_t thread;

	set_any_policy();
	for (uint64_t n = below(4); n; n--)
		CHECK_EQ(pthread_create(&thread, NULL, serve, NULL), 0);
	for (;;) {
		switch (below(6)) {
		case 0:
			raw.shared->seen = below(3);
			raw_enter(&raw);
			break;
		case 1:
			ioctl(raw.fd, FLEXSC_IOC_KICK);
			break;
		case 2:
			ioctl(raw.fd, FLEXSC_IOC_WAKE);
			break;
		case 3:
			ioctl(raw.fd, FLEXSC_IOC_CANCEL, below(4));
			raw_reap(&raw);
			break;
		default:
			post_any();
			wait_again((uint32_t)below(4));
		}
	}
}

/* The watchdog. */

static void sleep_until(uint64_t ns)
{
	const struct timespec until = { (time_t)(ns / SECOND),
					(long)(ns % SECOND) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* How late this task comes to run, at most, while the process has its way. */
static uint64_t lateness_beside(pid_t pid, uint64_t span)
{
	const uint64_t end = now_ns() + span;
	uint64_t most = 0, due = now_ns();

	while (due < end && waitpid(pid, NULL, WNOHANG) == 0) {
		due += TICK;
		sleep_until(due);
		if (now_ns() - due > most)
			most = now_ns() - due;
		if (now_ns() > due)
			due = now_ns();
	}
	return most;
}

static void disturb(void (*run)(void), uint64_t seed)
{
	const struct sched_param first = { .sched_priority = 50 };
	uint64_t late;
	pid_t pid;

	CHECK_EQ(sched_setscheduler(0, SCHED_FIFO, &first), 0);
	pid = test_fork();
	if (!pid) {
		be_nobody();
		chance_seed(seed);
		raw_open(&raw, 1, 0);
		run();
		test_leave();
	}
	late = lateness_beside(pid, SPAN);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	test_note("seed %llu: at most %llu us late", (unsigned long long)seed,
		  (unsigned long long)(late / 1000));
	CHECK(late < LATE);
}

/* The processor is the watchdog's when it likes: else the tests show nothing. */
static void burn(void)
{
	for (;;)
		;
}

TEST(a_process_that_burns_is_put_off)
{
	disturb(burn, 0);
}

TEST(an_entry_that_is_put_aside_keeps_nobody)
{
	disturb(one_aside, 0);
}

TEST(an_entry_that_is_never_ready_keeps_nobody)
{
	disturb(never_readable, 0);
}

TEST(a_lying_tail_keeps_nobody)
{
	disturb(a_lying_tail, 0);
}

TEST_LIMIT(nothing_keeps_a_processor, 600)
{
	const unsigned long seed = test_parameter("seed", (unsigned long)now_ns());
	const unsigned long rounds = test_parameter("rounds", 20);

	for (unsigned long i = 0; i < rounds; i++)
		disturb(anything, seed + i);
}
