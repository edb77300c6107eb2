/* SPDX-License-Identifier: MIT */
#include "monitor.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "carrier.h"
#include "../base/clock.h"
#include "../report/counters.h"
#include "lib/calls/fds.h"
#include "../libc/real.h"
#include "../signals/signals.h"

/* Some 40 us, and 0.2 ms. */
#define FOUND_TICKS	100000U
#define LONG_TICKS	500000U
#define TRIES		5
/* The clock that counts what a thread has run, as the kernel numbers them. */
#define CLOCK_OF(tid)	((clockid_t)(~(uint32_t)(tid) << 3 | 6))

_Atomic uint32_t flexsc__monitor_asleep;
pthread_t flexsc__monitor;

void flexsc__monitor_wake(void)
{
	atomic_store(&flexsc__monitor_asleep, 0);
	futex_wake(&flexsc__monitor_asleep);
}

static bool all_idle(void)
{
	for (unsigned int i = 0; i < flexsc__carriers_count; i++)
		if (!atomic_load(&flexsc__carriers[i].idle))
			return false;
	return true;
}

int flexsc__monitor_open(int32_t tid, const char *name)
{
	char path[64];

	/* The program's numbers are few then, and it may use any. */
	if (!flexsc__fds_floor)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	return flexsc__fds_own(open(path, O_RDONLY | O_CLOEXEC));
}

/*
 * The call that c's kernel thread waits in; not all are begun again. True: it
 * waits in none, it runs, or would if it had a processor.
 */
static bool note_call(struct carrier *c)
{
	struct stuck stuck = { .nr = -1 };
	char text[256], *at = text;
	long n = raw_syscall(SYS_pread64, (uint64_t)c->stuck_fd, PTR(text),
			     sizeof(text) - 1, 0, 0, 0);

	text[n > 0 ? n : 0] = 0;
	if (*at >= '0' && *at <= '9') {
		stuck.nr = strtol(at, &at, 10);
		for (unsigned int i = 0; i < 6; i++)
			stuck.args[i] = strtoul(at, &at, 16);
		stuck.sp = strtoul(at, &at, 16);
		stuck.pc = strtoul(at, &at, 16);
	}
	c->stuck = stuck;
	return *text == 'r';
}

static struct progress progress_of(const struct carrier *c)
{
	static const char name[] = "\nvoluntary_ctxt_switches:";
	struct progress now = { 0 };
	char text[4096];
	const char *at;
	long n = raw_syscall(SYS_pread64, (uint64_t)c->status_fd, PTR(text),
			     sizeof(text) - 1, 0, 0, 0);

	text[n > 0 ? n : 0] = 0;
	at = strstr(text, name);
	if (at)
		now.waits = strtoul(at + sizeof(name) - 1, NULL, 10);
	now.ran = time_now(CLOCK_OF(c->k.tid));
	return now;
}

/*
 * It runs, or would if it had a processor. If it has run since the last look
 * without waiting, it is in no call that it has waited in: such a call may be
 * over but for a processor, and would fail yet.
 */
static bool has_run_only(const struct progress *before,
			 const struct progress *now)
{
	return now->waits == before->waits && now->ran != before->ran;
}

enum found {
	FOUND_NEITHER = 0,
	FOUND_WAITING,
	FOUND_RUNNING,
};

static enum found find(struct carrier *c, const struct progress *before)
{
	if (!note_call(c))
		return FOUND_WAITING;
	c->progress = progress_of(c);
	return has_run_only(before, &c->progress) ? FOUND_RUNNING :
						    FOUND_NEITHER;
}

/*
 * It is as it was found, if little time has passed in between: the monitor may
 * lose its processor there, and the thread go on to another call.
 */
static enum found find_now(struct carrier *c)
{
	const struct progress before = c->progress;
	enum found found;
	uint64_t begin;
	int tries = 0;

	do {
		begin = context_ticks();
		found = find(c, &before);
	} while (found != FOUND_NEITHER &&
		 context_ticks() - begin > FOUND_TICKS && ++tries < TRIES);
	return found;
}

/* Who seems to run gets its signal between two calls, if that is soon enough. */
static bool call_home_gently(struct carrier *c, uint64_t switches)
{
	if (c->timed == switches)
		return false;
	c->timed = switches;
	return flexsc__signal_running(c);
}

static void call_home(struct carrier *c, uint64_t switches)
{
	/* T1: who gets the last signal has read what was noted; pairs with T2. */
	if (atomic_load(&c->called))
		return;
	atomic_store(&c->preempt, switches);
	switch (find_now(c)) {
	case FOUND_NEITHER:
		call_home_gently(c, switches);
		break;
	case FOUND_WAITING:
		flexsc__signal_stuck(c);
		break;
	case FOUND_RUNNING:
		if (!call_home_gently(c, switches))
			flexsc__signal_carrier(c);
		break;
	}
}

/* It may be called home by the next look, which sees what it has done since. */
static bool runs_for_long(const struct carrier *c)
{
	uint64_t began = __atomic_load_n(&c->began, __ATOMIC_RELAXED);

	return context_ticks() - began > LONG_TICKS;
}

static void look(struct carrier *c)
{
	uint64_t switches = __atomic_load_n(&c->k.counters->switches,
					    __ATOMIC_RELAXED);
	bool runs = __atomic_load_n(&c->k.current, __ATOMIC_RELAXED);

	if (switches == c->switches_seen) {
		if (runs)
			call_home(c, switches);
		/* It may be in a call that no signal interrupts. */
		flexsc__carrier_relieve(c);
	} else if (runs && runs_for_long(c)) {
		c->progress = progress_of(c);
	}
	c->switches_seen = switches;
}

static void sleep_until_noticed(void)
{
	/* M2: then looks once more; a carrier does it the other way round. */
	atomic_store(&flexsc__monitor_asleep, 1);
	if (all_idle())
		futex_wait(&flexsc__monitor_asleep, 1, UINT64_MAX);
	atomic_store(&flexsc__monitor_asleep, 0);
}

static void *monitor_main(void *arg)
{
	_Atomic uint32_t nobody = 0;

	(void)arg;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	for (;;) {
		futex_wait(&nobody, 0, MONITOR_NS);
		if (all_idle())
			sleep_until_noticed();
		for (unsigned int i = 0; i < flexsc__carriers_count; i++)
			look(&flexsc__carriers[i]);
	}
	return NULL;
}

int flexsc__monitor_start(void)
{
	return -flexsc__carrier_thread(&flexsc__monitor, monitor_main, NULL);
}
