// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two lists of accepting watches: "accepts", from which the owner has to
 * accept, and "starved", which found no free slot or descriptor. accept.c has
 * the states. Any context puts a watch on "accepts" when a connection arrives.
 * Only the owner returns it there after its round, or moves it to or from
 * "starved".
 */
#include "events/listener.h"
#include "events/watch.h"

/* Put an accepting watch on "accepts", and call the owner. Any context. */
void listener_enqueue(struct watch *listener)
{
	struct ecb *ecb = listener->ecb;

	if (test_and_set_bit(WATCH_ACCEPTS, &listener->lists))
		return;
	llist_add(&listener->accepts, &ecb->accepts);
	ecb_call(ecb);
}

/* Put an accepting watch on "accepts" again, because its round is over. */
void listener_put_back(struct watch *listener)
{
	if (!test_and_set_bit(WATCH_ACCEPTS, &listener->lists))
		llist_add(&listener->accepts, &listener->ecb->accepts);
}

/*
 * Make the owner retry the starved watches: a slot or a descriptor may be free
 * again. Any context.
 */
void listeners_retry(struct ecb *ecb)
{
	if (llist_empty(&ecb->starved))
		return;
	WRITE_ONCE(ecb->retry, true);
	ecb_call(ecb);
}

/* Move all starved watches back to "accepts". */
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
 * Move an accepting watch to "starved", because no slot or descriptor was
 * found. "frees" is the value that ecb.frees had before that attempt: if it has
 * changed, retry.
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
