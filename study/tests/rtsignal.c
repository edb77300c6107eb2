/* SPDX-License-Identifier: MIT */
/* POSIX' real-time signals on an event control block. */
#define _GNU_SOURCE
#include <fcntl.h>
#include "study/rtsignal/rtsignal.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/events/events.h"

#define SIG(n)	(SIGRTMIN + (n))

/* What the handlers were told, in order. Written by the owner alone. */
#define NOTES	64
static struct note {
	int signo;
	int value;
	int code;
	pid_t pid;
} notes[NOTES];
static volatile unsigned int noted;

static void note_info(int signo, siginfo_t *info, void *context)
{
	notes[noted % NOTES] = (struct note){
		signo, info->si_value.sival_int, info->si_code, info->si_pid,
	};
	noted++;
}

static sigset_t set_from(int a, int b)
{
	sigset_t set;

	sigemptyset(&set);
	for (; a <= b; a++)
		sigaddset(&set, SIG(a));
	return set;
}

/* The backend works here; its ECB is the signals' then. */
static struct flexsc_ecb *signals(void)
{
	return NEW_ECB(.events = 0);
}

static void act_with(int n, void (*handler)(int, siginfo_t *, void *),
		     sigset_t mask, int flags)
{
	struct sigaction action = {
		.sa_sigaction = handler,
		.sa_mask = mask,
		.sa_flags = SA_SIGINFO | flags,
	};

	CHECK_EQ(rtsig_action(SIG(n), &action, NULL), 0);
}

static void act(int n)
{
	act_with(n, note_info, set_from(0, -1), 0);
}

static void queue(int n, int value)
{
	CHECK_EQ(rtsig_queue(getpid(), SIG(n),
				 (union sigval){ .sival_int = value }), 0);
}

static void block(int a, int b)
{
	sigset_t set = set_from(a, b);

	CHECK_EQ(rtsig_procmask(SIG_BLOCK, &set, NULL), 0);
}

static void unblock(int a, int b)
{
	sigset_t set = set_from(a, b);

	CHECK_EQ(rtsig_procmask(SIG_UNBLOCK, &set, NULL), 0);
}

static bool is_pending(int n)
{
	sigset_t set;

	CHECK_EQ(rtsig_pending(&set), 0);
	return sigismember(&set, SIG(n));
}

/* Compute, without a call, until the counter is n. */

TEST(a_signal_to_oneself_is_handled_at_once)
{
	struct flexsc_ecb *ecb = signals();

	act(3);
	errno = 17;
	queue(3, 42);
	CHECK_EQ(errno, 17);
	CHECK_EQ(noted, 1);
	CHECK_EQ(notes[0].signo, SIG(3));
	CHECK_EQ(notes[0].value, 42);
	CHECK_EQ(notes[0].code, SI_QUEUE);
	CHECK_EQ(notes[0].pid, getpid());
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(values_are_handled_in_order)
{
	struct flexsc_ecb *ecb = signals();

	act(0);
	block(0, 0);
	for (int i = 0; i < 10; i++)
		queue(0, i);
	CHECK_EQ(noted, 0);
	CHECK(is_pending(0));
	unblock(0, 0);
	CHECK_EQ(noted, 10);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(notes[i].value, i);
	CHECK(!is_pending(0));
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(the_lowest_number_is_first)
{
	struct flexsc_ecb *ecb = signals();
	int last = SIGRTMAX - SIGRTMIN;

	block(0, last);
	for (int i = last; i >= 0; i--) {
		act_with(i, note_info, set_from(0, last), 0);
		queue(i, i);
		queue(i, i + 100);
	}
	unblock(0, last);
	CHECK_EQ(noted, 2 * (last + 1));
	for (int i = 0; i <= last; i++) {
		CHECK_EQ(notes[2 * i].value, i);
		CHECK_EQ(notes[2 * i + 1].value, i + 100);
	}
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

/* Handlers inside of handlers. */

static int depth, deepest;
static int order[NOTES];
static unsigned int ends;

static void nesting(int signo, siginfo_t *info, void *context)
{
	int more = info->si_value.sival_int;

	note_info(signo, info, context);
	deepest = ++depth > deepest ? depth : deepest;
	if (more >= 0)
		queue(more, -1);
	order[ends++ % NOTES] = signo - SIGRTMIN;
	depth--;
}

TEST(a_handler_is_interrupted_by_what_it_does_not_block)
{
	struct flexsc_ecb *ecb = signals();

	act_with(4, nesting, set_from(0, -1), 0);
	act_with(2, nesting, set_from(0, -1), 0);
	act_with(6, nesting, set_from(0, -1), 0);
	queue(4, 2);
	CHECK_EQ(deepest, 2);
	CHECK_EQ(order[0], 2);
	CHECK_EQ(order[1], 4);
	/* A higher number does so, too. */
	queue(4, 6);
	CHECK_EQ(order[2], 6);
	CHECK_EQ(order[3], 4);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(sa_mask_and_the_signal_itself_are_blocked)
{
	struct flexsc_ecb *ecb = signals();

	act_with(4, nesting, set_from(2, 2), 0);
	act_with(2, nesting, set_from(0, -1), 0);
	queue(4, 2);
	CHECK_EQ(deepest, 1);
	CHECK_EQ(order[0], 4);
	CHECK_EQ(order[1], 2);
	queue(4, 4);
	CHECK_EQ(deepest, 1);
	CHECK_EQ(noted, 4);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(nodefer_lets_the_signal_itself_in)
{
	struct flexsc_ecb *ecb = signals();

	act_with(4, nesting, set_from(0, -1), SA_NODEFER);
	queue(4, 4);
	CHECK_EQ(deepest, 2);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

static void masks(int signo, siginfo_t *info, void *context)
{
	sigset_t inside;

	noted++;
	CHECK_EQ(rtsig_procmask(SIG_BLOCK, NULL, &inside), 0);
	CHECK(sigismember(&inside, signo));
	CHECK(sigismember(&inside, SIG(9)));
	CHECK(sigismember(&inside, SIGUSR2));
	CHECK(!sigismember(&inside, SIG(8)));
	/* Only until it returns. */
	block(8, 8);
}

TEST(a_mask_holds_until_the_handler_returns)
{
	struct flexsc_ecb *ecb = signals();
	sigset_t mask = set_from(9, 9), now;

	sigaddset(&mask, SIGUSR2);
	act_with(1, masks, mask, 0);
	block(20, 20);
	queue(1, 0);
	CHECK_EQ(noted, 1);
	CHECK_EQ(rtsig_procmask(SIG_SETMASK, NULL, &now), 0);
	for (int i = 0; SIG(i) <= SIGRTMAX; i++)
		CHECK_EQ(sigismember(&now, SIG(i)), i == 20);
	CHECK(!sigismember(&now, SIGUSR2));
	CHECK(!sigismember(&now, SIGURG));
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(resethand_is_for_once)
{
	struct flexsc_ecb *ecb = signals();
	struct sigaction now;
	int pid;

	act_with(1, note_info, set_from(0, -1), (int)SA_RESETHAND);
	queue(1, 0);
	CHECK_EQ(noted, 1);
	CHECK_EQ(rtsig_action(SIG(1), NULL, &now), 0);
	CHECK(now.sa_handler == SIG_DFL);
	CHECK(!(now.sa_flags & SA_SIGINFO));
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	/* The default action ends the process, by that signal. */
	pid = fork();
	if (!pid) {
		act(5);
		queue(1, 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &now.sa_flags, 0), pid);
	CHECK(WIFSIGNALED(now.sa_flags));
	CHECK_EQ(WTERMSIG(now.sa_flags), SIG(1));
}

TEST(what_is_ignored_is_forgotten)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct flexsc_ecb *ecb = signals();

	act(1);
	block(1, 1);
	queue(1, 0);
	raise(SIG(1));
	CHECK_EQ(rtsig_action(SIG(1), &ignore, NULL), 0);
	CHECK(!is_pending(1));
	unblock(1, 1);
	queue(1, 0);
	CHECK(!is_pending(1));
	act(1);
	CHECK_EQ(noted, 0);
	queue(1, 7);
	CHECK_EQ(noted, 1);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(a_full_queue_says_so)
{
	const union sigval none = { 0 };
	struct flexsc_ecb *ecb = signals();

	act(0);
	act(1);
	block(0, 1);
	for (int i = 0; i < RTSIG_QUEUE_MAX; i++)
		queue(i % 2, i);
	CHECK_EQ(rtsig_queue(getpid(), SIG(0), none), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(rtsig_queue(getpid(), SIG(1), none), -1);
	unblock(0, 1);
	CHECK_EQ(noted, RTSIG_QUEUE_MAX);
	queue(0, 1);
	CHECK_EQ(noted, RTSIG_QUEUE_MAX + 1);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(none_in_a_critical_section)
{
	struct flexsc_ecb *ecb = signals();
	const sigset_t set = set_from(2, 2);

	act(2);
	flexsc_ecb_critical_begin(ecb);
	queue(2, 1);
	block(2, 2);
	unblock(2, 2);
	CHECK_EQ(noted, 0);
	CHECK_EQ(rtsig_waitinfo(&set, NULL), -1);
	CHECK_EQ(errno, EDEADLK);
	flexsc_ecb_critical_end(ecb);
	CHECK_EQ(noted, 1);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(blocking_and_queueing_make_no_system_call)
{
	const int calls[] = { SYS_rt_sigprocmask, SYS_tgkill, SYS_kill,
			      SYS_rt_sigqueueinfo, SYS_write,
			      SYS_io_uring_enter };

	signals();
	act(2);
	queue(2, 0);
	forbid(calls, sizeof(calls) / sizeof(calls[0]), EPERM);
	for (int i = 0; i < 100; i++) {
		block(2, 3);
		queue(2, i);
		unblock(2, 3);
		queue(2, i);
	}
	CHECK_EQ(noted, 201);
	/* The ECB's end makes some. */
	test_leave();
}

/* Waiting. */

TEST(sigwaitinfo_takes_the_lowest_and_oldest)
{
	struct flexsc_ecb *ecb = signals();
	sigset_t set = set_from(2, 4);
	siginfo_t info;

	block(1, 4);
	act(1);
	queue(1, 0);
	queue(4, 40);
	queue(3, 30);
	queue(3, 31);
	CHECK_EQ(rtsig_waitinfo(&set, &info), SIG(3));
	CHECK_EQ(info.si_signo, SIG(3));
	CHECK_EQ(info.si_value.sival_int, 30);
	CHECK_EQ(info.si_code, SI_QUEUE);
	CHECK_EQ(rtsig_waitinfo(&set, &info), SIG(3));
	CHECK_EQ(info.si_value.sival_int, 31);
	CHECK_EQ(rtsig_waitinfo(&set, NULL), SIG(4));
	CHECK(is_pending(1));
	CHECK_EQ(noted, 0);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(sigtimedwait_ends_in_time)
{
	const struct timespec none = { 0 }, some = { 0, 50000000 };
	const struct timespec wrong = { 0, 1000000000 };
	struct flexsc_ecb *ecb = signals();
	sigset_t set = set_from(2, 4);
	uint64_t began = now_ns();

	block(2, 4);
	CHECK_EQ(rtsig_timedwait(&set, NULL, &none), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(rtsig_timedwait(&set, NULL, &wrong), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(rtsig_timedwait(&set, NULL, &some), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK(now_ns() - began >= 50 * MS);
	/* Of the kernel's. */
	raise(SIG(3));
	CHECK_EQ(rtsig_timedwait(&set, NULL, &none), SIG(3));
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

/* Sends something later. */
struct later {
	pthread_t thread;
	int signo;
	bool kernel;
	atomic_bool *when;	/* not before that; NULL: at once */
};

static void *send_later(void *arg)
{
	const struct later *later = arg;
	const union sigval value = { .sival_int = 5 };

	while (later->when && !*later->when)
		sleep_ms(1);
	sleep_ms(20);
	if (later->kernel)
		kill(getpid(), later->signo);
	else
		CHECK_EQ(rtsig_queue(getpid(), later->signo, value), 0);
	return NULL;
}

static void begin_when(struct later *later, int signo, bool kernel,
		       atomic_bool *when)
{
	later->signo = signo;
	later->kernel = kernel;
	later->when = when;
	CHECK_EQ(pthread_create(&later->thread, NULL, send_later, later), 0);
}

static void begin_later(struct later *later, int signo, bool kernel)
{
	begin_when(later, signo, kernel, NULL);
}

TEST(waiting_sleeps_until_a_thread_sends)
{
	struct flexsc_ecb *ecb = signals();
	sigset_t set = set_from(2, 4);
	struct later later;
	siginfo_t info;

	block(2, 4);
	act(3);
	for (int i = 0; i < 4; i++) {
		begin_later(&later, SIG(3), i % 2);
		CHECK_EQ(rtsig_waitinfo(&set, &info), SIG(3));
		CHECK_EQ(info.si_code, i % 2 ? SI_USER : SI_QUEUE);
		pthread_join(later.thread, NULL);
	}
	CHECK_EQ(noted, 0);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(a_handler_ends_a_wait)
{
	struct flexsc_ecb *ecb = signals();
	sigset_t set = set_from(2, 4);
	struct later later;

	block(2, 4);
	act(9);
	for (unsigned int i = 0; i < 4; i++) {
		begin_later(&later, SIG(9), i % 2);
		CHECK_EQ(rtsig_waitinfo(&set, NULL), -1);
		CHECK_EQ(errno, EINTR);
		CHECK_EQ(noted, i + 1);
		pthread_join(later.thread, NULL);
	}
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

static volatile unsigned int usr1s;

static void on_usr1(int signo)
{
	usr1s++;
}

TEST(others_signals_are_waited_for_beside)
{
	const struct sigaction action = { .sa_handler = on_usr1 };
	struct flexsc_ecb *ecb = signals();
	sigset_t set = set_from(2, 4);
	struct later later;
	siginfo_t info;

	act(9);
	CHECK_EQ(rtsig_action(SIGUSR1, &action, NULL), 0);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(rtsig_procmask(SIG_BLOCK, &set, NULL), 0);
	begin_later(&later, SIGUSR1, true);
	CHECK_EQ(rtsig_waitinfo(&set, &info), SIGUSR1);
	CHECK_EQ(info.si_pid, getpid());
	pthread_join(later.thread, NULL);
	begin_later(&later, SIG(2), false);
	CHECK_EQ(rtsig_waitinfo(&set, NULL), SIG(2));
	pthread_join(later.thread, NULL);
	CHECK_EQ(usr1s, 0);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(sigsuspend_lets_in_what_was_blocked)
{
	const struct sigaction action = { .sa_handler = on_usr1 };
	struct flexsc_ecb *ecb = signals();
	sigset_t none = set_from(0, -1), all, now;
	struct later later;

	act(5);
	CHECK_EQ(rtsig_action(SIGUSR1, &action, NULL), 0);
	sigfillset(&all);
	CHECK_EQ(rtsig_procmask(SIG_SETMASK, &all, NULL), 0);
	/* It is there already. */
	queue(5, 1);
	CHECK_EQ(rtsig_suspend(&none), -1);
	CHECK_EQ(errno, EINTR);
	CHECK_EQ(noted, 1);
	/* It comes: from a thread, from the kernel; and another signal does. */
	for (unsigned int i = 0; i < 2; i++) {
		begin_later(&later, SIG(5), i);
		CHECK_EQ(rtsig_suspend(&none), -1);
		CHECK_EQ(errno, EINTR);
		CHECK_EQ(noted, i + 2);
		pthread_join(later.thread, NULL);
	}
	begin_later(&later, SIGUSR1, true);
	CHECK_EQ(rtsig_suspend(&none), -1);
	CHECK_EQ(usr1s, 1);
	pthread_join(later.thread, NULL);
	CHECK_EQ(rtsig_procmask(SIG_BLOCK, NULL, &now), 0);
	CHECK(sigismember(&now, SIG(5)) && sigismember(&now, SIGUSR1));
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

/* Who sends, and whom it interrupts. */

TEST(a_computing_owner_is_interrupted)
{
	struct flexsc_ecb *ecb = signals();
	struct later later;

	act(5);
	for (unsigned int i = 0; i < 4; i++) {
		begin_later(&later, SIG(5), i % 2);
		compute_until(&noted, i + 1);
		CHECK_EQ(notes[i].signo, SIG(5));
		CHECK_EQ(notes[i].code, i % 2 ? SI_USER : SI_QUEUE);
		pthread_join(later.thread, NULL);
	}
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

static atomic_bool inside;
static volatile unsigned int waited;

static void compute_in_handler(int signo, siginfo_t *info, void *context)
{
	inside = true;
	compute_until(&noted, waited + 1);
	inside = false;
	waited++;
}

TEST(a_computing_handler_is_interrupted)
{
	struct flexsc_ecb *ecb = signals();
	struct later later, inner;

	act(2);
	act_with(7, compute_in_handler, set_from(0, -1), 0);
	for (unsigned int i = 0; i < 4; i++) {
		begin_when(&inner, SIG(2), i % 2, &inside);
		/* Called by the owner itself, or by a notification. */
		if (i < 2)
			queue(7, 0);
		else
			begin_later(&later, SIG(7), false);
		compute_until(&waited, i + 1);
		pthread_join(inner.thread, NULL);
		if (i >= 2)
			pthread_join(later.thread, NULL);
	}
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(another_process_sends)
{
	struct flexsc_ecb *ecb = signals();
	int pid;

	act(5);
	pid = test_fork();
	if (!pid) {
		for (int i = 0; i < 10; i++)
			CHECK_EQ(rtsig_queue(getppid(), SIG(5),
					(union sigval){ .sival_int = i }), 0);
		test_leave();
	}
	compute_until(&noted, 10);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(notes[i].value, i);
		CHECK_EQ(notes[i].pid, pid);
	}
	test_reap(pid);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

/* Processor time of the thread. */
static uint64_t thread_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* The queues are full of signals that are blocked. */
TEST(what_is_waited_for_passes_full_queues)
{
	struct flexsc_ecb *ecb = signals();
	const sigset_t set = set_from(2, 2), none = set_from(3, 3);
	const struct timespec time = { 0, 200 * MS };
	uint64_t used;
	siginfo_t info;
	int pid;

	block(0, 3);
	for (int i = 0; i < RTSIG_QUEUE_MAX; i++)
		queue(1, i);
	pid = test_fork();
	if (!pid) {
		for (int i = 0; i < 3; i++)
			CHECK_EQ(rtsig_queue(getppid(), SIG(2),
					(union sigval){ .sival_int = i }), 0);
		test_leave();
	}
	test_reap(pid);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(rtsig_timedwait(&set, &info, &time), SIG(2));
		CHECK_EQ(info.si_value.sival_int, i);
		CHECK_EQ(info.si_pid, pid);
	}
	used = thread_ns();
	CHECK_EQ(rtsig_timedwait(&none, NULL, &time), -1);
	CHECK_EQ(errno, EAGAIN);
	/* It sleeps meanwhile. */
	if (!SANITIZED)
		CHECK(thread_ns() - used < 100 * MS);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(a_descriptor_s_signal_says_which_one)
{
	struct flexsc_ecb *ecb = signals();
	const sigset_t set = set_from(5, 5);
	siginfo_t info;
	int fds[2];

	test_pair(fds);
	CHECK_EQ(rtsig_procmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(fcntl(fds[0], F_SETOWN, getpid()), 0);
	CHECK_EQ(fcntl(fds[0], F_SETSIG, SIG(5)), 0);
	CHECK_EQ(fcntl(fds[0], F_SETFL, O_ASYNC | O_NONBLOCK), 0);
	for (int i = 0; i < 3; i++) {
		test_write(fds[1]);
		CHECK_EQ(rtsig_waitinfo(&set, &info), SIG(5));
		CHECK_EQ(info.si_signo, SIG(5));
		CHECK_EQ(info.si_code, POLL_IN);
		CHECK_EQ(info.si_fd, fds[0]);
		CHECK(info.si_band & POLLIN);
	}
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(a_child_has_the_actions_and_the_mask)
{
	struct flexsc_ecb *ecb = signals();
	sigset_t now;
	int pid;

	act(5);
	act(6);
	block(6, 6);
	queue(6, 1);
	pid = test_fork();
	if (!pid) {
		CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
		CHECK_EQ(rtsig_procmask(SIG_BLOCK, NULL, &now), 0);
		CHECK(sigismember(&now, SIG(6)));
		CHECK(!sigismember(&now, SIG(5)));
		/* And none of what was queued. */
		CHECK(!is_pending(6));
		queue(5, 1);
		CHECK_EQ(noted, 1);
		raise(SIG(5));
		compute_until(&noted, 2);
		test_leave();
	}
	test_reap(pid);
	CHECK_EQ(noted, 0);
	CHECK(is_pending(6));
	unblock(6, 6);
	CHECK_EQ(noted, 1);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

static void *not_the_owner(void *arg)
{
	sigset_t set = set_from(0, 3), now;

	CHECK_EQ(rtsig_action(SIG(0), NULL, NULL), -1);
	CHECK_EQ(errno, EPERM);
	CHECK_EQ(rtsig_waitinfo(&set, NULL), -1);
	CHECK_EQ(errno, EPERM);
	CHECK_EQ(rtsig_procmask(SIG_UNBLOCK, &set, NULL), 0);
	CHECK_EQ(rtsig_procmask(SIG_SETMASK, NULL, &now), 0);
	CHECK(sigismember(&now, SIG(0)));
	sigemptyset(&set);
	CHECK_EQ(rtsig_procmask(SIG_SETMASK, &set, NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
	CHECK(sigismember(&now, SIG(0)));
	return NULL;
}

TEST(other_threads_have_them_blocked)
{
	struct flexsc_ecb *ecb = signals();
	pthread_t thread;

	act(0);
	CHECK_EQ(pthread_create(&thread, NULL, not_the_owner, NULL), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

static void nothing(struct flexsc_ecb *ecb, void *arg)
{
}

TEST(an_ecb_with_a_handler_is_the_program_s)
{
	struct flexsc_ecb *ecb = signals();

	CHECK_EQ(flexsc_ecb_handler(ecb, nothing, NULL), 0);
	CHECK_EQ(rtsig_action(SIG(0), NULL, NULL), -1);
	CHECK_EQ(errno, EBUSY);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(without_an_ecb_one_is_made)
{
	CHECK_EQ(flexsc_ecb_destroy(signals()), 0);
	block(4, 4);
	act(4);
	act(5);
	/* What was blocked before still is. */
	queue(4, 1);
	CHECK_EQ(noted, 0);
	queue(5, 2);
	CHECK_EQ(noted, 1);
	unblock(4, 4);
	CHECK_EQ(noted, 2);
}

static sigjmp_buf landing;

static void leap(int signo, siginfo_t *info, void *context)
{
	noted++;
	siglongjmp(landing, 1);
}

TEST(a_handler_may_be_left_by_a_jump)
{
	struct flexsc_ecb *ecb = signals();
	static struct later later;
	volatile unsigned int leaps = 0;

	act_with(4, leap, set_from(0, -1), 0);
	if (sigsetjmp(landing, 1)) {
		CHECK(leaps++ < 4);
		unblock(4, 4);
	}
	if (leaps < 2)
		queue(4, 0);
	if (leaps == 2) {
		begin_later(&later, SIG(4), false);
		compute_until(&noted, 100);
	}
	CHECK_EQ(leaps, 3);
	pthread_join(later.thread, NULL);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

static void on_alarm(int signo)
{
	queue(8, 1);
}

TEST(a_signal_handler_sends)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	const struct itimerspec often = {
		.it_value.tv_nsec = 100000, .it_interval.tv_nsec = 100000,
	};
	struct sigevent event = { .sigev_signo = SIGALRM };
	struct flexsc_ecb *ecb = signals();
	uint64_t until = now_ns() + 5 * SECOND * test_slower();
	timer_t timer;

	act(8);
	act(9);
	CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	CHECK_EQ(timer_settime(timer, 0, &often, NULL), 0);
	while (noted < MANY(5000) / test_slower()) {
		block(8, 8);
		queue(9, 1);
		unblock(8, 8);
		CHECK(now_ns() < until);
	}
	CHECK_EQ(timer_delete(timer), 0);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

static volatile unsigned int from_each[4];

static void from_threads(int signo, siginfo_t *info, void *context)
{
	int from = info->si_value.sival_int % 4;

	/* Of each thread in the order sent. */
	CHECK_EQ(info->si_value.sival_int / 4, from_each[from]);
	from_each[from]++;
}

static void *send_one_signal(void *arg)
{
	for (int i = 0; i < MANY(20000); i++)
		while (rtsig_queue(getpid(), SIG(6),
				       (union sigval){ .sival_int =
						4 * i + *(int *)arg }))
			usleep(1);
	return NULL;
}

TEST_LIMIT(threads_send_one_signal, 60)
{
	struct flexsc_ecb *ecb = signals();
	int names[4] = { 0, 1, 2, 3 };
	pthread_t threads[4];

	act_with(6, from_threads, set_from(0, -1), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, send_one_signal,
					&names[i]), 0);
	for (int i = 0; i < 4; i++)
		compute_until(&from_each[i], MANY(20000));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

TEST(a_sleeping_owner_is_interrupted)
{
	struct flexsc_ecb *ecb = NEW_ECB(.flags = FLEXSC_ECB_INTERRUPTS_CALLS);
	const struct timespec long_time = { 10, 0 };
	struct later later;

	act(5);
	for (unsigned int i = 0; i < 2; i++) {
		begin_later(&later, SIG(5), i);
		CHECK_EQ(nanosleep(&long_time, NULL), -1);
		CHECK_EQ(errno, EINTR);
		CHECK_EQ(noted, i + 1);
		pthread_join(later.thread, NULL);
	}
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}

/* Threads, another process and the owner send; it blocks, waits, computes. */

#define SENDERS	4

struct sender {
	pthread_t thread;
	unsigned int sent;
	int n;			/* its signal's */
};

static unsigned int storm;
static volatile unsigned int got[SENDERS + 1];

static void in_order(int signo, siginfo_t *info, void *context)
{
	int from = signo - SIGRTMIN;

	CHECK_EQ(info->si_value.sival_int, got[from]);
	got[from]++;
}

static unsigned int all_got(void)
{
	unsigned int sum = 0;

	/* No total is counted, as one handler interrupts another. */
	for (int i = 0; i <= SENDERS; i++)
		sum += got[i];
	return sum;
}

static void *send_many(void *arg)
{
	struct sender *sender = arg;

	while (sender->sent < storm) {
		union sigval value = { .sival_int = (int)sender->sent };

		if (!rtsig_queue(getpid(), SIG(sender->n), value))
			sender->sent++;
		else
			CHECK_EQ(errno, EAGAIN);
		if (!(sender->sent % 64))
			usleep(1);
	}
	return NULL;
}

static void send_from_outside(pid_t pid)
{
	for (unsigned int i = 0; i < storm; i++) {
		union sigval value = { .sival_int = (int)i };

		while (sigqueue(pid, SIG(SENDERS), value)) {
			CHECK_EQ(errno, EAGAIN);
			usleep(100);
		}
	}
	test_leave();
}

static void take_by_waiting(void)
{
	const struct timespec some = { 0, 100000 };
	sigset_t set = set_from(0, SENDERS);
	siginfo_t info;

	block(0, SENDERS);
	if (rtsig_timedwait(&set, &info, &some) > 0)
		in_order(info.si_signo, &info, NULL);
	unblock(0, SENDERS);
}

static void do_something(void)
{
	sigset_t none = set_from(0, -1);
	int n = (int)(test_random() % SENDERS);

	switch (test_random() % 8) {
	case 0:
		block(n, SENDERS);
		break;
	case 1:
		unblock(0, SENDERS);
		break;
	case 2:
		take_by_waiting();
		break;
	case 3:
		CHECK_EQ(rtsig_procmask(SIG_SETMASK, &none, NULL), 0);
		break;
	default:
		test_compute(20000);
	}
}

TEST_LIMIT(none_is_lost_in_a_storm, 100)
{
	struct flexsc_ecb *ecb = signals();
	struct sender senders[SENDERS] = { 0 };
	uint64_t until;
	int pid;

	storm = MANY(50000) / test_slower();
	for (int i = 0; i <= SENDERS; i++)
		act_with(i, in_order, i % 2 ? set_from(0, SENDERS) :
					      set_from(0, -1), 0);
	pid = test_fork();
	if (!pid)
		send_from_outside(getppid());
	for (int i = 0; i < SENDERS; i++) {
		senders[i].n = i;
		CHECK_EQ(pthread_create(&senders[i].thread, NULL, send_many,
					&senders[i]), 0);
	}
	until = now_ns() + 60 * SECOND;
	while (all_got() < 4 * storm) {
		CHECK(now_ns() < until);
		do_something();
	}
	/* The rest comes by handlers alone, while the owner computes. */
	unblock(0, SENDERS);
	while (all_got() < 5 * storm)
		CHECK(now_ns() < until);
	for (int i = 0; i < SENDERS; i++)
		pthread_join(senders[i].thread, NULL);
	test_reap(pid);
	for (int i = 0; i <= SENDERS; i++)
		CHECK_EQ(got[i], storm);
	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
}
