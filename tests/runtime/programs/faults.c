/* SPDX-License-Identifier: MIT */
/*
 * Signals of faults: where they are handled if a fault raises them, and if they are
 * sent.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <time.h>

#include "handled.h"
#include "lib/base/syscall.h"

static __thread sigjmp_buf jump;

static void leap(int signo)
{
	siglongjmp(jump, signo);
}

static void *fault(void *arg)
{
	usleep(1000);
	if (!sigsetjmp(jump, 1)) {
		*(volatile int *)arg = 1;
		CHECK(false);
	}
	for (int i = 0; i < 10; i++)
		usleep(100);
	return NULL;
}

/* Signals of faults may be sent, too. Carriers don't block these signals. */

static void *kill_each_other(void *arg)
{
	stage++;
	while (!begun) {
		for (int i = 0; i < 100; i++)
			CHECK_EQ(pthread_kill(*(pthread_t *)arg, 0), 0);
		usleep(50);
	}
	return NULL;
}

TEST(a_fault_signal_may_be_sent_while_threads_signal_each_other)
{
	pthread_t threads[3], self = pthread_self();

	install(SIGBUS, 0);
	start_all(threads, 3, kill_each_other, &self);
	while (stage < 3)
		usleep(100);
	block(SIG_BLOCK, SIGBUS);
	for (int i = 0; i < 300; i++) {
		CHECK_EQ(kill(getpid(), SIGBUS), 0);
		while (handled <= i)
			usleep(100);
	}
	CHECK_EQ(handled, 300);
	begun = true;
	join_all(threads, 3);
}

/* Signals of faults that are sent. */

static atomic_int waited;

/* SIGPIPE, too, which a broken pipe raises. */
static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
			      SIGSYS, SIGPIPE };
#define FAULTS	((int)(sizeof(faults) / sizeof(*faults)))

static sigset_t all_faults(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < FAULTS; i++)
		sigaddset(&set, faults[i]);
	return set;
}

/* First blocks nothing, on any kernel thread; then blocks all signals of faults. */
static void *run_open_then_block(void *arg)
{
	const sigset_t set = all_faults();

	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	for (int i = 0; i < 20; i++)
		usleep(100);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	stage++;
	while (!over) {
		usleep(100);
		sched_yield();
	}
	return arg;
}

static void *take_faults(void *arg)
{
	const sigset_t set = all_faults();
	int signo;

	for (int i = 0; i < FAULTS * 20; i++) {
		CHECK_EQ(sigwait(&set, &signo), 0);
		CHECK_EQ(signo, faults[i % FAULTS]);
		waited++;
	}
	return arg;
}

static void send_fault(int signo, timer_t timer, int how)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1 };

	switch (how) {
	case 0:
		CHECK_EQ(kill(getpid(), signo), 0);
		break;
	case 1:
		CHECK_EQ(sigqueue(getpid(), signo, (union sigval){ 0 }), 0);
		break;
	case 2:
		CHECK_EQ(timer_settime(timer, 0, &soon, NULL), 0);
		break;
	default:
		send_from_child(signo);
	}
}

static void send_all_faults(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL };
	timer_t timers[FAULTS];

	for (int i = 0; i < FAULTS; i++) {
		event.sigev_signo = faults[i];
		CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timers[i]), 0);
	}
	for (int i = 0; i < FAULTS * 20; i++) {
		send_fault(faults[i % FAULTS], timers[i % FAULTS], i / FAULTS % 4);
		while (waited <= i)
			usleep(100);
	}
}

/* A thread that waits for the signal gets it, with or without a handler. */
static void faults_reach_waiters(void)
{
	const sigset_t set = all_faults();
	pthread_t threads[4], taker;

	stage = 0;
	waited = 0;
	over = false;
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	start_all(threads, 4, run_open_then_block, NULL);
	while (stage < 4)
		usleep(100);
	taker = start(take_faults, NULL);
	send_all_faults();
	join(taker);
	over = true;
	join_all(threads, 4);
	CHECK_EQ(handled, 0);
}

TEST(a_sent_fault_signal_reaches_a_thread_that_waits_for_it)
{
	faults_reach_waiters();
	for (int i = 0; i < FAULTS; i++)
		install(faults[i], 0);
	faults_reach_waiters();
}

TEST(a_sent_fault_signal_stays_pending_until_it_is_taken)
{
	const struct timespec limit = { 60, 0 }, none = { 0, 0 };
	const sigset_t set = all_faults();
	pthread_t threads[4];

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	start_all(threads, 4, run_open_then_block, NULL);
	while (stage < 4)
		usleep(100);
	for (int i = 0; i < FAULTS * 60; i++) {
		CHECK_EQ(kill(getpid(), faults[i % FAULTS]), 0);
		usleep((useconds_t)i % 10 * 50);
		CHECK_EQ(sigtimedwait(&set, NULL, &limit), faults[i % FAULTS]);
		CHECK_EQ(sigtimedwait(&set, NULL, &none), -1);
	}
	install(SIGILL, 0);
	CHECK_EQ(kill(getpid(), SIGILL), 0);
	settle();
	CHECK_EQ(handled, 0);
	block(SIG_UNBLOCK, SIGILL);
	while (!handled)
		usleep(100);
	CHECK_EQ(handled, 1);
	CHECK(pthread_equal(ran_in, pthread_self()));
	over = true;
	join_all(threads, 4);
}

static void *block_and_stay(void *arg)
{
	const sigset_t set = all_faults();

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	return stay(arg);
}

static void *take_handlers(void *arg)
{
	mine = 4;
	return stay(arg);
}

TEST(a_sent_fault_signal_reaches_no_thread_that_blocks_it)
{
	const sigset_t set = all_faults();
	pthread_t threads[3];

	for (int i = 0; i < FAULTS; i++)
		install(faults[i], SA_RESTART);
	threads[0] = start(take_handlers, NULL);
	threads[1] = start(block_and_stay, NULL);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	threads[2] = start(block_and_stay, NULL);
	while (stage < 3)
		usleep(100);
	for (int i = 0; i < 300; i++) {
		CHECK_EQ(kill(getpid(), faults[i % FAULTS]), 0);
		while (handled <= i)
			usleep(20);
		CHECK_EQ(where, 4);
	}
	over = true;
	join_all(threads, 3);
	CHECK_EQ(handled, 300);
}

static void *jump_after_faults(void *arg)
{
	const sigset_t set = all_faults();

	/* The other threads block these signals. */
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	for (int i = 0; i < 10; i++)
		fault(arg);
	return NULL;
}

TEST(a_fault_is_handled_after_signals_that_were_not_taken)
{
	const struct timespec limit = { 60, 0 };
	const sigset_t set = all_faults();
	struct sigaction action = { .sa_handler = leap };
	pthread_t threads[4];

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	start_all(threads, 4, run_open_then_block, NULL);
	while (stage < 4)
		usleep(100);
	CHECK_EQ(kill(getpid(), SIGSEGV), 0);
	settle();
	CHECK_EQ(sigtimedwait(&set, NULL, &limit), SIGSEGV);
	sigaction(SIGSEGV, &action, NULL);
	join(start(jump_after_faults, NULL));
	over = true;
	join_all(threads, 4);
}

static void *be_killed(void *arg)
{
	const sigset_t set = all_faults();

	usleep(100);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	usleep(100);
	kill(getpid(), *(int *)arg);
	sleep(100);
	return arg;
}

static void *meet_trap(void *arg)
{
	usleep(100);
	if (arg)
		block(SIG_BLOCK, SIGTRAP);
	usleep(100);
	trap();
	return arg;
}

static void *touch_nothing(void *arg)
{
	volatile int *volatile nothing = NULL;

	usleep(100);
	if (arg)
		block(SIG_BLOCK, SIGSEGV);
	usleep(100);
	*nothing = 1;
	return arg;
}

TEST(a_fault_s_signal_ends_the_process)
{
	const sigset_t set = all_faults();

	for (int i = 0; i < FAULTS; i++) {
		int signo = faults[i];

		CHECK_EQ(ends_by(block_and_stay, be_killed, &signo),
			 signo);
	}
	CHECK_EQ(ends_by(block_and_stay, meet_trap, NULL), SIGTRAP);
	CHECK_EQ(ends_by(block_and_stay, touch_nothing, NULL), SIGSEGV);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(ends_by(block_and_stay, touch_nothing, NULL), SIGSEGV);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	/* A fault ends the process if its signal is blocked, even with a handler. */
	install(SIGTRAP, 0);
	install(SIGSEGV, 0);
	CHECK_EQ(ends_by(block_and_stay, meet_trap, &stage), SIGTRAP);
	CHECK_EQ(ends_by(block_and_stay, touch_nothing, &stage), SIGSEGV);
	CHECK_EQ(handled, 0);
}

static int pipe_fds[2];
static atomic_bool taken;

/*
 * Reads while the signals are blocked, by a call that the runtime doesn't intercept.
 * The thread doesn't block the signals at other times.
 */
static void *read_with_faults_blocked(void *arg)
{
	const sigset_t set = all_faults();
	char byte;

	for (int i = 0; i < 50; i++) {
		CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
		for (int j = 0; j < 4; j++)
			usleep(50);
		CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
		usleep(50);
		begun = true;
		CHECK_EQ(raw_syscall(SYS_read, (uint64_t)pipe_fds[0],
				     PTR(&byte), 1, 0, 0, 0), 1);
		while (!taken)
			usleep(50);
		taken = false;
	}
	over = true;
	return arg;
}

TEST(a_sent_fault_signal_interrupts_no_call)
{
	const struct timespec limit = { 60, 0 };
	const sigset_t set = all_faults();
	pthread_t thread;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(pipe(pipe_fds), 0);
	thread = start(read_with_faults_blocked, NULL);
	while (!over) {
		usleep(100);
		if (!begun)
			continue;
		begun = false;
		CHECK_EQ(kill(getpid(), SIGSEGV), 0);
		CHECK_EQ(sigtimedwait(&set, NULL, &limit), SIGSEGV);
		CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
		taken = true;
	}
	join(thread);
}

TEST(the_action_for_a_fault_is_the_program_s)
{
	struct sigaction action = { .sa_handler = SIG_IGN }, was;

	handled = 1;
	join(start(spin, NULL));
	for (int i = 0; i < FAULTS; i++) {
		CHECK_EQ(sigaction(faults[i], NULL, &was), 0);
		CHECK(was.sa_handler == SIG_DFL && !was.sa_flags);
		CHECK_EQ(sigaction(faults[i], &action, &was), 0);
		CHECK(was.sa_handler == SIG_DFL);
		CHECK_EQ(kill(getpid(), faults[i]), 0);
		CHECK_EQ(raise(faults[i]), 0);
		install(faults[i], (int)SA_RESETHAND);
		CHECK_EQ(raise(faults[i]), 0);
		CHECK_EQ(handled, i + 2);
		CHECK_EQ(sigaction(faults[i], NULL, &was), 0);
		CHECK(was.sa_handler == SIG_DFL);
	}
}
