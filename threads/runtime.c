/* SPDX-License-Identifier: MIT */
#include "runtime.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "run/carrier.h"
#include "base/clock.h"
#include "report/counters.h"
#include "lib/calls/fds.h"
#include "run/home.h"
#include "run/monitor.h"
#include "run/park.h"
#include "calls/polling.h"
#include "libc/real.h"
#include "signals/signals.h"
#include "libc/sites.h"
#include "run/stacks.h"
#include "calls/ufutex.h"
#include "libc/unpatched.h"
#include "run/wait.h"

bool flexsc__fsgsbase;
__thread struct uthread flexsc__self
	__attribute__((tls_model("initial-exec")));

#ifndef ARCH_SHSTK_STATUS
#define ARCH_SHSTK_STATUS	0x5005
#endif

/* How long the process's end waits for threads to come home, and looks. */
#define ENDS_NS		20000000U
#define ENDS_LOOK_NS	50000

enum state {
	STATE_NOT = 0,	/* the program has one thread, as far as is known */
	STATE_STARTS,
	STATE_RUNS,
	STATE_CANT,
};

static enum state state;
static long owner;	/* the process that it runs in */

/* All user threads, for whoever wants to see them. */
static struct lock all_lock;
static struct uthread *all;

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

/* A number that flexsc run has checked; 0: not set. */
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

/*
 * The kernel writes to the area of the thread that it runs, which is not the
 * one that the program looks at. Without an area, libc asks the kernel.
 */
static void drop_rseq(void)
{
	struct rseq *area = (struct rseq *)(context_fs() +
					    (uint64_t)__rseq_offset);

	if (!__rseq_size)
		return;
	if (!raw_syscall(SYS_rseq, PTR(area), 32, RSEQ_FLAG_UNREGISTER,
			 RSEQ_SIG, 0, 0))
		area->cpu_id = (uint32_t)RSEQ_CPU_ID_REGISTRATION_FAILED;
}

static void list_add(struct uthread *u)
{
	lock(&all_lock);
	u->all_prev = NULL;
	u->all_next = all;
	if (all)
		all->all_prev = u;
	all = u;
	u->listed = true;
	unlock(&all_lock);
}

static void list_remove(struct uthread *u)
{
	lock(&all_lock);
	if (u->all_prev)
		u->all_prev->all_next = u->all_next;
	else
		all = u->all_next;
	if (u->all_next)
		u->all_next->all_prev = u->all_prev;
	u->listed = false;
	unlock(&all_lock);
}

void flexsc__uthread_begin(struct uthread *u, void *stack, sigmask_t mask)
{
	memset(u, 0, sizeof(*u));
	drop_rseq();
	flexsc__home_init(u, stack, mask);
	/* A handler may want the list's lock. */
	flexsc__enter(u);
	list_add(u);
	u->alive = true;
	flexsc__exit(u);
}

void flexsc__uthread_end(struct uthread *u)
{
	/* In a child that its function forked. */
	if (!u->alive)
		return;
	flexsc__enter(u);
	u->cause = CAUSE_ENDS;
	flexsc__come_home(u);
	u->rooted = true;
	list_remove(u);
	flexsc__polling_end(u);
	/* Some carrier may be about to look at it. */
	while (atomic_load(&u->want.asked))
		raw_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	flexsc__home_fini(u);
	/* What came meanwhile was meant for the process, or for this one. */
	flexsc__exit(u);
}

void flexsc__runtime_hold(void)
{
	lock(&all_lock);
}

void flexsc__runtime_release(void)
{
	unlock(&all_lock);
}

struct uthread *flexsc__runtime_first(void)
{
	return all;
}

struct uthread *flexsc__uthread_of(pthread_t thread)
{
	/* It is at the same place in every thread's TLS. */
	ptrdiff_t offset = (char *)&flexsc__self - (char *)context_fs();
	struct uthread *u = (struct uthread *)((char *)thread + offset);

	/* Once it isn't listed, it may be gone before a carrier has looked. */
	return u->listed ? u : NULL;
}

/* Each context would need a shadow stack of its own. */
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

	flexsc__signal_forked();
	if (state != STATE_RUNS)
		return;
	/* First: with --deep what libc calls below arrives in the runtime. */
	u->alive = false;
	state = STATE_NOT;
	for (struct uthread *other = all; other; other = other->all_next)
		flexsc__polling_end(other);
	all = NULL;
	all_lock = (struct lock){ 0 };
	flexsc__carriers_forked();
	flexsc__counters_forked();
	flexsc__ufutex_forked();
	flexsc__park_forked();
	flexsc__stacks_forked();
	context_set_gs(NULL);
}

/* Ending. */

/*
 * The kernel closes an io_uring some milliseconds after its process is gone,
 * and with it the file that a request waits on. If that has a name that others
 * may want at once, a port, its thread waits at home instead.
 */

/* What it waits for may be over by now: then it comes home for nothing. */
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

/* Are there such, or some that have been called? */
static bool call_home(void)
{
	bool any = false;

	if (!lock_at_once(&all_lock))
		return true;
	for (struct uthread *u = all; u; u = u->all_next) {
		if (waits_for_others(u))
			flexsc__want(u);
		any |= atomic_load(&u->wanted) && u->home.away;
	}
	unlock(&all_lock);
	return any;
}

static void let_go(void)
{
	const struct timespec moment = { 0, ENDS_LOOK_NS };
	uint64_t until = time_now(CLOCK_MONOTONIC) + ENDS_NS;
	struct uthread *u = &flexsc__self;
	bool enters = u->alive && !u->busy;

	atomic_store(&flexsc__home_last, true);
	/* The caller's carrier may have some of them. */
	if (enters) {
		flexsc__enter(u);
		u->cause = CAUSE_ENDS;
		flexsc__come_home(u);
	}
	while (call_home() && time_now(CLOCK_MONOTONIC) < until)
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
 * The runtime's descriptors are the highest there may be: programs count on the
 * lowest, and select() on those below 1024.
 */
static void place_descriptors(uint32_t carriers)
{
	const int needed = 8 * (int)carriers + 16;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) &&
	    limit.rlim_cur > (rlim_t)(2 * needed))
		flexsc__fds_floor = (limit.rlim_cur < FDS_MAX ?
					     (int)limit.rlim_cur :
					     (int)FDS_MAX) - needed;
}

/* All of libc's places, or none: false. */
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

/* What it can't have all of it makes do with, and says so. */
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
	/* Without it, who computes would stop the others. */
	if (flexsc__monitor_start() < 0) {
		say("can't start", "monitor: Resource temporarily unavailable");
		return false;
	}
	owner = raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	flexsc__signal_init();
	/* It has seen the handlers of libc's and of the engine's. */
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
