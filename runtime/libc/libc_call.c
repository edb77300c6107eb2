/* SPDX-License-Identifier: MIT */
#include "libc_call.h"

#include <pthread.h>
#include <sys/single_threaded.h>

#include "runtime/calls/hook.h"
#include "runtime/calls/perform.h"
#include "runtime/sched/uthread.h"

atomic_bool flexsc__anybody_cancelled;

/*
 * Is the calling thread certainly not cancelled? In a process with one thread, only
 * that thread can cancel itself, and a cancellation sets flexsc__anybody_cancelled.
 */
static bool is_uncancelled(void)
{
	return __libc_single_threaded &&
	       !atomic_load_explicit(&flexsc__anybody_cancelled,
				     memory_order_relaxed);
}

/* Make a cancellation point as libc does, for a thread that isn't a user thread. */
static long plain_point(long nr, const uint64_t args[6])
{
	int type;
	long ret;

	if (is_uncancelled())
		return flexsc__hook(nr, args);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = flexsc__hook(nr, args);
	pthread_setcanceltype(type, NULL);
	return ret;
}

/* Make a call that the hook needn't see. "point": the call is a cancellation point. */
static __attribute__((noinline)) long unnoted(bool point, long nr,
					      const uint64_t args[6])
{
	if (point && !is_uncancelled())
		return libc_result(plain_point(nr, args));
	return libc_result(raw_syscall(nr, args[0], args[1], args[2], args[3],
				       args[4], args[5]));
}

/*
 * Like pthread_testcancel(), but seldom touches libc's data, which usually isn't in the
 * cache.
 */
static void test_cancel(struct uthread *u)
{
	/*
	 * C2: sees a pthread_cancel() that has returned before this call; pairs
	 * with C1 in thread_functions.c.
	 */
	if (atomic_load_explicit(&u->cancelled, memory_order_relaxed) ||
	    atomic_load_explicit(&flexsc__anybody_cancelled, memory_order_relaxed))
		pthread_testcancel();
}

long flexsc__libc_point(long nr, const uint64_t args[6])
{
	struct uthread *u = &flexsc__self;
	long ret;

	if (!u->alive)
		return plain_point(nr, args);
	test_cancel(u);
	u->point = true;
	ret = flexsc__hook(nr, args);
	u->point = false;
	return ret;
}

long flexsc__libc_call(bool point, long nr, const uint64_t args[6])
{
	/*
	 * The hook has to see an event loop's calls only if a user thread makes them.
	 * So an event loop in a program without threads costs little more.
	 */
	if (!flexsc__self.alive && call_turn(nr) != TURN_OTHER)
		return unnoted(point, nr, args);
	return libc_result(point ? flexsc__libc_point(nr, args) :
				   flexsc__hook(nr, args));
}
