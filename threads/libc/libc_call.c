/* SPDX-License-Identifier: MIT */
#include "libc_call.h"

#include <pthread.h>

#include "../calls/hook.h"
#include "../run/uthread.h"

/*
 * A cancellation point as libc makes it, for a thread that isn't a user thread.
 */
static long plain_point(long nr, const uint64_t args[6])
{
	int type;
	long ret;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = flexsc__hook(nr, args);
	pthread_setcanceltype(type, NULL);
	return ret;
}

atomic_bool flexsc__anybody_cancelled;

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
	return libc_result(point ? flexsc__libc_point(nr, args) :
				   flexsc__hook(nr, args));
}
