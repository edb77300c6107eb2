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

#include "lib/base/valgrind.h"
#include "lib/engine/uring_kills.h"
#include "lib/files/fds.h"
#include "lib/files/plan.h"
#include "lib/files/guard.h"
#include "lib/files/private_fd.h"
#include "runtime/base/heap.h"
#include "runtime/calls/bucket.h"
#include "runtime/calls/cpuclock.h"
#include "runtime/calls/filter.h"
#include "runtime/calls/own_calls.h"
#include "runtime/calls/strict.h"
#include "runtime/calls/life.h"
#include "runtime/counters/counters.h"
#include "runtime/libc/libc.h"
#include "runtime/sched/anchored.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/carriers.h"
#include "runtime/sched/dormant.h"
#include "runtime/sched/exit.h"
#include "runtime/sched/host.h"
#include "runtime/sched/kernel_cores.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/spare.h"
#include "runtime/sched/stacks.h"
#include "runtime/sched/state.h"
#include "runtime/sched/thread_count.h"
#include "runtime/sched/uthreads.h"
#include "runtime/signals/actions.h"
#include "runtime/signals/signals.h"

static void runtime_report(const char *what, const char *why)
{
	char line[400];
	int n = snprintf(line, sizeof(line), "flexsc: run: %s: %s\n", what, why);

	raw_syscall(SYS_write, 2, PTR(line), (uint64_t)n, 0, 0, 0);
}

/*
 * Returns an environment variable's number if it is from 1 to "most"; otherwise
 * "other".
 */
static uint32_t setting(const char *name, uint32_t most, uint32_t other)
{
	const char *value = getenv(name);
	unsigned long n;
	char *end, why[64];

	if (!value)
		return other;
	n = strtoul(value, &end, 10);
	if (*value >= '0' && *value <= '9' && !*end && n && n <= most)
		return (uint32_t)n;
	snprintf(why, sizeof(why), "not a number from 1 to %u; ignored", most);
	runtime_report(name, why);
	return other;
}

/* Number of cores that carriers may use. */
static unsigned int cores(void)
{
	char why[120];

	if (flexsc__kernel_cores_init(why, sizeof(why)))
		runtime_report("FLEXSC_KERNEL_CORES ignored", why);
	return flexsc__kernel_cores_rest();
}

/* Number of carriers, also while the runtime is dormant. */
static unsigned int started;

/* Forking. */

static void forked(void)
{
	struct uthread *u = &flexsc__self;

	/*
	 * Reset the state of descriptors first, because the functions below may close
	 * some. The fork handler of lib/run/make.c resets a part of that state, too,
	 * but may run after this function.
	 */
	flexsc__private_fds_forked();
	flexsc__guards_forked();
	flexsc__heap_forked();
	flexsc__actions_forked();
	if (!runtime_runs())
		return;
	/*
	 * With --deep, the hook also gets the calls that the functions below make. It
	 * must not treat those as calls of a user thread.
	 */
	u->alive = false;
	flexsc__runtime.state = RUNTIME_NOT;
	started = 0;
	flexsc__dormant_end();
	flexsc__count_begin();
	for (struct uthread *other = flexsc__uthreads_first(); other;
	     other = other->all_next)
		other->guard = NULL;
	flexsc__uthreads_forked();
	flexsc__spares_forget();
	flexsc__carriers_forked();
	flexsc__counters_forked();
	flexsc__buckets_forked();
	flexsc__stacks_forked();
	flexsc__cpuclock_forked();
	flexsc__filter_forked();
	flexsc__strict_forked();
	context_set_self(NULL);
}

__attribute__((destructor)) static void at_exit(void)
{
	flexsc__exit_begins();
}

/* Starting. */

/*
 * Lowest number of the runtime's descriptors. Programs rely on getting the lowest free
 * descriptor, and select() accepts only descriptors below 1024. fork() copies the
 * descriptor table up to the highest descriptor, at 10 ns per number.
 */
#define FLOOR	2048
/* Reserve descriptors from FLOOR on for this many spares. */
#define SPARES_MANY	8U

static void place_descriptors(uint32_t carriers)
{
	int needed = 8 * (int)(carriers + SPARES_MANY) + 16;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	/* With a low limit, reserve for one spare only. */
	if (limit.rlim_cur <= 2 * (rlim_t)needed)
		needed = 8 * (int)(carriers + 1) + 16;
	if (limit.rlim_cur <= 2 * (rlim_t)needed)
		return;
	if (limit.rlim_cur > (rlim_t)(FLOOR + needed))
		flexsc__private_fd_floor = FLOOR;
	else
		flexsc__private_fd_floor = (int)limit.rlim_cur - needed;
}

/* Does this environment variable switch a part off? */
static bool is_off(const char *name)
{
	const char *value = getenv(name);

	return value && !strcmp(value, "0");
}

/* Patch all system calls of libc. False: none was patched. */
static bool patch(void)
{
	static bool tried, patched;
	char why[160];

	if (tried)
		return patched;
	tried = true;
	flexsc__runtime.forked = forked;
	pthread_atfork(NULL, NULL, forked);
	at_quick_exit(flexsc__exit_begins);
	if (is_off("FLEXSC_PATCH"))
		return false;
	patched = flexsc__sites_patch(getenv("FLEXSC_DEEP"), why, sizeof(why)) >= 0;
	if (!patched)
		runtime_report("libc can't be patched, so locks block kernel threads",
			    why);
	return patched;
}

/* Entries per carrier: as many as a process can have threads, each with one call. */
#define ENTRIES		(1U << 17)
/*
 * The same with the kernel module, which locks the memory of all entries from the start:
 * 280 KB, so that several processes of a user fit into the usual RLIMIT_MEMLOCK of 8 MB.
 */
#define MODULE_ENTRIES	(1U << 12)

/*
 * The program's threads need address space, too: a stack takes some MB. If the address
 * space is limited (RLIMIT_AS), start only as many carriers, including the spare, as
 * leave this many bytes to each.
 */
#define CARRIER_SPACE	(8UL << 20)

static rlim_t room_for_carriers(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_AS, &limit) ? RLIM_INFINITY :
					      limit.rlim_cur / CARRIER_SPACE;
}

static uint32_t carriers_that_fit(uint32_t n)
{
	const rlim_t room = room_for_carriers();
	char what[64];
	uint32_t fit;

	if (room > n)
		return n;
	fit = room > 1 ? (uint32_t)room - 1 : 1;
	if (fit == n)
		return n;
	snprintf(what, sizeof(what), "using %u of %u carriers", fit, n);
	runtime_report(what, "RLIMIT_AS is too low for more");
	return fit;
}

/*
 * Entries of each of n carriers. With the kernel module, the carriers and two spares share
 * a low RLIMIT_MEMLOCK.
 */
static uint32_t entries_for(unsigned int n)
{
	enum { ENTRY_BYTES = 68, OTHER_BYTES = 8192 };
	const char *engine = getenv("FLEXSC_ENGINE");
	struct rlimit limit;
	rlim_t share, fit;

	if (!engine || strcmp(engine, "kmod") != 0)
		return ENTRIES;
	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return MODULE_ENTRIES;
	share = limit.rlim_cur / (n + 2);
	fit = share > OTHER_BYTES ? (share - OTHER_BYTES) / ENTRY_BYTES : 0;
	fit = fit / FLEXSC_PAGE_ENTRIES * FLEXSC_PAGE_ENTRIES;
	if (fit < FLEXSC_PAGE_ENTRIES)
		return FLEXSC_PAGE_ENTRIES;
	return fit < MODULE_ENTRIES ? (uint32_t)fit : MODULE_ENTRIES;
}

/*
 * Start n carriers. If only fewer carriers or another engine are possible, start those,
 * and report this in a message.
 */
static bool start_carriers(unsigned int n)
{
	struct flexsc_options options = {
		.size = sizeof(options),
		.kernel_cores = flexsc__kernel_cores(),
		.max_entries = setting("FLEXSC_ENTRIES", 1 << 20, entries_for(n)),
	};
	char why[256] = "", what[64];
	const bool restart = started, spare = room_for_carriers() > n;
	int count = flexsc__carriers_start(n, spare, &options, why, sizeof(why));
	const bool lacks = (int)flexsc__runtime.count == count;
	const char *other;
	int err = 0;

	if (count < 0) {
		runtime_report("running natively", why);
		return false;
	}
	other = flexsc_loop_why(flexsc__runtime.carriers[0].loop);
	if (other && !restart)
		runtime_report(flexsc__runtime.polls ? "not using the kernel cores" :
						       "using syscall threads",
			       other);
	started = (unsigned int)count;
	if (count < (int)n) {
		snprintf(what, sizeof(what), "using %d of %u carriers", count, n);
		runtime_report(what, why);
	}
	options.engine = flexsc_loop_engine(flexsc__runtime.carriers[0].loop);
	if (spare)
		err = flexsc__spares_start(&options);
	if ((lacks || err) && !restart)
		runtime_report("no spare carrier to take over from a stuck one",
			    !spare ? "RLIMIT_AS is too low" :
			    lacks ? why : strerror(-err));
	return true;
}

/*
 * Test whether seccomp filters permit io_uring. If the process has one thread, the
 * result also holds for all later threads, which inherit its filters. Without this
 * test, each carrier would create a child for a test of its own.
 */
static void try_filters(void)
{
	const char *engine = getenv("FLEXSC_ENGINE");

	if (!engine || !strcmp(engine, "uring"))
		flexsc__uring_kills();
}

/*
 * Start the monitor, then n carriers. Without the monitor, a user thread that computes
 * would block all others. The monitor starts first because its start may fail, and
 * started carriers may not end while other threads of the program may use them.
 */
static bool start_monitor_first(unsigned int n)
{
	const bool restart = started;
	char why[80];
	int err;

	err = flexsc__monitor_start();
	if (err < 0 && !restart) {
		snprintf(why, sizeof(why), "can't create the monitor thread: %s",
			 strerror(-err));
		runtime_report("running natively", why);
	}
	if (err < 0)
		return false;
	if (start_carriers(n))
		return true;
	flexsc__monitor_end();
	return false;
}

static bool start_threads(unsigned int n)
{
	cpu_set_t own;
	bool done;

	try_filters();
	flexsc__kernel_cores_leave(&own);
	done = start_monitor_first(n);
	flexsc__kernel_cores_return(&own);
	return done;
}

/*
 * Is the caller the process's first thread? Only that thread becomes a user thread
 * here. libc may also have created the caller, as for SIGEV_THREAD, and the runtime
 * would miss the end of such a thread.
 */
static bool is_first_thread(void)
{
	return raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0) ==
	       flexsc__runtime.owner;
}

/* Would a function of another library hide calls that the runtime must see? */
static bool is_bypassed(void)
{
	const char *name = flexsc__unpatched_obstacle();
	char why[160];

	if (!name)
		return false;
	snprintf(why, sizeof(why), "libc can't be patched, and another library "
				   "replaces %s()", name);
	runtime_report("running natively", why);
	return true;
}

/* Does a filter that the process already has forbid a call that the runtime needs? */
static bool is_forbidden(void)
{
	char why[96];

	if (!flexsc__own_calls_forbidden(0, getenv("FLEXSC_KERNEL_CORES"), why, sizeof(why)))
		return false;
	runtime_report("running natively", why);
	return true;
}

static bool start(void)
{
	sigmask_t mask = 0;
	const char *engine;
	unsigned int all;
	uint32_t carriers;
	bool in_place;
	void *stack;

	if (atomic_load(&flexsc__runtime.filtered) ||
	    filter_is_near(&flexsc__self))
		return false;
	/* First, because a filter may forbid the system calls below. */
	flexsc__runtime.sends = !flexsc__is_filtered();
	if (!flexsc__runtime.sends && is_forbidden())
		return false;
	all = cores();
	carriers = carriers_that_fit(setting("FLEXSC_CARRIERS", 1024, all));
	/* A carrier spins if another core may make a thread ready meanwhile. */
	flexsc__runtime.spins = (carriers > 1 && all > 1) || flexsc__kernel_cores();
	flexsc__runtime.loops = !is_off("FLEXSC_LOOPS");
	flexsc__runtime.sticky = !is_off("FLEXSC_STICKY");
	engine = getenv("FLEXSC_ENGINE");
	if (engine && !strcmp(engine, "sync")) {
		runtime_report("running natively", "FLEXSC_ENGINE is sync, which "
						   "blocks the caller; use uring, "
						   "threads or kmod");
		return false;
	}
	if (under_valgrind()) {
		runtime_report("running natively",
			       "valgrind schedules threads itself");
		return false;
	}
	/* Each user thread would need a shadow stack, which the runtime can't switch. */
	if (context_has_shadow_stack()) {
		runtime_report("running natively", "the program uses shadow stacks; "
						   "link it with -z noshstk");
		return false;
	}
	if (sysconf(_SC_PAGESIZE) != 4096) {
		runtime_report("running natively", "the kernel's pages don't have 4096 bytes");
		return false;
	}
	context_probe();
	flexsc__count_begin();
	flexsc__stacks_init();
	flexsc__buckets_init();
	stack = flexsc__stack_get(&flexsc__small);
	flexsc__fds_init();
	if (!stack || flexsc__plan_init()) {
		runtime_report("running natively", strerror(ENOMEM));
		return false;
	}
	in_place = patch();
	if (!in_place && is_bypassed())
		return false;
	flexsc__runtime.unpatched = !in_place;
	place_descriptors(carriers);
	if (flexsc__counters_start(carriers + SPARES_MOST)) {
		runtime_report("running natively", strerror(ENOMEM));
		return false;
	}
	if (!start_threads(carriers))
		return false;
	signal_mask(SIG_SETMASK, NULL, &mask);
	flexsc__runtime.owner = raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	flexsc__signal_init();
	/*
	 * From now on, interposed functions see each handler that the program sets.
	 * flexsc__signal_init() has adopted the handlers that libc and the engine set
	 * before.
	 */
	if (!in_place)
		flexsc__unpatched_begin();
	if (is_first_thread())
		flexsc__life_begin(&flexsc__self, stack, mask, 0, 0);
	else
		flexsc__stack_put(&flexsc__small, stack);
	return true;
}

/*
 * Restart the monitor and the carriers. If that fails, the program's threads stay on
 * their hosts, and the next pthread_create() tries again.
 */
static void end_dormant(void)
{
	static struct lock once;
	struct uthread *u = &flexsc__self;
	bool enters = u->alive && !u->busy;

	/* A filter may forbid calls of the start, and new carriers would inherit it. */
	if (filter_is_near(u))
		return;
	if (enters)
		flexsc__enter(u);
	lock(&once);
	if (atomic_load(&flexsc__runtime.dormant) &&
	    !atomic_load(&flexsc__runtime.filtered) && start_threads(started))
		flexsc__dormant_end();
	unlock(&once);
	if (enters)
		flexsc__exit(u);
}

bool flexsc__runtime_start(void)
{
	enum runtime_state *state = &flexsc__runtime.state;

	if (*state == RUNTIME_NOT) {
		*state = RUNTIME_STARTS;
		*state = start() ? RUNTIME_RUNS : RUNTIME_CANT;
	} else if (atomic_load(&flexsc__runtime.dormant)) {
		end_dormant();
	}
	return *state == RUNTIME_RUNS;
}
