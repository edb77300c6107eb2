// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two lists of listeners: those that have to accept, and those that couldn't.
 * accept.c has the states. Only the owner puts listeners back, requeues them,
 * or moves them to "starved".
 */
#include "events/listener.h"
#include "events/watch.h"

/* Enqueue a listener for the owner to accept from. Any context. */
void listener_enqueue(struct watch *listener)
{
	struct ecb *ecb = listener->ecb;

	if (test_and_set_bit(WATCH_ACCEPTS, &listener->lists))
		return;
	llist_add(&listener->accepts, &ecb->accepts);
	ecb_call(ecb);
}

/* Enqueue a listener again, because the owner's turn is over. */
void listener_put_back(struct watch *listener)
{
	if (!test_and_set_bit(WATCH_ACCEPTS, &listener->lists))
		llist_add(&listener->accepts, &listener->ecb->accepts);
}

/*
 * Retry starved listeners: a slot or a descriptor may be free again. Any
 * context.
 */
void listeners_retry(struct ecb *ecb)
{
	if (llist_empty(&ecb->starved))
		return;
	WRITE_ONCE(ecb->retry, true);
	ecb_call(ecb);
}

/* Move all starved listeners back to "accepts". */
void listeners_requeue(struct ecb *ecb)
{
	struct watch *listener, *next;

	/* A full barrier. Pairs with listeners_retry(). */
	if (!xchg(&ecb->retry, false))
		return;
	llist_for_each_entry_safe(listener, next, llist_del_all(&ecb->starved),
				  accepts) {
		llist_add(&listener->accepts, &ecb->accepts);
		cond_resched();
	}
}

/*
 * Move a listener to "starved". "frees" is the value of ecb.frees from when no
 * slot or descriptor was free.
 */
void listener_starve(struct watch *listener, u32 frees)
{
	struct ecb *ecb = listener->ecb;

	if (!test_and_set_bit(WATCH_ACCEPTS, &listener->lists))
		llist_add(&listener->accepts, &ecb->starved);
	/* A full barrier. Pairs with watch_put(). */
	smp_mb();
	if (READ_ONCE(ecb->frees) != frees)
		listeners_retry(ecb);
}
