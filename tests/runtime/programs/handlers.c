/* SPDX-License-Identifier: MIT */
/* Signal handlers: how they are set, and in which order they get queued signals. */
#define _GNU_SOURCE

#include "handled.h"

/* Queued signals. */

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

/* The thread returns to its host with the signals blocked, and takes them there. */
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

TEST(no_queued_signal_is_lost_to_sigwait)
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

TEST(handlers_are_queried_and_restored)
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
