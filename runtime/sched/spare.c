/* SPDX-License-Identifier: MIT */
#include "spare.h"

#include <pthread.h>

#include "lib/base/clock.h"
#include "lib/pool/own_thread.h"
#include "runtime/counters/counters.h"
#include "carrier.h"
#include "carriers.h"
#include "internal_thread.h"
#include "maker.h"
#include "state.h"

/* How long the maker waits after it failed to make a spare, in ns. */
#define RETRY_NS	10000000000U

static struct flexsc_options options;
static atomic_bool ends;	/* the maker has to end, and was woken */
static pthread_t maker;
static _Atomic bool has_maker;	/* the thread that clears this also ends the maker */
/* number of spares created since the carriers started */
static uint32_t made;
/* What the maker calls before it ends. Written before "ends" is set, read after. */
static void (*last)(void *);
static void *last_arg;
static _Atomic uint32_t last_done;	/* 1: done; the ending thread sleeps on it */

static bool one_is_ready(void)
{
	for (unsigned int i = 0; i < flexsc__runtime.count; i++)
		if (atomic_load(&flexsc__runtime.carriers[i].spare))
			return true;
	return false;
}

/* Create a spare. True also if there is no room for another one. */
static bool make_spare(void)
{
	char why[160];

	if (flexsc__runtime.count == flexsc__runtime.room)
		return true;
	if (flexsc__carrier_start(&options, why, sizeof(why)))
		return false;
	flexsc__counters_spares(++made);
	return true;
}

/* Sleep for good: a filter may forbid the calls that end a thread. */
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
	uint64_t retry_at = 0;	/* time of the next attempt; 0: at once */

	(void)arg;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	for (;;) {
		uint32_t before = flexsc__maker_woken();
		uint64_t now;

		flexsc__maker_make();
		if (atomic_load(&ends)) {
			if (!flexsc__maker_end())
				continue;
			if (last)
				maker_park();
			return NULL;
		}
		now = time_monotonic();
		if (now >= retry_at && !one_is_ready())
			retry_at = make_spare() ? 0 : now + RETRY_NS;
		flexsc__maker_sleep(before, retry_at ? RETRY_NS : UINT64_MAX);
	}
}

int flexsc__spares_start(const struct flexsc_options *same)
{
	int err;

	options = *same;
	made = one_is_ready();
	flexsc__counters_spares(made);
	err = -flexsc__internal_service(&maker, maker_main, NULL);
	has_maker = !err;
	if (!err)
		flexsc__maker_begin();
	return err;
}

void flexsc__spares_end(void)
{
	if (atomic_exchange(&has_maker, false)) {
		atomic_store(&ends, true);
		flexsc__maker_wake();
		flexsc__own_join(maker);
	}
	flexsc__spares_forget();
}

bool flexsc__spares_end_by(void (*run)(void *arg), void *arg)
{
	if (!atomic_exchange(&has_maker, false))
		return false;
	last = run;
	last_arg = arg;
	atomic_store(&ends, true);
	flexsc__maker_wake();
	while (!atomic_load(&last_done))
		futex_wait(&last_done, 0, UINT64_MAX);
	return true;
}

void flexsc__spares_forget(void)
{
	last = NULL;
	atomic_store(&last_done, 0);
	flexsc__maker_forget();
	atomic_store(&ends, false);
	has_maker = false;
	made = 0;
}
