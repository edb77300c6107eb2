/* SPDX-License-Identifier: MIT */
/* Blocked signals, and waits for them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>

#include "handled.h"

static atomic_bool sent;

static void *block_and_sleep(void *arg)
{
	sigset_t now;

	block(SIG_BLOCK, SIGUSR1);
	begun = true;
	/* Sleeps repeatedly, which changes carriers. */
	for (int i = 0; i < 50 || !sent; i++)
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

TEST(a_blocked_signal_stays_pending)
{
	pthread_t thread;

	install(SIGUSR1, 0);
	thread = start(block_and_sleep, NULL);
	while (!begun)
		usleep(100);
	pthread_kill(thread, SIGUSR1);
	sent = true;
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

static void *has_defaults(void *arg)
{
	pthread_attr_t attr;
	size_t guard;
	cpu_set_t set;
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	CHECK_EQ(sigismember(&now, SIGHUP), arg ? 1 : 0);
	CHECK_EQ(sigismember(&now, SIGUSR1), arg ? 0 : 1);
	usleep(100);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	CHECK_EQ(sigismember(&now, SIGHUP), arg ? 1 : 0);
	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	CHECK_EQ(CPU_COUNT(&set), 1);
	CHECK_EQ(pthread_getattr_np(pthread_self(), &attr), 0);
	CHECK_EQ(pthread_attr_getguardsize(&attr, &guard), 0);
	CHECK_EQ(guard, 32768);
	pthread_attr_destroy(&attr);
	return NULL;
}

TEST(a_new_thread_gets_the_default_attributes)
{
	pthread_attr_t attr;
	sigset_t its;
	cpu_set_t set;

	block(SIG_BLOCK, SIGUSR1);
	sigemptyset(&its);
	sigaddset(&its, SIGHUP);
	CPU_ZERO(&set);
	CPU_SET(first_core(), &set);
	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setaffinity_np(&attr, sizeof(set), &set), 0);
	CHECK_EQ(pthread_attr_setguardsize(&attr, 32768), 0);
	CHECK_EQ(pthread_setattr_default_np(&attr), 0);
	join(start(has_defaults, NULL));
	CHECK_EQ(pthread_attr_setsigmask_np(&attr, &its), 0);
	CHECK_EQ(pthread_setattr_default_np(&attr), 0);
	for (int i = 0; i < 3; i++)
		join(start(has_defaults, &its));
	pthread_attr_destroy(&attr);
}
