/* SPDX-License-Identifier: MIT */
#include "adopt.h"

#include "closings.h"

#include <stdlib.h>

#include "lib/loop/loop.h"
#include "lib/run/handover.h"
#include "runtime/base/sigset.h"
#include "count.h"
#include "inbox.h"
#include "maker.h"
#include "moved.h"
#include "poll_first.h"
#include "proc.h"
#include "retire.h"
#include "state.h"
#include "uthreads.h"

/* How long a ward sleeps before it requests its loop from its heir again, in ns. */
#define LEAVING_NS	2000000U

static bool adopt_goes(struct carrier *c, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong(&c->adopt, &from, to);
}

/* Monitor. */

/*
 * Is the thread in an uninterruptible wait, with the monitor's signal pending and not
 * blocked? In /proc/TID/status, the state precedes the signals. So if the thread
 * continues after the kernel has read the state, the signal is no longer pending.
 */
static bool is_held(const struct carrier *c)
{
	struct status_value values[] = { { .name = "State:" },
					 { .name = "SigPnd:" },
					 { .name = "SigBlk:" } };

	flexsc__proc_status(c, values, 3);
	return *values[0].text == 'D' && strtoull(values[1].text, NULL, 16) &
		       ~strtoull(values[2].text, NULL, 16) &
		       SIGNAL_BIT(SIGNAL_SETXID);
}

/*
 * Does the carrier run a user thread that is outside the runtime? That user thread may
 * end at any moment, but its memory stays while the list of user threads is locked. The
 * monitor doesn't wait for the list's lock, because a blocked host may have it.
 */
static bool runs_program(const struct carrier *c)
{
	const struct uthread *u;
	bool runs;

	if (!flexsc__uthreads_trylock())
		return false;
	u = __atomic_load_n(&c->k.current, __ATOMIC_ACQUIRE);
	runs = u && !__atomic_load_n(&u->busy, __ATOMIC_ACQUIRE);
	flexsc__uthreads_unlock();
	return runs;
}

static bool adopt_is_stuck(struct carrier *c)
{
	if (!atomic_load(&c->called) || !flexsc__handover_possible(c->loop))
		return false;
	/* D3 */
	atomic_store(&c->adopt, ADOPT_CHECKED);
	if (is_held(c) && runs_program(c))
		return adopt_goes(c, ADOPT_CHECKED, ADOPT_REQUESTED);
	adopt_goes(c, ADOPT_CHECKED, ADOPT_NOT);
	return false;
}

/*
 * Can s adopt c? A ward can adopt only its heir, and only while the ward waits for the
 * heir to return the ward's loop.
 */
static bool can_adopt(struct carrier *s, struct carrier *c)
{
	uint32_t state = atomic_load(&s->adopt);

	return s != c && !atomic_load(&s->attend) &&
	       !atomic_load(&s->to_adopt) && !atomic_load(&s->called) &&
	       (state == ADOPT_NOT ||
		(state == ADOPT_LEAVES && atomic_load(&s->heir) == c));
}

/* Find an heir: preferably a spare, then a carrier that sleeps, then any carrier. */
static struct carrier *find_heir(struct carrier *c)
{
	struct carrier *best = NULL;
	int merit = -1;

	for (unsigned int i = 0; i < flexsc__runtime.count; i++) {
		struct carrier *s = &flexsc__runtime.carriers[i];
		int is = 2 * atomic_load(&s->spare) + atomic_load(&s->idle);

		if (is > merit && can_adopt(s, c)) {
			best = s;
			merit = is;
		}
	}
	return best;
}

static void request_heir(struct carrier *c)
{
	struct carrier *heir = find_heir(c), *none = NULL;

	if (heir && atomic_compare_exchange_strong(&heir->to_adopt, &none, c))
		carrier_request_attention(heir);
}

bool flexsc__adopt_look(struct carrier *c)
{
	if (atomic_load(&c->adopt) == ADOPT_NOT && !adopt_is_stuck(c))
		return false;
	/* Request another heir at each check: the previous one may be stuck itself. */
	if (atomic_load(&c->adopt) == ADOPT_REQUESTED)
		request_heir(c);
	return atomic_load(&c->adopt) != ADOPT_NOT;
}

/* Handler. */

void flexsc__adopt_gate(struct carrier *c)
{
	if (atomic_load(&c->adopt) == ADOPT_NOT ||
	    adopt_goes(c, ADOPT_CHECKED, ADOPT_NOT) ||
	    adopt_goes(c, ADOPT_REQUESTED, ADOPT_NOT))
		return;
	while (atomic_load(&c->adopt) == ADOPT_TAKEN)
		futex_wait(&c->adopt, ADOPT_TAKEN, UINT64_MAX);
	if (carrier_is_ward(c))
		atomic_store(&c->attend, true);
}

/* Heir. */

/*
 * Number of carriers that no longer run user threads because they got stuck, and their
 * heirs were no spares. This many stuck carriers run user threads again when they are
 * back; the others become spares.
 */
static _Atomic int missing;

static void let_go(struct carrier *ward)
{
	RULE(atomic_load(&ward->adopt) == ADOPT_LEAVES);
	ward->next_ward = NULL;
	flexsc__handover_end(ward->loop, ward->thread);
	atomic_store(&ward->heir, NULL);
	atomic_store(&ward->adopt, ADOPT_NOT);
	futex_wake(&ward->adopt);
}

void flexsc__adopt_serve(struct carrier *c)
{
	struct carrier **link = &c->wards, *ward;

	while ((ward = *link)) {
		flexsc__handover_results(ward->loop);
		if (atomic_load(&ward->adopt) == ADOPT_LEAVES) {
			*link = ward->next_ward;
			let_go(ward);
		} else {
			link = &ward->next_ward;
		}
	}
}

static void unlink_ward(struct carrier *heir, const struct carrier *ward)
{
	struct carrier **link = &heir->wards;

	while (*link != ward)
		link = &(*link)->next_ward;
	*link = ward->next_ward;
}

static void take_loop_back(struct carrier *c)
{
	flexsc__handover_revoke(c->loop);
	flexsc__moved_back(c);
}

/*
 * Prepare s before it adopts c. If s is a spare, it stops being one. waits: s is a ward
 * of c and waits for c to return s's loop. c may have returned that loop just before c
 * got stuck.
 */
static void step_in(struct carrier *s, struct carrier *c, bool waits)
{
	bool spare = true;

	if (waits) {
		if (atomic_load(&s->adopt) == ADOPT_LEAVES) {
			unlink_ward(c, s);
			let_go(s);
		}
		take_loop_back(s);
	} else if (atomic_compare_exchange_strong(&s->spare, &spare, false)) {
		flexsc__maker_wake();
	} else {
		atomic_fetch_add(&missing, 1);
	}
}

static void take(struct carrier *s, struct carrier *c)
{
	flexsc__handover_begin(c->loop, s->loop);
	/* D1 */
	atomic_store(&c->heir, s);
}

static void take_wards(struct carrier *s, struct carrier *c)
{
	struct carrier **link = &c->wards;

	for (; *link; link = &(*link)->next_ward)
		take(s, *link);
	*link = s->wards;
	s->wards = c->wards;
	c->wards = NULL;
}

static bool adopt(struct carrier *s, struct carrier *c, bool waits)
{
	if (!adopt_goes(c, ADOPT_REQUESTED, ADOPT_TAKEN))
		return false;
	/*
	 * From now on more than one carrier uses queues, so queues need locks. At this
	 * moment c uses none without a lock, because c's user thread is outside the
	 * runtime.
	 */
	flexsc__runtime.alone = false;
	step_in(s, c, waits);
	take(s, c);
	take_wards(s, c);
	flexsc__handover_results(c->loop);
	flexsc__closings_heir_begins();
	flexsc__moved_take(s, c);
	flexsc__runqueue_take_over(s, c);
	flexsc__inbox_forward(c);
	c->next_ward = s->wards;
	s->wards = c;
	COUNT_CARRIER(s, adoptions, 1);
	atomic_store(&c->adopt, ADOPT_DONE);
	futex_wake(&c->adopt);
	flexsc_loop_submit(s->loop);
	flexsc__closings_heir_ends();
	return true;
}

/* The carrier is back. */

/* Does a carrier that is back run user threads again? If not, it becomes a spare. */
static bool is_missing(void)
{
	int n = atomic_load(&missing);

	while (n > 0)
		if (atomic_compare_exchange_weak(&missing, &n, n - 1))
			return true;
	return false;
}

/*
 * Wait until the heir has returned c's loop. False: the heir is stuck itself, and c has
 * adopted it.
 */
static bool get_loop_back(struct carrier *c)
{
	while (atomic_load(&c->adopt) == ADOPT_LEAVES) {
		struct carrier *heir = atomic_load(&c->heir), *ward;

		flexsc__carrier_retire(c);
		if (heir)
			flexsc_loop_wake(heir->loop, NULL);
		futex_wait(&c->adopt, ADOPT_LEAVES, LEAVING_NS);
		ward = atomic_exchange(&c->to_adopt, NULL);
		/*
		 * While c waits for its loop, c can adopt its heir only. The monitor
		 * finds another heir for other carriers.
		 */
		if (ward && ward == atomic_load(&c->heir) &&
		    adopt(c, ward, true))
			return false;
	}
	return true;
}

static void come_back(struct carrier *c)
{
	atomic_store(&c->adopt, ADOPT_LEAVES);
	if (!get_loop_back(c))
		return;
	take_loop_back(c);
	if (!is_missing())
		atomic_store(&c->spare, true);
}

void flexsc__adopt_attend(struct carrier *c)
{
	struct carrier *ward;

	RULE(kthread_self() == &c->k && !c->k.current);
	atomic_store(&c->attend, false);
	ward = atomic_exchange(&c->to_adopt, NULL);
	if (flexsc__carrier_retire(c))
		return;
	if (carrier_is_ward(c))
		come_back(c);
	if (ward)
		adopt(c, ward, false);
}

void flexsc__adopt_forget(void)
{
	atomic_store(&missing, 0);
	atomic_store(&flexsc__poll_first_stuck, 0);
	atomic_store(&flexsc__closings_heirs, 0);
}
