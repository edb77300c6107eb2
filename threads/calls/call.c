/* SPDX-License-Identifier: MIT */
#include "call.h"

#include <errno.h>
#include <pthread.h>

#include "../report/counters.h"
#include "../run/home.h"
#include "../run/wait.h"

long flexsc__call_plainly(long nr, const uint64_t a[6])
{
	return raw_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

long flexsc__call_exposed(struct uthread *u, long nr, const uint64_t a[6])
{
	long ret;

	flexsc__exit(u);
	ret = flexsc__call_plainly(nr, a);
	flexsc__enter(u);
	u->way = WAY_EXPOSED;
	return ret;
}

/* At home: as libc would make it, with the race that libc has, too. */
long flexsc__call_at_home(struct uthread *u, long nr, const uint64_t a[6])
{
	int type;
	long ret;

	if (!u->point) {
		ret = flexsc__call_exposed(u, nr, a);
		u->way = WAY_AT_HOME;
		return ret;
	}
	flexsc__exit(u);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = flexsc__call_plainly(nr, a);
	pthread_setcanceltype(type, NULL);
	flexsc__enter(u);
	u->way = WAY_AT_HOME;
	return ret;
}

long flexsc__call_go_home(struct uthread *u, long nr, const uint64_t a[6])
{
	u->cause = counters_cause(nr);
	flexsc__come_home(u);
	return flexsc__call_at_home(u, nr, a);
}

/* Ending early, and starting again. */

/* Calls that a handler with SA_RESTART doesn't restart: signal(7). */
static bool restarts(long nr)
{
	switch (nr) {
	case SYS_pause:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_semop:
	case SYS_semtimedop:
		return false;
	default:
		return true;
	}
}

bool flexsc__call_interrupted(struct uthread *u, long nr)
{
	/* Nothing is lost: the call had no effect. */
	if (u->point) {
		flexsc__exit(u);
		pthread_testcancel();
		flexsc__enter(u);
	}
	return u->handled == HANDLED_RESTART ? !restarts(nr) : u->handled;
}

static long no_entry(struct uthread *u, long nr, const uint64_t a[6])
{
	u->cause = CAUSE_ENTRY;
	flexsc__come_home(u);
	return flexsc__call_at_home(u, nr, a);
}

long flexsc__call_post(struct uthread *u, long nr, const uint64_t a[6])
{
	long ret;

	for (;;) {
		if (flexsc__stays(u))
			return flexsc__call_at_home(u, nr, a);
		ret = flexsc__wait_call(u, (unsigned int)nr, a);
		if (ret == NO_ENTRY)
			return no_entry(u, nr, a);
		u->way = WAY_POSTED;
		/* Nobody wanted it back: no thread can be made for it. */
		if (ret == -ECANCELED && !at_home())
			return flexsc__call_go_home(u, nr, a);
		if (ret != -ECANCELED && ret != -EINTR)
			return ret;
		if (flexsc__call_interrupted(u, nr))
			break;
		u->handled = HANDLED_NOT;
	}
	u->way = WAY_POSTED;
	return -EINTR;
}
