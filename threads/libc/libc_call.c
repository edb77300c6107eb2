/* SPDX-License-Identifier: MIT */
#include "libc_call.h"

#include <pthread.h>
#include <sys/single_threaded.h>

#include "../calls/call.h"
#include "../calls/hook.h"
#include "../run/uthread.h"

atomic_bool flexsc__anybody_cancelled;

/* Calls of which the hook takes no note if the caller isn't a user thread. */
static bool is_unnoted(long nr)
{
	switch (nr) {
	case SYS_accept4:
	case SYS_poll:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return true;
	default:
		return call_transfers(nr);
	}
}

/* Where there is one thread it alone can cancel itself, which is known. */
static bool is_uncancelled(void)
{
	return __libc_single_threaded &&
	       !atomic_load_explicit(&flexsc__anybody_cancelled,
				     memory_order_relaxed);
}

/*
 * A cancellation point as libc makes it, for a thread that isn't a user thread.
 */
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

/* All of these calls are cancellation points. */
static __attribute__((noinline)) long unnoted(long nr, const uint64_t args[6])
{
	if (!is_uncancelled())
		return libc_result(plain_point(nr, args));
	return libc_result(raw_syscall(nr, args[0], args[1], args[2], args[3],
				       args[4], args[5]));
}

/* As pthread_testcancel(), whose data is cold here, unlike u. */
static void test_cancel(struct uthread *u)
{
	/*
	 * C2: sees a pthread_cancel() that has returned before this call; pairs
	 * with C1 in pthread.c.
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
	/* So an event loop of a program without threads pays for little else. */
	if (!flexsc__self.alive && is_unnoted(nr))
		return unnoted(nr, args);
	return libc_result(point ? flexsc__libc_point(nr, args) :
				   flexsc__hook(nr, args));
}
