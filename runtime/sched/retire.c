/* SPDX-License-Identifier: MIT */
#include "retire.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/engine/engine.h"
#include "carrier.h"
#include "proc.h"
#include "state.h"

/*
 * A carrier that stays blocked for RETIRE_NS is in a call that hangs, and can't retire.
 * RETIRE_MOST_NS limits the wait on a busy machine.
 */
#define RETIRE_NS	1000000000U
#define RETIRE_MOST_NS	30000000000U

/* Whether and how carriers have to retire. */
enum retiring {
	RETIRING_NOT = 0,
	RETIRING_NOW,	/* the necessary calls are permitted */
	RETIRING_LATE,	/* a filter may forbid these calls by now */
};

static _Atomic uint32_t retiring;	/* enum retiring */

/*
 * Sleep for good. c was stuck until now, so its heir may use its loop. If c entered its
 * io_uring, the kernel would execute requests of calls that were made again elsewhere.
 * A filter may also forbid c to enter it by now.
 */
static _Noreturn void park(struct carrier *c)
{
	atomic_store(&c->retired, 1);
	futex_wake(&c->retired);
	for (;;)
		futex_wait(&c->retired, 1, UINT64_MAX);
}

bool flexsc__carrier_retire(struct carrier *c)
{
	const uint32_t how = atomic_load(&retiring);

	if (how == RETIRING_NOT || atomic_load(&c->retired))
		return how != RETIRING_NOT;
	/* Don't test "heir", which is NULL already while the heir returns the loop. */
	if (how == RETIRING_LATE || atomic_load(&c->adopt) != ADOPT_NOT)
		park(c);
	flexsc__engine_retire(c->loop);
	for (; c->wards; c->wards = c->wards->next_ward)
		flexsc__engine_retire_ward(c->wards->loop);
	atomic_store(&c->retired, 1);
	futex_wake(&c->retired);
	return true;
}

/*
 * Has the carrier been blocked without a break since the last call of this function?
 * c->progress is free for this use, because the monitor has ended.
 */
static bool is_still_blocked(struct carrier *c)
{
	struct status_value values[] = { { .name = "State:" },
					 { .name = "voluntary_ctxt_switches:" } };
	const uint64_t before = c->progress.waits;

	flexsc__proc_status(c, values, 2);
	c->progress.waits = strtoul(values[1].text, NULL, 10);
	return *values[0].text != 'R' && c->progress.waits == before;
}

static bool is_retired(const struct carrier *c)
{
	return atomic_load(&c->retired) || carrier_is_ward(c);
}

/* Is any carrier neither retired nor in a call that hangs? */
static bool any_may_retire(void)
{
	bool any = false;

	for (unsigned int i = 0; i < flexsc__runtime.count; i++) {
		struct carrier *c = &flexsc__runtime.carriers[i];

		any |= !is_retired(c) && !is_still_blocked(c);
	}
	return any;
}

static void wait_until_retired(struct carrier *c, uint64_t until)
{
	uint64_t now;

	while (!is_retired(c) && (now = time_monotonic()) < until)
		futex_wait(&c->retired, 0, until - now);
}

void flexsc__carriers_retire(void)
{
	const uint64_t most = time_monotonic() + RETIRE_MOST_NS;
	struct carrier *all = flexsc__runtime.carriers;
	const unsigned int n = flexsc__runtime.count;
	uint64_t until;

	atomic_store(&retiring, RETIRING_NOW);
	for (unsigned int i = 0; i < n; i++)
		carrier_request_attention(&all[i]);
	/*
	 * Wait for carriers that only lack a processor. They would make their next
	 * calls later, when the filter may forbid them and end the process. Only
	 * carriers that hang are left behind.
	 */
	any_may_retire();
	do {
		until = time_monotonic() + RETIRE_NS;
		for (unsigned int i = 0; i < n; i++)
			wait_until_retired(&all[i], until);
	} while (any_may_retire() && until < most);
	atomic_store(&retiring, RETIRING_LATE);
}

void flexsc__retire_forget(void)
{
	atomic_store(&retiring, RETIRING_NOT);
}
