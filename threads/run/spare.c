/* SPDX-License-Identifier: MIT */
#include "spare.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../report/counters.h"
#include "births.h"
#include "carrier.h"
#include "lib/base/clock.h"
#include "lib/pool/own_thread.h"
#include "own_thread.h"
#include "state.h"

/* How long the maker waits after it failed to make a spare, in ns. */
#define AGAIN_NS	10000000000U

static struct flexsc_options options;
static atomic_bool ends;	/* the maker is to end; births.h wakes it then */
static pthread_t maker;
static _Atomic bool has_maker;	/* whoever clears it joins the maker */
static uint32_t made;		/* spares, since the carriers started */
/* What the maker does last. Written before "ends" is set, and read after that. */
static void (*last)(void *);
static void *last_arg;
static _Atomic uint32_t last_done;	/* 1: it has; the ending thread sleeps on it */

static bool one_is_ready(void)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		if (atomic_load(&flexsc__runtime.carriers[i].spare))
			return true;
	return false;
}

/* Returns 0 or -errno. 0 also when there is no room for more. */
static int make_spare(char *why, size_t size)
{
	int err;

	if (flexsc__runtime.count == flexsc__runtime.room)
		return 0;
	err = flexsc__carrier_start(&options, true, why, size);
	if (!err)
		flexsc__counters_spares(++made);
	return err;
}

/* The maker sleeps for good: to end takes calls that a filter may forbid by then. */
static _Noreturn void maker_park(void)
{
	last(last_arg);
	atomic_store(&last_done, 1);
	futex_wake(&last_done);
	for (;;)
		futex_wait(&last_done, 1, UINT64_MAX);
}

static void *maker_main(void *arg)
{
	uint64_t again = 0;	/* when to try again; 0: at once */
	char why[160];

	(void)arg;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	for (;;) {
		uint32_t before = flexsc__maker_woken();
		uint64_t now;

		flexsc__births_make();
		if (atomic_load(&ends)) {
			if (!flexsc__births_end())
				continue;
			if (last)
				maker_park();
			return NULL;
		}
		now = time_monotonic();
		if (now >= again && !one_is_ready())
			again = make_spare(why, sizeof(why)) ? now + AGAIN_NS : 0;
		flexsc__maker_sleep(before, again ? AGAIN_NS : UINT64_MAX);
	}
}

int flexsc__spares_start(const struct flexsc_options *same, char *why,
			 size_t size)
{
	int first, err;

	options = *same;
	first = make_spare(why, size);
	err = -flexsc__own_service(&maker, maker_main, NULL);
	has_maker = !err;
	if (!err)
		flexsc__births_begin();
	if (err && !first)
		snprintf(why, size, "%s", strerror(-err));
	return first ? first : err;
}

void flexsc__spare_used(void)
{
	flexsc__maker_wake();
}

void flexsc__spares_end(void)
{
	if (!atomic_exchange(&has_maker, false))
		return;
	atomic_store(&ends, true);
	flexsc__maker_wake();
	flexsc__own_join(maker);
}

bool flexsc__spares_end_by(void (*run)(void *arg), void *arg)
{
	if (!atomic_exchange(&has_maker, false))
		return false;
	last = run;
	last_arg = arg;
	atomic_store(&ends, true);
	flexsc__spare_used();
	while (!atomic_load(&last_done))
		futex_wait(&last_done, 0, UINT64_MAX);
	return true;
}

void flexsc__spares_forget(void)
{
	last = NULL;
	atomic_store(&last_done, 0);
	flexsc__births_forget();
	atomic_store(&ends, false);
	has_maker = false;
	made = 0;
}
