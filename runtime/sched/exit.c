/* SPDX-License-Identifier: MIT */
#include "exit.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/base/clock.h"
#include "runtime/counters/counters.h"
#include "carrier.h"
#include "closings.h"
#include "host.h"
#include "poll_first.h"
#include "state.h"
#include "uthreads.h"
#include "wait.h"

/*
 * At the end of the process, wait at most END_NS (in ns) until user threads have
 * returned to their hosts, and check every LOOK_NS.
 */
#define END_NS		20000000U
#define LOOK_NS	50000

/*
 * Does u wait for an unconnected socket, such as a listening one? If u's wait ends
 * during this check, u returns to its host unnecessarily.
 */
static bool waits_for_others(const struct uthread *u)
{
	struct sockaddr_storage peer;
	uint32_t size = sizeof(peer);

	if (atomic_load(&u->wait) != WAIT_CALL || poll_first_is_connect(u))
		return false;
	return raw_syscall(SYS_getpeername, closings_fd(u), PTR(&peer), PTR(&size),
			   0, 0, 0) == -ENOTCONN;
}

/*
 * Make user threads return to their hosts if they wait for unconnected sockets. True:
 * at least one is on its way, or another thread has locked the list.
 */
static bool call_to_hosts(void)
{
	bool any = false;

	if (!flexsc__uthreads_trylock())
		return true;
	for (struct uthread *u = flexsc__uthreads_first(); u; u = u->all_next) {
		if (waits_for_others(u))
			flexsc__want(u);
		any |= atomic_load(&u->wanted) && u->host.away;
	}
	flexsc__uthreads_unlock();
	return any;
}

static void let_go(void)
{
	const struct timespec moment = { 0, LOOK_NS };
	uint64_t until = time_monotonic() + END_NS;
	struct uthread *u = &flexsc__self;
	bool enters = u->alive && !u->busy;

	atomic_store(&flexsc__runtime.last, true);
	/* Wait on the host: the carrier may have other user threads to run. */
	if (enters) {
		flexsc__enter(u);
		u->cause = CAUSE_ENDS;
		flexsc__return_to_host(u);
	}
	while (call_to_hosts() && time_monotonic() < until)
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
	if (enters)
		flexsc__exit(u);
}

static uint64_t loops_calls(void)
{
	uint64_t calls = atomic_load(&flexsc__runtime.ended_calls);

	for (unsigned int i = 0; i < flexsc__runtime.count; i++) {
		struct flexsc_stats stats;

		if (!flexsc_loop_stats(flexsc__runtime.carriers[i].loop, &stats,
				       sizeof(stats)))
			calls += stats.mode_switches;
	}
	return calls;
}

void flexsc__exit_begins(void)
{
	/* The kernel ends this thread at the next call, maybe with a lock held. */
	if (flexsc__self.strict)
		return;
	flexsc__counters_show(loops_calls());
	if (flexsc__runtime.polls && !runtime_is_lent() &&
	    !atomic_load(&flexsc__runtime.last))
		let_go();
}
