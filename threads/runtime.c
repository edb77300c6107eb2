/* SPDX-License-Identifier: MIT */
#include "runtime.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "calls/affinity.h"
#include "run/carrier.h"
#include "lib/base/clock.h"
#include "report/counters.h"
#include "calls/cputime.h"
#include "lib/calls/fds.h"
#include "lib/calls/own_fd.h"
#include "run/home.h"
#include "run/monitor.h"
#include "run/park.h"
#include "calls/polling.h"
#include "run/own_thread.h"
#include "signals/actions.h"
#include "signals/signals.h"
#include "libc/sites.h"
#include "run/stacks.h"
#include "calls/timers.h"
#include "calls/ufutex.h"
#include "libc/unpatched.h"
#include "run/wait.h"
#include "run/uthreads.h"

#ifndef ARCH_SHSTK_STATUS
#define ARCH_SHSTK_STATUS	0x5005
#endif

/*
 * How long the process's end waits for threads to come home, and how long
 * between two looks, in ns.
 */
#define ENDS_NS		20000000U
#define ENDS_LOOK_NS	50000

enum state {
	STATE_NOT = 0,	/* the program has made no thread that is known */
	STATE_STARTS,
	STATE_RUNS,
	STATE_CANT,
};

static enum state state;
static long owner;	/* the process that the runtime runs in */

bool flexsc__runtime_runs(void)
{
	return state == STATE_RUNS;
}

bool flexsc__runtime_maker(void)
{
	return (state == STATE_STARTS || state == STATE_RUNS) &&
	       !flexsc__self.alive;
}

static void say(const char *what, const char *why)
{
	char line[400];
	int n = snprintf(line, sizeof(line), "flexsc: run: %s: %s\n", what, why);

	raw_syscall(SYS_write, 2, PTR(line), (uint64_t)n, 0, 0, 0);
}

/* A number that flexsc run has checked; 0 if it isn't set. */
static uint32_t setting(const char *name)
{
	const char *value = getenv(name);

	return value ? (uint32_t)strtoul(value, NULL, 10) : 0;
}

static unsigned int cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return (unsigned int)CPU_COUNT(&set);
}

void flexsc__uthread_begin(struct uthread *u, void *stack, sigmask_t mask)
{
	memset(u, 0, sizeof(*u));
	flexsc__home_init(u, stack, mask);
	/*
	 * Inside the runtime no signal handler runs, which might need the
	 * list's lock.
	 */
	flexsc__enter(u);
	flexsc__uthreads_add(u);
	flexsc__affinity_begin(u);
	flexsc__cputime_begin(u);
	u->alive = true;
	flexsc__exit(u);
}

void flexsc__uthread_end(struct uthread *u)
{
	/* A child that the thread's function forked has no user threads. */
	if (!u->alive)
		return;
	flexsc__enter(u);
	u->cause = CAUSE_ENDS;
	flexsc__come_home(u);
	u->rooted = true;
	flexsc__uthreads_remove(u);
	flexsc__polling_end(u);
	/* A carrier may be about to look at u. */
	while (atomic_load(&u->want.asked))
		raw_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	flexsc__home_fini(u);
	/*
	 * Signals that came meanwhile, for the process or for u itself, are
	 * handled here.
	 */
	flexsc__exit(u);
}

/*
 * Each context would need a shadow stack of its own, which the switch doesn't
 * have.
 */
static bool has_shadow_stack(void)
{
	uint64_t features = 0;

	return !raw_syscall(SYS_arch_prctl, ARCH_SHSTK_STATUS, PTR(&features),
			    0, 0, 0, 0) &&
	       features & 1;
}

/* Forking. */

static void forked(void)
{
	struct uthread *u = &flexsc__self;

	flexsc__actions_forked();
	if (state != STATE_RUNS)
		return;
	/*
	 * First, because with --deep the calls that libc makes below come to
	 * the hook.
	 */
	u->alive = false;
	state = STATE_NOT;
	for (struct uthread *other = flexsc__uthreads_first(); other;
	     other = other->all_next)
		flexsc__polling_end(other);
	flexsc__uthreads_forked();
	flexsc__carriers_forked();
	flexsc__counters_forked();
	flexsc__ufutex_forked();
	flexsc__park_forked();
	flexsc__stacks_forked();
	flexsc__timers_forked();
	context_set_gs(NULL);
}

/* Ending. */

/*
 * The kernel closes an io_uring some milliseconds after its process is gone,
 * and only then the files that requests wait for. Another process may want such
 * a file's name at once: a port to listen on. So at the process's end, threads
 * that wait for it go home and wait there.
 */

/*
 * Does u wait for a socket that isn't connected? Its wait may be over by now;
 * then u comes home for nothing.
 */
static bool waits_for_others(const struct uthread *u)
{
	struct sockaddr_storage peer;
	uint32_t size = sizeof(peer);
	uint64_t fd;

	if (atomic_load(&u->wait) != WAIT_CALL || u->nr == SYS_connect)
		return false;
	fd = u->nr == SYS_poll ? u->args[4] : u->args[0];
	return raw_syscall(SYS_getpeername, fd, PTR(&peer), PTR(&size), 0, 0,
			   0) == -ENOTCONN;
}

/*
 * Call such user threads home. True if any is on its way there, or if the list
 * is locked.
 */
static bool call_home(void)
{
	bool any = false;

	if (!flexsc__uthreads_hold_at_once())
		return true;
	for (struct uthread *u = flexsc__uthreads_first(); u; u = u->all_next) {
		if (waits_for_others(u))
			flexsc__want(u);
		any |= atomic_load(&u->wanted) && u->home.away;
	}
	flexsc__uthreads_release();
	return any;
}

static void let_go(void)
{
	const struct timespec moment = { 0, ENDS_LOOK_NS };
	uint64_t until = time_monotonic() + ENDS_NS;
	struct uthread *u = &flexsc__self;
	bool enters = u->alive && !u->busy;

	atomic_store(&flexsc__home_last, true);
	/* The user threads may be queued on the caller's carrier. */
	if (enters) {
		flexsc__enter(u);
		u->cause = CAUSE_ENDS;
		flexsc__come_home(u);
	}
	while (call_home() && time_monotonic() < until)
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
	if (enters)
		flexsc__exit(u);
}

bool flexsc__runtime_is_child(void)
{
	return raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) != owner;
}

void flexsc__runtime_ends(void)
{
	flexsc__counters_show();
	if (flexsc__carriers_poll && !flexsc__runtime_is_child() &&
	    !atomic_load(&flexsc__home_last))
		let_go();
}

__attribute__((destructor)) static void at_exit(void)
{
	flexsc__runtime_ends();
}

/* Starting. */

/*
 * Lowest number of the runtime's descriptors. Programs count on getting the
 * lowest free one, and select() on those below 1024. fork() copies the table up
 * to the highest, 10 ns for each number.
 */
#define FLOOR	2048

static void place_descriptors(uint32_t carriers)
{
	const int needed = 8 * (int)carriers + 16;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) ||
	    limit.rlim_cur <= (rlim_t)(2 * needed))
		return;
	if (limit.rlim_cur > (rlim_t)(FLOOR + needed))
		flexsc__own_fd_floor = FLOOR;
	else
		flexsc__own_fd_floor = (int)limit.rlim_cur - needed;
}

/* Patch all of libc's places, or none: false. */
static bool patch(void)
{
	static bool tried, patched;
	const char *wanted = getenv("FLEXSC_PATCH");
	char why[160];

	if (tried)
		return patched;
	tried = true;
	pthread_atfork(NULL, NULL, forked);
	at_quick_exit(flexsc__runtime_ends);
	if (wanted && !strcmp(wanted, "0"))
		return false;
	patched = flexsc__sites_patch(getenv("FLEXSC_DEEP"), why,
				      sizeof(why)) >= 0;
	if (!patched)
		say("libc can't be patched, so locks block kernel threads",
		    why);
	return patched;
}

/* Fewer carriers or another engine will do, but the user has to know. */
static bool start_carriers(unsigned int n)
{
	struct flexsc_options options = {
		.size = sizeof(options),
		.max_entries = setting("FLEXSC_ENTRIES"),
	};
	char why[256] = "", what[64];
	int count = flexsc__carriers_start(n, &options, why, sizeof(why));
	const char *other;

	if (count < 0) {
		say("can't start", why);
		return false;
	}
	other = flexsc_loop_why(flexsc__carriers[0].loop);
	if (other)
		say("syscall threads are used", other);
	if (count < (int)n) {
		snprintf(what, sizeof(what), "%d of %u carriers", count, n);
		say(what, why);
	}
	return true;
}

static bool start(void)
{
	sigmask_t mask = 0;
	uint32_t carriers = setting("FLEXSC_CARRIERS");
	bool in_place;
	void *stack;

	if (!carriers)
		carriers = cores();
	flexsc__carriers_spin = carriers > 1 && cores() > 1;
	if (getenv("FLEXSC_ENGINE") &&
	    !strcmp(getenv("FLEXSC_ENGINE"), "sync")) {
		say("can't start", "FLEXSC_ENGINE is sync, which blocks; give "
		    "uring or threads");
		return false;
	}
	if (has_shadow_stack()) {
		say("can't start", "the program uses shadow stacks; link it "
		    "with -z noshstk");
		return false;
	}
	context_probe();
	flexsc__park_init();
	stack = flexsc__park_get();
	if (!stack || flexsc__fds_init())
		return false;
	in_place = patch();
	place_descriptors(carriers);
	if (flexsc__counters_start(carriers)) {
		say("can't start", strerror(ENOMEM));
		return false;
	}
	if (!start_carriers(carriers))
		return false;
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, 0, PTR(&mask),
		    sizeof(mask), 0, 0);
	/*
	 * Without the monitor, a user thread that computes would stop all
	 * others.
	 */
	if (flexsc__monitor_start() < 0) {
		say("can't start", "monitor: Resource temporarily unavailable");
		return false;
	}
	owner = raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	flexsc__signal_init();
	/*
	 * From here on the functions in front of libc's set handlers;
	 * signal_init() has adopted those that libc and the engine had set.
	 */
	if (!in_place)
		flexsc__unpatched_begin();
	flexsc__uthread_begin(&flexsc__self, stack, mask);
	return true;
}

bool flexsc__runtime_start(void)
{
	if (state == STATE_NOT) {
		state = STATE_STARTS;
		state = start() ? STATE_RUNS : STATE_CANT;
	}
	return state == STATE_RUNS;
}
