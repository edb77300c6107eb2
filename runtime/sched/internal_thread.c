/* SPDX-License-Identifier: MIT */
#include "internal_thread.h"

#include <errno.h>
#include <signal.h>

#include "lib/pool/own_thread.h"
#include "runtime/base/interpose.h"
#include "runtime/base/sigset.h"
#include "stacks.h"
#include "thread_count.h"

/* Arguments of a new thread, at the top of a small stack. */
struct birth {
	void *(*start)(void *);
	void *arg;
	void *stack;
};

static struct birth *own_birth_on(void *stack)
{
	return (struct birth *)stack_top(&flexsc__small, stack) - 1;
}

static void *own_main(void *arg)
{
	struct birth birth = *(struct birth *)arg;
	void *ret;

	flexsc__stack_put(&flexsc__small, birth.stack);
	flexsc__count_leave();
	ret = birth.start(birth.arg);
	flexsc__count_join();
	return ret;
}

/* Minimum size of a thread's stack in bytes, without thread-local storage. */
#define LEAST		65536U

/* Create the thread on a stack of libc's, without the program's default attributes. */
static int own_create_large(pthread_t *thread, const pthread_attr_t *attr,
			    struct birth *birth)
{
	pthread_attr_t large;
	int state, err;

	pthread_attr_init(&large);
	if (!pthread_attr_getdetachstate(attr, &state))
		pthread_attr_setdetachstate(&large, state);
	err = REAL(pthread_create)(thread, &large, own_main, birth);
	pthread_attr_destroy(&large);
	return err;
}

/*
 * Use a stack of the runtime's. If the program's thread-local storage is too large for
 * it, use one of libc's. libc puts that storage at the stack's top, and accepts the
 * stack even if little space is left below. So don't pass the lowest LEAST bytes of the
 * stack to libc: they stay free in any case.
 */
static int own_create(pthread_t *thread, pthread_attr_t *attr,
		      struct birth *birth)
{
	void *stack = flexsc__stack_get(&flexsc__owned);
	int err;

	if (!stack)
		return EAGAIN;
	pthread_attr_setstack(attr, (char *)stack + LEAST,
			      flexsc__owned.bytes - LEAST);
	err = REAL(pthread_create)(thread, attr, own_main, birth);
	if (err)
		flexsc__stack_put(&flexsc__owned, stack);
	return err == EINVAL ? own_create_large(thread, attr, birth) : err;
}

/* Create a thread that blocks these signals from its first instruction on. */
static int own_make(pthread_t *thread, pthread_attr_t *attr,
		    void *(*run)(void *), void *arg, sigmask_t blocked)
{
	void *small = flexsc__stack_get(&flexsc__small);
	struct birth *birth;
	sigmask_t before;
	int err;

	if (!small)
		return EAGAIN;
	flexsc__count_making();
	birth = own_birth_on(small);
	*birth = (struct birth){ .start = run, .arg = arg, .stack = small };
	signal_mask(SIG_SETMASK, &blocked, &before);
	err = own_create(thread, attr, birth);
	signal_mask(SIG_SETMASK, &before, NULL);
	if (err)
		flexsc__stack_put(&flexsc__small, small);
	flexsc__count_made(!err);
	return err;
}

/*
 * Replaces the function in lib/pool/own_thread.c, whose callers may cancel the thread.
 */
int flexsc__own_thread(pthread_t *thread, void *(*run)(void *), void *arg,
		       const cpu_set_t *cores)
{
	const sigmask_t all = ~(SIGNAL_BIT(SIGNAL_CANCEL) |
				SIGNAL_BIT(SIGNAL_SETXID));
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	if (cores)
		pthread_attr_setaffinity_np(&attr, sizeof(*cores), cores);
	err = own_make(thread, &attr, run, arg, all);
	pthread_attr_destroy(&attr);
	return -err;
}

void flexsc__own_join(pthread_t thread)
{
	void *stack = flexsc__stack_of(thread);

	REAL(pthread_join)(thread, NULL);
	flexsc__stack_put(&flexsc__owned, stack);
}

int flexsc__internal_service(pthread_t *thread, void *(*run)(void *), void *arg)
{
	const sigmask_t all = ~SIGNAL_BIT(SIGNAL_SETXID);
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	err = own_make(thread, &attr, run, arg, all);
	pthread_attr_destroy(&attr);
	return err;
}
