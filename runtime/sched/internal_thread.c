/* SPDX-License-Identifier: MIT */
#include "internal_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/pool/own_thread.h"
#include "runtime/base/interpose.h"
#include "runtime/base/sigset.h"
#include "stacks.h"

/* Arguments of a new thread, at the top of a stack to park on. */
struct birth {
	void *(*start)(void *);
	void *arg;
	void *stack;
};

static struct birth *own_birth_on(void *stack)
{
	return (struct birth *)stack_top(&flexsc__small, stack) - 1;
}

/*
 * Threads of the runtime's that were made, and those that have left libc's count. "made"
 * grows after libc has counted the thread, and "left" before libc's count falls. While a
 * thread is between its two counts it is "unsettled". If none is, libc counts made - left
 * of the runtime's threads; otherwise it may count more.
 */
static _Atomic unsigned int made, left, unsettled;

/* Time between two looks whether all are settled, in ns. */
#define LOOK_NS		20000

/*
 * libc counts threads, and ends the process with the last one. The runtime's threads must
 * not count. Each takes itself off the count when it begins, and puts itself back right
 * before libc takes it off. So the count is never less than the number of the program's
 * threads, and the thread that makes it 0 ends the process. If a thread of the runtime's
 * begins only after the program's last thread has ended, it makes the count 0, and uses
 * that thread's status.
 */

/* The status of a thread that ended by the system call, with BY_CALL; else 0. */
static _Atomic uint64_t last_end;

#define BY_CALL		(1ULL << 32)

/* True: the process has to end. */
static bool take_off_count(void)
{
	_Atomic unsigned int *threads = flexsc__real_count();

	return threads && atomic_fetch_sub(threads, 1) == 1;
}

static void end_process(void)
{
	const uint64_t end = atomic_load(&last_end);

	if (end & BY_CALL)
		raw_syscall(SYS_exit_group, (uint32_t)end, 0, 0, 0, 0, 0);
	exit(EXIT_SUCCESS);
}

void flexsc__internal_program_ends(void)
{
	atomic_store(&last_end, 0);
}

void flexsc__internal_program_ends_by_call(uint32_t status)
{
	atomic_store(&last_end, BY_CALL | status);
	if (take_off_count())
		end_process();
}

static void leave_count(void)
{
	bool last;

	atomic_fetch_add(&unsettled, 1);
	atomic_fetch_add(&left, 1);
	last = take_off_count();
	atomic_fetch_sub(&unsettled, 1);
	if (last)
		end_process();
}

static void join_count(void)
{
	_Atomic unsigned int *threads = flexsc__real_count();

	if (threads)
		atomic_fetch_add(threads, 1);
}

/* This may take long: a thread may lose its processor between its two counts. */
static void wait_until_settled(void)
{
	const struct timespec moment = { 0, LOOK_NS };

	while (atomic_load(&unsettled))
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
}

bool flexsc__internal_others(void)
{
	_Atomic unsigned int *threads = flexsc__real_count();
	unsigned int begun, over, all;

	if (!threads)
		return true;
	do {
		wait_until_settled();
		begun = atomic_load(&made);
		over = atomic_load(&left);
		all = atomic_load(threads);
	} while (atomic_load(&unsettled) || atomic_load(&made) != begun ||
		 atomic_load(&left) != over);
	return (int)(all - (begun - over)) > 1;
}

static void *own_main(void *arg)
{
	struct birth birth = *(struct birth *)arg;
	void *ret;

	flexsc__stack_put(&flexsc__small, birth.stack);
	leave_count();
	ret = birth.start(birth.arg);
	join_count();
	return ret;
}

/*
 * Bytes that a thread of the runtime has at least, besides the program's
 * thread-local storage.
 */
#define LEAST		65536U

/* On a stack of libc's. Without attributes, the program's default ones would apply. */
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
 * Make the thread on a stack of the runtime's, or on one of libc's if the program's
 * thread-local storage is too large. libc puts that storage at the stack's top and requires
 * little below it, so the stack that it gets is smaller by LEAST.
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

/* A thread that has these signals blocked from its first instruction on. */
static int own_make(pthread_t *thread, pthread_attr_t *attr,
		    void *(*run)(void *), void *arg, sigmask_t blocked)
{
	void *small = flexsc__stack_get(&flexsc__small);
	struct birth *birth;
	sigmask_t before;
	int err;

	if (!small)
		return EAGAIN;
	atomic_fetch_add(&unsettled, 1);
	birth = own_birth_on(small);
	*birth = (struct birth){ .start = run, .arg = arg, .stack = small };
	signal_mask(SIG_SETMASK, &blocked, &before);
	err = own_create(thread, attr, birth);
	signal_mask(SIG_SETMASK, &before, NULL);
	if (err)
		flexsc__stack_put(&flexsc__small, small);
	else
		atomic_fetch_add(&made, 1);
	atomic_fetch_sub(&unsettled, 1);
	return err;
}

void flexsc__internal_forked(void)
{
	atomic_store(&made, 0);
	atomic_store(&left, 0);
	atomic_store(&unsettled, 0);
	atomic_store(&last_end, 0);
}

/*
 * Make a thread of the library's, in place of lib/pool/own_thread.c. It may be
 * cancelled.
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
