/* SPDX-License-Identifier: MIT */
#include "dormant.h"

#include <pthread.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "anchored.h"
#include "carriers.h"
#include "kernel_cores.h"
#include "monitor.h"
#include "spare.h"
#include "state.h"
#include "thread_count.h"
#include "uthreads.h"

/*
 * How long after one fork the runtime doesn't become dormant for another, in ns. Ending
 * and restarting the carriers takes some milliseconds, too much for each of many forks.
 */
#define OFTEN_NS	50000000U
/*
 * How long to wait until the kernel has removed a joined thread, or a poller, and between
 * checks, in ns. The kernel ends a poller in the background, some time after its rings
 * were closed.
 */
#define GONE_NS		100000000U
#define POLLERS_GONE_NS	3000000000U
#define LOOK_NS		20000
/*
 * How often to check for other threads: a thread of the runtime may just be ending, which
 * the count notices only with robust mutexes (thread_count.c).
 */
#define LOOKS		10

/*
 * Is u the program's only thread? libc's count includes threads that libc created, as
 * for SIGEV_THREAD, but not the runtime's (thread_count.h).
 */
static bool is_alone(const struct uthread *u)
{
	const struct timespec moment = { 0, LOOK_NS };
	bool alone, others = true;

	flexsc__uthreads_lock();
	alone = flexsc__uthreads_first() == u && !u->all_next;
	flexsc__uthreads_unlock();
	for (int i = 0; alone && others && i < LOOKS; i++) {
		if (i)
			raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
		others = flexsc__count_others();
	}
	return alone && !others;
}

/* The kernel still counts a thread for a moment after pthread_join() has returned. */
static void wait_until_gone(void)
{
	const struct timespec moment = { 0, LOOK_NS };
	const uint64_t until = time_monotonic() +
			       (flexsc__kernel_cores() ? POLLERS_GONE_NS : GONE_NS);
	struct stat tasks;

	while (!stat("/proc/self/task", &tasks) && tasks.st_nlink > 3 &&
	       time_monotonic() < until)
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
}

bool flexsc__dormant_begin(struct uthread *u)
{
	int state;

	if (atomic_load(&flexsc__runtime.dormant))
		return true;
	/* A seccomp filter of u's own may forbid the calls below. */
	if (filter_is_near(u) || !is_alone(u))
		return false;
	/* u stays on its host from here on. */
	atomic_store(&flexsc__runtime.dormant, true);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	flexsc__monitor_end();
	flexsc__spares_end();
	flexsc__carriers_end();
	pthread_setcancelstate(state, NULL);
	u->carrier = NULL;
	wait_until_gone();
	return true;
}

void flexsc__dormant_before_fork(struct uthread *u)
{
	static uint64_t last;

	if (last && time_monotonic() - last < OFTEN_NS)
		return;
	flexsc__dormant_begin(u);
	if (atomic_load(&flexsc__runtime.dormant))
		last = time_monotonic();
}

void flexsc__dormant_end(void)
{
	atomic_store(&flexsc__runtime.dormant, false);
}
