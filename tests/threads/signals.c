/* SPDX-License-Identifier: MIT */
/* Signals: who gets them, where handlers run, what they interrupt. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "threads.h"

static atomic_int handled;
static __thread int mine;
static atomic_int where;
static _Atomic pthread_t ran_in;
static int fds[2];

static void count(int signo)
{
	(void)signo;
	where = mine;
	ran_in = pthread_self();
	/* Last: who sees it looks at the others. */
	handled++;
}

static void install(int signo, int flags)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = flags };

	CHECK_EQ(sigaction(signo, &action, NULL), 0);
}

static atomic_int stage;

static void *blocked_read(void *arg)
{
	char byte;
	ssize_t n;

	mine = 7;
	n = read(fds[0], &byte, 1);
	*(int *)arg = n < 0 ? -errno : (int)n;
	stage++;
	return NULL;
}

/* Again if it came too early, before the thread waited. */
static void signal_until(int next, pthread_t thread)
{
	while (stage < next) {
		settle();
		if (stage < next)
			CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
	}
}

TEST(a_handler_runs_in_its_thread_and_ends_a_call)
{
	pthread_t thread;
	int result;

	CHECK_EQ(pipe(fds), 0);
	install(SIGUSR1, 0);
	thread = start(blocked_read, &result);
	signal_until(1, thread);
	join(thread);
	CHECK_EQ(result, -EINTR);
	CHECK(handled >= 1);
	CHECK_EQ(where, 7);
	CHECK(pthread_equal(ran_in, thread));
}

TEST(a_restarted_call_goes_on)
{
	pthread_t thread;
	int result;

	CHECK_EQ(pipe(fds), 0);
	install(SIGUSR1, SA_RESTART);
	thread = start(blocked_read, &result);
	settle();
	for (int i = 0; i < 20; i++) {
		pthread_kill(thread, SIGUSR1);
		usleep(2000);
	}
	while (!handled)
		usleep(1000);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	join(thread);
	CHECK_EQ(result, 1);
}

static void *other_waits(void *arg)
{
	struct pollfd fd = { fds[0], POLLIN, 0 };
	struct timespec long_time = { 100, 0 }, rest = { 0 };

	CHECK_EQ(poll(&fd, 1, -1), -1);
	CHECK_EQ(errno, EINTR);
	stage++;
	CHECK_EQ(nanosleep(&long_time, &rest), -1);
	CHECK_EQ(errno, EINTR);
	CHECK(rest.tv_sec >= 90 && rest.tv_sec < 100);
	stage++;
	CHECK(sleep(100) >= 90);
	stage++;
	CHECK_EQ(sem_wait(arg), -1);
	CHECK_EQ(errno, EINTR);
	stage++;
	CHECK_EQ(pause(), -1);
	CHECK_EQ(errno, EINTR);
	stage++;
	return NULL;
}

TEST(every_kind_of_wait_is_interrupted)
{
	pthread_t thread;
	sem_t sem;

	CHECK_EQ(pipe(fds), 0);
	sem_init(&sem, 0, 0);
	install(SIGUSR1, 0);
	thread = start(other_waits, &sem);
	for (int i = 1; i <= 5; i++)
		signal_until(i, thread);
	join(thread);
	CHECK(handled >= 5);
}

static atomic_bool begun;

static void *spin(void *arg)
{
	mine = 9;
	begun = true;
	while (!handled)
		;
	return arg;
}

TEST(a_thread_that_computes_is_interrupted)
{
	pthread_t thread;

	install(SIGUSR1, 0);
	thread = start(spin, NULL);
	while (!begun)
		usleep(100);
	pthread_kill(thread, SIGUSR1);
	join(thread);
	CHECK_EQ(where, 9);
}

static void *raise_here(void *arg)
{
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	CHECK(pthread_equal(ran_in, pthread_self()));
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_EQ(handled, 2);
	return arg;
}

TEST(a_signal_to_oneself_arrives_at_once)
{
	install(SIGUSR1, 0);
	join(start(raise_here, NULL));
}

static atomic_int round_sent;

static void *sleep_after_each(void *arg)
{
	for (int i = 1; i <= 300; i++) {
		while (round_sent < i)
			usleep(50);
		/* It has come, or comes before the call. */
		CHECK_EQ(usleep(300), 0);
		CHECK_EQ(handled, i);
		stage = i;
	}
	return arg;
}

TEST(a_signal_comes_before_what_its_sender_does_next)
{
	pthread_t thread;

	install(SIGUSR1, 0);
	thread = start(sleep_after_each, NULL);
	for (int i = 1; i <= 300; i++) {
		usleep(50 + 7 * (i % 20));
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		round_sent = i;
		while (stage < i)
			usleep(100);
	}
	join(thread);
}

static void block(int how, int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	CHECK_EQ(pthread_sigmask(how, &set, NULL), 0);
}

static void *block_and_sleep(void *arg)
{
	sigset_t now;

	block(SIG_BLOCK, SIGUSR1);
	begun = true;
	/* Through waits, and changes of carriers. */
	for (int i = 0; i < 50; i++)
		usleep(1000);
	CHECK_EQ(handled, 0);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	CHECK(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
	sigpending(&now);
	CHECK(sigismember(&now, SIGUSR1));
	block(SIG_UNBLOCK, SIGUSR1);
	CHECK_EQ(handled, 1);
	return arg;
}

TEST(a_blocked_signal_waits)
{
	pthread_t thread;

	install(SIGUSR1, 0);
	thread = start(block_and_sleep, NULL);
	while (!begun)
		usleep(100);
	pthread_kill(thread, SIGUSR1);
	join(thread);
	CHECK_EQ(handled, 1);
}

static atomic_int sleeper;

static void *block_one(void *arg)
{
	block(SIG_BLOCK, SIGUSR2);
	sleeper = gettid();
	while (!stage)
		usleep(10000);
	return arg;
}

TEST(the_kernel_shows_a_thread_s_mask)
{
	pthread_t thread = start(block_one, NULL);
	char name[64], text[2048];
	const char *line;
	ssize_t n;
	int fd;

	while (!sleeper)
		usleep(1000);
	settle();
	snprintf(name, sizeof(name), "/proc/self/task/%d/status", sleeper);
	fd = open(name, O_RDONLY);
	n = read(fd, text, sizeof(text) - 1);
	CHECK(n > 0);
	text[n] = 0;
	line = strstr(text, "SigBlk:");
	CHECK(line);
	CHECK_EQ(strtoull(line + 7, NULL, 16), 1ULL << (SIGUSR2 - 1));
	CHECK_EQ(close(fd), 0);
	stage = 1;
	join(thread);
}

static bool is_blocked(int signo)
{
	sigset_t now;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	return sigismember(&now, signo);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void *hold_and_pause(void *arg)
{
	usleep(1000);
	CHECK_EQ(sighold(SIGUSR1), 0);
	CHECK(sigset(SIGUSR2, SIG_HOLD) == SIG_DFL);
	for (int i = 0; i < 10; i++)
		usleep(100);
	CHECK(is_blocked(SIGUSR1) && is_blocked(SIGUSR2));
	begun = true;
	CHECK_EQ(sigpause(SIGUSR1), -1);
	CHECK_EQ(errno, EINTR);
	CHECK_EQ(handled, 1);
	CHECK(is_blocked(SIGUSR1));
	CHECK_EQ(sigrelse(SIGUSR1), 0);
	CHECK(!is_blocked(SIGUSR1) && is_blocked(SIGUSR2));
	return arg;
}

#pragma GCC diagnostic pop

static void *take_signals(void *arg)
{
	for (int i = 0; i < 10; i++)
		usleep(100);
	CHECK(!is_blocked(SIGUSR1) && !is_blocked(SIGUSR2));
	return arg;
}

TEST(system_v_s_functions_change_a_thread_s_own_mask)
{
	pthread_t thread;

	install(SIGUSR1, 0);
	thread = start(hold_and_pause, NULL);
	while (!begun)
		usleep(100);
	join(start(take_signals, NULL));
	pthread_kill(thread, SIGUSR1);
	join(thread);
	CHECK_EQ(handled, 1);
}

static void *inherit(void *arg)
{
	sigset_t now;

	usleep(1000);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	CHECK(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
	return arg;
}

TEST(a_new_thread_inherits_the_mask)
{
	handled = 1;
	join(start(spin, NULL));
	block(SIG_BLOCK, SIGUSR1);
	join(start(inherit, NULL));
}

static void *wait_for_signal(void *arg)
{
	sigset_t set;
	int signo;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(sigwait(&set, &signo), 0);
	*(int *)arg = signo;
	return NULL;
}

TEST(a_thread_that_waits_for_signals_gets_the_process_s)
{
	pthread_t thread;
	int signo = 0;

	block(SIG_BLOCK, SIGTERM);
	block(SIG_BLOCK, SIGUSR2);
	thread = start(wait_for_signal, &signo);
	settle();
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	join(thread);
	CHECK_EQ(signo, SIGTERM);
}

TEST(the_process_s_signal_reaches_a_thread_that_takes_it)
{
	pthread_t thread;
	int result;

	CHECK_EQ(pipe(fds), 0);
	install(SIGUSR1, 0);
	thread = start(blocked_read, &result);
	block(SIG_BLOCK, SIGUSR1);
	while (!stage) {
		settle();
		if (!stage)
			CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	}
	join(thread);
	CHECK(handled >= 1);
	CHECK_EQ(result, -EINTR);
	CHECK(pthread_equal(ran_in, thread));
}

static void *sleep_long(void *arg)
{
	sleep(100);
	return arg;
}

TEST(a_signal_without_a_handler_ends_the_process)
{
	int pid = fork(), status;

	CHECK(pid >= 0);
	if (!pid) {
		start(sleep_long, NULL);
		sleep_long(NULL);
		_exit(1);
	}
	settle();
	settle();
	CHECK_EQ(kill(pid, SIGTERM), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static __thread void *volatile stack_seen;

static void see_stack(int signo)
{
	int here;

	(void)signo;
	stack_seen = &here;
	handled++;
}

static void *use_alternate_stack(void *arg)
{
	stack_t stack = { .ss_sp = arg, .ss_size = 65536 }, now;

	CHECK_EQ(sigaltstack(&stack, NULL), 0);
	for (int i = 0; i < 10; i++)
		usleep(100);
	raise(SIGUSR1);
	CHECK((char *)stack_seen > (char *)arg &&
	      (char *)stack_seen < (char *)arg + 65536);
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK(now.ss_sp == arg);
	return NULL;
}

TEST(a_thread_has_its_own_signal_stack)
{
	struct sigaction action = { .sa_handler = see_stack,
				    .sa_flags = SA_ONSTACK };
	static char stacks[2][65536];
	pthread_t a, b;

	sigaction(SIGUSR1, &action, NULL);
	a = start(use_alternate_stack, stacks[0]);
	b = start(use_alternate_stack, stacks[1]);
	join(a);
	join(b);
	CHECK_EQ(handled, 2);
}

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

TEST(a_fault_is_handled_where_it_happens)
{
	struct sigaction action = { .sa_handler = leap };
	pthread_t a, b;

	sigaction(SIGSEGV, &action, NULL);
	a = start(fault, NULL);
	b = start(fault, NULL);
	join(a);
	join(b);
	/* Again: the first jumped out of its handler. */
	join(start(fault, NULL));
}

static void *work_under_fire(void *arg)
{
	for (int i = 0; i < 3000; i++) {
		char byte = (char)i, got;

		CHECK_EQ(write(((int *)arg)[1], &byte, 1), 1);
		CHECK_EQ(read(((int *)arg)[0], &got, 1), 1);
		CHECK_EQ(got, byte);
		if (i % 100 == 0)
			usleep(10);
	}
	return NULL;
}

TEST(a_rain_of_signals_disturbs_nothing)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { 0 };
	pthread_t threads[4];
	int pipes[4][2];

	install(SIGALRM, SA_RESTART);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(pipe(pipes[i]), 0);
		threads[i] = start(work_under_fire, pipes[i]);
	}
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(handled > 10);
}

#ifdef __x86_64__
static atomic_int traps;

static void note_trap(int signo, siginfo_t *info, void *frame)
{
	const ucontext_t *context = frame;

	CHECK_EQ(signo, SIGTRAP);
	CHECK_EQ(info->si_code, 0x80);
	CHECK_EQ(context->uc_mcontext.gregs[REG_TRAPNO], 3);
	traps++;
}

static void *trap(void *arg)
{
	for (int i = 0; i < 3; i++) {
		usleep(1000);
		__asm__ volatile("int3");
	}
	return arg;
}

TEST(a_breakpoint_is_handled_where_it_is)
{
	struct sigaction action = { .sa_sigaction = note_trap,
				    .sa_flags = SA_SIGINFO };

	CHECK_EQ(sigaction(SIGTRAP, &action, NULL), 0);
	join(start(trap, NULL));
	trap(NULL);
	CHECK_EQ(traps, 6);
}
#endif

/* Signals that faults raise may be sent, too; carriers don't block them. */

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

TEST(a_fault_s_signal_may_be_sent_while_threads_signal_each_other)
{
	pthread_t threads[3], self = pthread_self();

	install(SIGBUS, 0);
	for (int i = 0; i < 3; i++)
		threads[i] = start(kill_each_other, &self);
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
	for (int i = 0; i < 3; i++)
		join(threads[i]);
}

/* What faults raise, sent. */

static atomic_int waited;
static atomic_bool over;

static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
			      SIGSYS };

static sigset_t all_faults(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < 6; i++)
		sigaddset(&set, faults[i]);
	return set;
}

/* Blocking nothing, wherever they run; then all that faults raise. */
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

	for (int i = 0; i < 6 * 20; i++) {
		CHECK_EQ(sigwait(&set, &signo), 0);
		CHECK_EQ(signo, faults[i % 6]);
		waited++;
	}
	return arg;
}

static void send_from_child(int signo)
{
	int pid = fork();

	if (!pid) {
		kill(getppid(), signo);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
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
	timer_t timers[6];

	for (int i = 0; i < 6; i++) {
		event.sigev_signo = faults[i];
		CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timers[i]), 0);
	}
	for (int i = 0; i < 6 * 20; i++) {
		send_fault(faults[i % 6], timers[i % 6], i / 6 % 4);
		while (waited <= i)
			usleep(100);
	}
}

/* Whether or not there are handlers, who waits for it gets it. */
static void faults_reach_who_waits(void)
{
	const sigset_t set = all_faults();
	pthread_t threads[4], taker;

	stage = 0;
	waited = 0;
	over = false;
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	for (int i = 0; i < 4; i++)
		threads[i] = start(run_open_then_block, NULL);
	while (stage < 4)
		usleep(100);
	taker = start(take_faults, NULL);
	send_all_faults();
	join(taker);
	over = true;
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	CHECK_EQ(handled, 0);
}

TEST(a_fault_s_signal_that_is_sent_reaches_who_waits_for_it)
{
	faults_reach_who_waits();
	for (int i = 0; i < 6; i++)
		install(faults[i], 0);
	faults_reach_who_waits();
}

TEST(a_fault_s_signal_that_is_sent_stays_until_somebody_takes_it)
{
	const struct timespec limit = { 10, 0 };
	const sigset_t set = all_faults();
	pthread_t threads[4];

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	for (int i = 0; i < 4; i++)
		threads[i] = start(run_open_then_block, NULL);
	while (stage < 4)
		usleep(100);
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(kill(getpid(), faults[i]), 0);
		settle();
		CHECK_EQ(sigtimedwait(&set, NULL, &limit), faults[i]);
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
	for (int i = 0; i < 4; i++)
		join(threads[i]);
}

static void *block_and_stay(void *arg)
{
	const sigset_t set = all_faults();

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	stage++;
	while (!over)
		usleep(100);
	return arg;
}

TEST(a_sigpipe_that_is_sent_reaches_who_waits_for_it)
{
	const struct timespec limit = { 10, 0 };
	pthread_t threads[4];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	for (int i = 0; i < 4; i++)
		threads[i] = start(block_and_stay, NULL);
	while (stage < 4)
		usleep(100);
	for (int i = 0; i < 20; i++) {
		send_from_child(SIGPIPE);
		usleep(1000);
		CHECK_EQ(sigtimedwait(&set, NULL, &limit), SIGPIPE);
	}
	over = true;
	for (int i = 0; i < 4; i++)
		join(threads[i]);
}

static void *take_handlers(void *arg)
{
	mine = 4;
	stage++;
	while (!over)
		usleep(100);
	return arg;
}

TEST(a_fault_s_signal_that_is_sent_comes_to_none_that_blocks_it)
{
	const sigset_t set = all_faults();
	pthread_t threads[3];

	for (int i = 0; i < 6; i++)
		install(faults[i], SA_RESTART);
	threads[0] = start(take_handlers, NULL);
	threads[1] = start(block_and_stay, NULL);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	threads[2] = start(block_and_stay, NULL);
	while (stage < 3)
		usleep(100);
	for (int i = 0; i < 300; i++) {
		CHECK_EQ(kill(getpid(), faults[i % 6]), 0);
		while (handled <= i)
			usleep(20);
		CHECK_EQ(where, 4);
	}
	over = true;
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	CHECK_EQ(handled, 300);
}

static void *jump_after_faults(void *arg)
{
	const sigset_t set = all_faults();

	/* Where others block it. */
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	for (int i = 0; i < 10; i++)
		fault(arg);
	return NULL;
}

TEST(a_fault_is_handled_also_after_signals_that_nobody_took)
{
	const struct timespec limit = { 10, 0 };
	const sigset_t set = all_faults();
	struct sigaction action = { .sa_handler = leap };
	pthread_t threads[4];

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	for (int i = 0; i < 4; i++)
		threads[i] = start(run_open_then_block, NULL);
	while (stage < 4)
		usleep(100);
	CHECK_EQ(kill(getpid(), SIGSEGV), 0);
	settle();
	CHECK_EQ(sigtimedwait(&set, NULL, &limit), SIGSEGV);
	sigaction(SIGSEGV, &action, NULL);
	join(start(jump_after_faults, NULL));
	over = true;
	for (int i = 0; i < 4; i++)
		join(threads[i]);
}

/* What ends a process of ours that does this. */
static int ends_by(void *(*function)(void *), void *arg)
{
	int pid = fork(), status;

	CHECK(pid >= 0);
	if (!pid) {
		start(block_and_stay, NULL);
		join(start(function, arg));
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
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
	__asm__ volatile("int3");
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

	for (int i = 0; i < 6; i++) {
		int signo = faults[i];

		CHECK_EQ(ends_by(be_killed, &signo), signo);
	}
	CHECK_EQ(ends_by(meet_trap, NULL), SIGTRAP);
	CHECK_EQ(ends_by(touch_nothing, NULL), SIGSEGV);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(ends_by(touch_nothing, NULL), SIGSEGV);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	/* Blocked, also if there is a handler. */
	install(SIGTRAP, 0);
	install(SIGSEGV, 0);
	CHECK_EQ(ends_by(meet_trap, &stage), SIGTRAP);
	CHECK_EQ(ends_by(touch_nothing, &stage), SIGSEGV);
	CHECK_EQ(handled, 0);
}

TEST(a_fault_s_action_is_what_the_program_set)
{
	struct sigaction action = { .sa_handler = SIG_IGN }, was;

	handled = 1;
	join(start(spin, NULL));
	for (int i = 0; i < 6; i++) {
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

/* Queued ones. */

#define QUEUED	30

static int queued[QUEUED];
static atomic_int arrived;

static void note_value(int signo, siginfo_t *info, void *context)
{
	int i = arrived;

	(void)signo;
	(void)context;
	CHECK(info->si_code == SI_QUEUE);
	if (i < QUEUED)
		queued[i] = info->si_value.sival_int;
	arrived++;
}

static void *sleep_until_all(void *arg)
{
	while (arrived < QUEUED)
		usleep(10000);
	return arg;
}

static void *compute_until_all(void *arg)
{
	while (arrived < QUEUED)
		;
	return arg;
}

/* It comes home with them blocked, and takes them there. */
static void *block_and_take(void *arg)
{
	siginfo_t info;
	sigset_t all;

	sigfillset(&all);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &all, NULL), 0);
	stage = 1;
	while (stage < 2)
		;
	while (arrived < QUEUED) {
		CHECK_EQ(sigwaitinfo(&all, &info), SIGRTMIN + 1);
		note_value(SIGRTMIN + 1, &info, NULL);
	}
	return arg;
}

static void queue_all(pthread_t thread)
{
	memset(queued, 0xff, sizeof(queued));
	arrived = 0;
	for (int i = 0; i < QUEUED; i++)
		CHECK_EQ(pthread_sigqueue(thread, SIGRTMIN + 1,
					  (union sigval){ .sival_int = i }), 0);
}

static void expect_order(void *(*run)(void *))
{
	pthread_t thread;

	arrived = 0;
	thread = start(run, NULL);
	settle();
	queue_all(thread);
	join(thread);
	for (int i = 0; i < QUEUED; i++)
		CHECK_EQ(queued[i], i);
}

TEST(queued_signals_arrive_in_order)
{
	struct sigaction action = { .sa_sigaction = note_value,
				    .sa_flags = SA_SIGINFO };

	CHECK_EQ(sigaction(SIGRTMIN + 1, &action, NULL), 0);
	for (int i = 0; i < 10; i++) {
		expect_order(sleep_until_all);
		expect_order(compute_until_all);
	}
}

TEST(queued_signals_that_are_taken_are_all_there)
{
	for (int i = 0; i < 5; i++) {
		bool had[QUEUED] = { false };
		pthread_t thread;

		stage = 0;
		thread = start(block_and_take, NULL);
		while (stage < 1)
			usleep(1000);
		queue_all(thread);
		stage = 2;
		join(thread);
		for (int j = 0; j < QUEUED; j++) {
			CHECK(queued[j] >= 0 && queued[j] < QUEUED);
			CHECK(!had[queued[j]]);
			had[queued[j]] = true;
		}
	}
}

TEST(handlers_are_asked_for_and_given_back)
{
	struct sigaction action, was;

	install(SIGUSR1, SA_RESTART);
	handled = 1;
	join(start(spin, NULL));
	CHECK_EQ(sigaction(SIGUSR1, NULL, &was), 0);
	CHECK(was.sa_handler == count && was.sa_flags & SA_RESTART);
	action = (struct sigaction){ .sa_handler = SIG_IGN };
	CHECK_EQ(sigaction(SIGUSR1, &action, &was), 0);
	CHECK(was.sa_handler == count);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &was), 0);
	CHECK(was.sa_handler == SIG_IGN);
	handled = 0;
	raise(SIGUSR1);
	CHECK_EQ(handled, 0);
	install(SIGUSR1, (int)SA_RESETHAND);
	raise(SIGUSR1);
	CHECK_EQ(handled, 1);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &was), 0);
	CHECK(was.sa_handler == SIG_DFL);
}

static int flags_of(int signo)
{
	struct sigaction now;

	CHECK_EQ(sigaction(signo, NULL, &now), 0);
	CHECK(now.sa_handler == count);
	return now.sa_flags & (int)(SA_RESTART | SA_RESETHAND | SA_NODEFER);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void *set_handlers(void *arg)
{
	CHECK(signal(SIGUSR1, count) == SIG_DFL);
	CHECK_EQ(flags_of(SIGUSR1), SA_RESTART);
	CHECK_EQ(siginterrupt(SIGUSR1, 1), 0);
	CHECK_EQ(flags_of(SIGUSR1), 0);
	CHECK(signal(SIGUSR1, count) == count);
	CHECK_EQ(flags_of(SIGUSR1), 0);
	CHECK_EQ(siginterrupt(SIGUSR1, 0), 0);
	CHECK_EQ(flags_of(SIGUSR1), SA_RESTART);
	CHECK(sysv_signal(SIGUSR1, count) == count);
	CHECK_EQ(flags_of(SIGUSR1), (int)(SA_RESETHAND | SA_NODEFER));
	CHECK(sigset(SIGUSR1, SIG_HOLD) == count);
	CHECK(sigset(SIGUSR1, count) == SIG_HOLD);
	CHECK_EQ(flags_of(SIGUSR1), 0);
	CHECK_EQ(sigignore(SIGUSR1), 0);
	CHECK(signal(SIGUSR1, count) == SIG_IGN);
	CHECK(signal(SIGUSR1, SIG_ERR) == SIG_ERR);
	CHECK(signal(SIGKILL, count) == SIG_ERR);
	CHECK(signal(65, count) == SIG_ERR);
	CHECK_EQ(errno, EINVAL);
	CHECK(signal(32, count) == SIG_ERR);
	mine = 3;
	raise(SIGUSR1);
	CHECK_EQ(where, 3);
	CHECK_EQ(handled, 1);
	return arg;
}

#pragma GCC diagnostic pop

TEST(handlers_are_set_in_many_ways)
{
	join(start(set_handlers, NULL));
}

/* Whether the call fails on the spot or where it is posted to. */
static void *write_to_nobody(void *arg)
{
	const int flags = *(int *)arg;
	int pipe_fds[2], pair[2];

	mine = 5;
	CHECK_EQ(pipe2(pipe_fds, flags), 0);
	close(pipe_fds[0]);
	CHECK_EQ(write(pipe_fds[1], "x", 1), -1);
	CHECK_EQ(errno, EPIPE);
	CHECK_EQ(handled, 1);
	CHECK_EQ(where, 5);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | (flags ? SOCK_NONBLOCK : 0),
			    0, pair), 0);
	close(pair[0]);
	CHECK_EQ(send(pair[1], "x", 1, 0), -1);
	CHECK_EQ(errno, EPIPE);
	CHECK_EQ(handled, 2);
	CHECK_EQ(send(pair[1], "x", 1, MSG_NOSIGNAL), -1);
	CHECK_EQ(errno, EPIPE);
	CHECK_EQ(handled, 2);
	return NULL;
}

TEST(writing_to_nobody_raises_sigpipe)
{
	int waits = 0, never_waits = O_NONBLOCK;

	install(SIGPIPE, 0);
	join(start(write_to_nobody, &waits));
	handled = 0;
	join(start(write_to_nobody, &never_waits));
}

static void *write_unprepared(void *arg)
{
	CHECK_EQ(pipe(fds), 0);
	close(fds[0]);
	CHECK_EQ(write(fds[1], "x", 1), -1);
	return arg;
}

TEST(writing_to_nobody_ends_the_process)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		signal(SIGPIPE, SIG_DFL);
		join(start(write_unprepared, NULL));
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGPIPE);
	signal(SIGPIPE, SIG_IGN);
	join(start(write_unprepared, NULL));
}

/* By a write that is libc's own. */
static FILE *stream_to_nobody(void)
{
	int pipe_fds[2];

	CHECK_EQ(pipe(pipe_fds), 0);
	close(pipe_fds[0]);
	return fdopen(pipe_fds[1], "w");
}

static void print_to_nobody(FILE *stream)
{
	fputs("x", stream);
	CHECK_EQ(fflush(stream), EOF);
	CHECK_EQ(errno, EPIPE);
}

static void *print_and_handle(void *arg)
{
	FILE *stream = stream_to_nobody();

	mine = 5;
	print_to_nobody(stream);
	CHECK_EQ(handled, 1);
	CHECK_EQ(where, 5);
	/* From where it has been before, too. */
	usleep(100);
	print_to_nobody(stream);
	CHECK_EQ(handled, 2);
	return arg;
}

static void *print_with_it_blocked(void *arg)
{
	struct timespec never = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	usleep(100);
	print_to_nobody(stream_to_nobody());
	CHECK_EQ(sigtimedwait(&set, NULL, &never), SIGPIPE);
	CHECK_EQ(sigtimedwait(&set, NULL, &never), -1);
	return arg;
}

static void *print_unprepared(void *arg)
{
	usleep(100);
	print_to_nobody(stream_to_nobody());
	return arg;
}

TEST(printing_to_nobody_raises_sigpipe)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		signal(SIGPIPE, SIG_DFL);
		join(start(print_with_it_blocked, NULL));
		join(start(print_unprepared, NULL));
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGPIPE);
	install(SIGPIPE, 0);
	join(start(print_and_handle, NULL));
	signal(SIGPIPE, SIG_IGN);
	join(start(print_unprepared, NULL));
}

/* What is asked for is what was given, also if the runtime needs it itself. */
TEST(sigpipe_s_action_is_the_program_s)
{
	struct sigaction was;

	signal(SIGPIPE, SIG_DFL);
	join(start(print_with_it_blocked, NULL));
	CHECK_EQ(sigaction(SIGPIPE, NULL, &was), 0);
	CHECK(was.sa_handler == SIG_DFL);
	install(SIGPIPE, (int)SA_RESETHAND);
	CHECK_EQ(raise(SIGPIPE), 0);
	CHECK_EQ(handled, 1);
	CHECK_EQ(sigaction(SIGPIPE, NULL, &was), 0);
	CHECK(was.sa_handler == SIG_DFL);
	join(start(print_with_it_blocked, NULL));
}

static sem_t taken;
static atomic_int turns;
/* Keeps its carrier for some time, but not for as long as to lose it. */
static void *burn(void *arg)
{
	while (!over) {
		struct timespec end = in_ms(CLOCK_MONOTONIC, 3), now;

		do {
			clock_gettime(CLOCK_MONOTONIC, &now);
		} while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec &&
						     now.tv_nsec < end.tv_nsec));
		sched_yield();
	}
	return arg;
}

static sem_t sides[2];

/* So that some carrier mostly looks for work. */
static void *bounce(void *arg)
{
	size_t side = (size_t)arg;

	while (!over) {
		sem_wait(&sides[side]);
		sem_post(&sides[!side]);
	}
	return NULL;
}

static void *take_turns(void *arg)
{
	while (!over) {
		while (sem_wait(&taken))
			CHECK_EQ(errno, EINTR);
		turns++;
	}
	return arg;
}

static void await(atomic_int *count, int n)
{
	struct timespec end = in_ms(CLOCK_MONOTONIC, 15000), now = { 0 };

	while (*count < n && now.tv_sec <= end.tv_sec) {
		usleep(50);
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	CHECK_EQ(*count, n);
}

/* Who is woken between two signals waits on another core than before. */
TEST(a_signal_finds_who_was_woken_after_the_last)
{
	pthread_t burners[2], bouncers[2], thread;

	install(SIGUSR1, 0);
	handled = 0;
	turns = 0;
	over = false;
	sem_init(&taken, 0, 0);
	sem_init(&sides[0], 0, 1);
	sem_init(&sides[1], 0, 0);
	thread = start(take_turns, NULL);
	for (size_t i = 0; i < 2; i++) {
		burners[i] = start(burn, NULL);
		bouncers[i] = start(bounce, (void *)i);
	}
	for (int i = 1; i <= 300; i++) {
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		sem_post(&taken);
		await(&turns, i);
		await(&handled, 2 * i - 1);
		usleep((useconds_t)i);
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		await(&handled, 2 * i);
	}
	over = true;
	sem_post(&taken);
	sem_post(&sides[0]);
	sem_post(&sides[1]);
	join(thread);
	for (int i = 0; i < 2; i++) {
		join(burners[i]);
		join(bouncers[i]);
	}
}

static sem_t go;

static void *echo(void *arg)
{
	for (;;) {
		CHECK_EQ(sem_wait(&go), 0);
		if (over)
			return arg;
		CHECK_EQ(sem_post(arg), 0);
	}
}

static void *sleep_on(void *arg)
{
	while (!over)
		sleep(1000);
	return arg;
}

/* Those who come from their handlers are given to carriers that look around. */
TEST(who_waits_after_signals_uses_no_time)
{
	pthread_t thread, sleepers[3];
	uint64_t used = 0, begin;
	sem_t back;

	install(SIGUSR1, 0);
	CHECK_EQ(sem_init(&go, 0, 0), 0);
	CHECK_EQ(sem_init(&back, 0, 0), 0);
	thread = start(echo, &back);
	for (int i = 0; i < 3; i++)
		sleepers[i] = start(sleep_on, NULL);
	for (int i = 0; i < 500; i++) {
		CHECK_EQ(sem_post(&go), 0);
		CHECK_EQ(sem_wait(&back), 0);
		if (i % 10)
			continue;
		CHECK_EQ(pthread_kill(sleepers[i / 10 % 3], SIGUSR1), 0);
		usleep(30);
		if (i % 50)
			continue;
		settle();
		begin = cpu_ns();
		usleep(200000);
		used += cpu_ns() - begin;
	}
	/* Of two seconds. */
	CHECK(used < 20 * MS);
	over = true;
	CHECK_EQ(sem_post(&go), 0);
	join(thread);
	for (int i = 0; i < 3; i++)
		while (pthread_tryjoin_np(sleepers[i], NULL)) {
			CHECK_EQ(pthread_kill(sleepers[i], SIGUSR1), 0);
			usleep(1000);
		}
}


static atomic_int calls_begun, interrupted;

/* At home, which it leaves to wait. */
static void *wait_again(void *arg)
{
	sem_t never;
	char byte;

	block(SIG_UNBLOCK, SIGUSR1);
	sem_init(&never, 0, 0);
	for (int i = 1; i <= 100; i++) {
		struct timeval time = { 0, 2000 };

		CHECK_EQ(select(0, NULL, NULL, NULL, &time), 0);
		calls_begun = i;
		if (i % 2)
			CHECK_EQ(sem_wait(&never), -1);
		else
			CHECK_EQ(read(fds[0], &byte, 1), -1);
		CHECK_EQ(errno, EINTR);
		interrupted = i;
	}
	return arg;
}

static void compute_us(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000 +
			 (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

/*
 * It can't wait while its carrier computes, but has left its home for it. A
 * handler that runs before the call natively doesn't interrupt it either, as
 * happens on a busy machine: so another signal is sent. All were late once.
 */
TEST(a_handler_on_the_way_to_a_wait_interrupts_it)
{
	pthread_t thread;
	int late = 0;

	install(SIGUSR1, 0);
	CHECK_EQ(pipe(fds), 0);
	calls_begun = 0;
	interrupted = 0;
	block(SIG_BLOCK, SIGUSR1);
	thread = start(wait_again, NULL);
	for (int i = 1; i <= 100; i++) {
		while (calls_begun < i)
			;
		compute_us(100);
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		compute_us(200);
		for (int n = 1; interrupted < i; n++) {
			usleep(1000);
			if (n % 100)
				continue;
			CHECK_EQ(kill(getpid(), SIGUSR1), 0);
			CHECK(++late < 80);
		}
	}
	join(thread);
}

