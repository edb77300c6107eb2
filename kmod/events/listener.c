// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lists of listeners: which have to accept, and which could not. accept.c has the
 * states. Only the owner puts listeners back, requeues them, and makes them starve.
 */
#include "events/listener.h"
#include "events/watch.h"

/* Have the owner accept. Any context. */
void listener_enqueue(struct watch *listener)
{
	struct ecb *ecb = listener->ecb;

	if (test_and_set_bit(WATCH_ACCEPTS, &listener->lists))
		return;
	llist_add(&listener->accepts, &ecb->accepts);
	ecb_call(ecb);
}

/* The owner's turn is over: have the listener accept in another one. */
void listener_put_back(struct watch *listener)
{
	if (!test_and_set_bit(WATCH_ACCEPTS, &listener->lists))
		llist_add(&listener->accepts, &listener->ecb->accepts);
}

/* A slot or a descriptor may be free again. Any context. */
void listeners_retry(struct ecb *ecb)
{
	if (llist_empty(&ecb->starved))
		return;
	WRITE_ONCE(ecb->retry, true);
	ecb_call(ecb);
}

/* The owner accepts again from listeners that starved. */
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

/* "frees": ecb.frees, as it was when there was no slot or no descriptor. */
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
