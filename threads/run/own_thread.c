/* SPDX-License-Identifier: MIT */
#include "own_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../base/interpose.h"
#include "../base/sigset.h"
#include "carrier.h"
#include "park.h"
#include "stacks.h"

/* What a new thread is told, at the top of a stack to park on. */
struct birth {
	void *(*start)(void *);
	void *arg;
	void *stack;
};

static struct birth *birth_on(void *stack)
{
	return (struct birth *)((char *)stack + PARK_BYTES) - 1;
}

/*
 * libc ends the process with its last thread, and counts threads for that. The
 * runtime's threads must not count. Each takes itself off the count when it
 * begins, and puts itself back right before libc takes it off. So the count is
 * never less than the number of the program's threads, and the thread that
 * makes it 0 ends the process.
 */
static void leave_count(void)
{
	_Atomic unsigned int *threads = flexsc__real_count();

	if (threads && atomic_fetch_sub(threads, 1) == 1)
		exit(EXIT_SUCCESS);
}

static void join_count(void)
{
	_Atomic unsigned int *threads = flexsc__real_count();

	if (threads)
		atomic_fetch_add(threads, 1);
}

static void *runtime_main(void *arg)
{
	struct birth birth = *(struct birth *)arg;
	void *ret;

	flexsc__park_put(birth.stack);
	leave_count();
	ret = birth.start(birth.arg);
	join_count();
	return ret;
}

/*
 * Make the thread on a stack of the runtime's, unless libc's defaults are
 * wanted.
 */
static int create_on_own(pthread_t *thread, const pthread_attr_t *attr,
			 struct birth *birth)
{
	pthread_attr_t own;
	size_t bytes;
	void *stack;
	int err;

	if (!attr)
		return REAL(pthread_create)(thread, NULL, runtime_main, birth);
	stack = flexsc__stack_get(&bytes);
	if (!stack)
		return EAGAIN;
	/*
	 * The copy isn't destroyed, because what it points to is the caller's.
	 */
	own = *attr;
	pthread_attr_setstack(&own, stack, bytes);
	err = REAL(pthread_create)(thread, &own, runtime_main, birth);
	if (err)
		flexsc__stack_put(stack);
	return err;
}

int flexsc__runtime_thread(pthread_t *thread, const pthread_attr_t *attr,
			   void *(*start)(void *), void *arg)
{
	void *park = flexsc__park_get();
	struct birth *birth;
	int err;

	if (!park)
		return EAGAIN;
	birth = birth_on(park);
	*birth = (struct birth){ .start = start, .arg = arg, .stack = park };
	err = create_on_own(thread, attr, birth);
	if (err)
		flexsc__park_put(park);
	return err;
}

int flexsc__runtime_join(pthread_t thread, void **value)
{
	void *stack = flexsc__stack_of(thread);
	int err = pthread_join(thread, value);

	if (!err)
		flexsc__stack_put(stack);
	return err;
}

int flexsc__runtime_detached(pthread_t *thread, void *(*run)(void *), void *arg)
{
	const sigmask_t all = ~SIGNAL_BIT(SIGNAL_SETXID);
	sigmask_t before;
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(&all), PTR(&before),
		    sizeof(all), 0, 0);
	err = flexsc__runtime_thread(thread, &attr, run, arg);
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(&before), 0,
		    sizeof(before), 0, 0);
	pthread_attr_destroy(&attr);
	return err;
}
