/* SPDX-License-Identifier: MIT */
/* The stacks of threads, and fork handlers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>

#include "threads.h"

/* Stacks. */

#define GUARD	(1UL << 16)

static void get_stack(pthread_t thread, char **low, size_t *size, size_t *guard)
{
	pthread_attr_t attr;

	CHECK_EQ(pthread_getattr_np(thread, &attr), 0);
	CHECK_EQ(pthread_attr_getstack(&attr, (void **)low, size), 0);
	CHECK_EQ(pthread_attr_getguardsize(&attr, guard), 0);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
}

static void *touch_guard(void *arg)
{
	size_t size, guard;
	char *low;

	usleep(100);
	get_stack(pthread_self(), &low, &size, &guard);
	CHECK_EQ(guard, GUARD);
	*(volatile char *)low = 1;
	*(volatile char *)(low - (size_t)arg) = 1;
	return NULL;
}

TEST(a_guard_is_as_large_as_asked_for)
{
	static const size_t below[] = { 1, GUARD / 2, GUARD };

	for (int i = 0; i < 3; i++) {
		int pid = test_fork(), status;
		pthread_attr_t attr;
		pthread_t thread;

		if (!pid) {
			pthread_attr_init(&attr);
			CHECK_EQ(pthread_attr_setguardsize(&attr, GUARD), 0);
			CHECK_EQ(pthread_create(&thread, &attr, touch_guard,
						(void *)below[i]), 0);
			join(thread);
			_exit(1);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status));
		CHECK_EQ(WTERMSIG(status), SIGSEGV);
	}
}

static void has(pthread_t thread, const void *address)
{
	size_t size, guard;
	char *low;

	get_stack(thread, &low, &size, &guard);
	CHECK((const char *)address > low);
	CHECK((const char *)address < low + size);
}

struct whose {
	pthread_t thread;
	char *local;
};

static void *look_at(void *arg)
{
	struct whose *whose = arg;
	char mine;

	usleep(100);
	has(whose->thread, whose->local);
	has(pthread_self(), &mine);
	return arg;
}

TEST(main_s_stack_is_reported_correctly)
{
	char local = 0;
	struct whose whose = { pthread_self(), &local };

	join(start(look_at, &whose));
	usleep(100);
	has(pthread_self(), &local);
}

/* Forking. */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int prepared, in_child;

static void prepare(void)
{
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	prepared++;
}

static void parent(void)
{
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void child(void)
{
	int fds[2];
	char byte;

	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(read(fds[0], &byte, 1), 1);
	usleep(100);
	in_child++;
}

static void *fork_here(void *arg)
{
	int pid, status;

	usleep(100);
	pid = fork();
	if (!pid) {
		join(start(nothing, NULL));
		_exit(in_child);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(WEXITSTATUS(status), 2);
	return arg;
}

/* One fork handler is registered before those of the runtime, and one after them. */
TEST(a_child_s_handlers_run_in_it)
{
	CHECK_EQ(pthread_atfork(prepare, parent, child), 0);
	join(start(nothing, NULL));
	CHECK_EQ(pthread_atfork(NULL, NULL, child), 0);
	run_all(4, fork_here, NULL);
	CHECK_EQ(prepared, 4);
	CHECK_EQ(in_child, 0);
}
