/* SPDX-License-Identifier: MIT */
/*
 * Sticky user threads make some of their next waits on their host.
 *
 * Some waits need a kernel thread: select(), a System V semaphore, io_getevents(). A
 * user thread returns to its host for such a wait, and leaves it with its next posted
 * call. That takes two switches between kernel threads; natively, a wait takes at most
 * one. A wait in a library with system calls of its own, which the runtime can't
 * intercept, costs more: the carrier is blocked until the monitor's next check.
 *
 * So a user thread that returns for a wait only a few waits after the last return
 * becomes sticky: it makes its next waits on its host, whatever they are. The number of
 * these waits is the grant. Each grant is about twice as large as the one before. When
 * the grant is used up, the user thread leaves, to find out whether it still needs its
 * host so often.
 *
 * An event loop is a user thread whose waits are all for any of many descriptors or
 * requests: call_awaits_any() in calls/perform.h. It stays on its host until it posts a
 * call. Its calls between two waits don't wait, so a carrier would only cost one more
 * system call for each wait. A user thread that polls one descriptor isn't an event
 * loop, because the carrier's loop can wait for that descriptor on its behalf.
 *
 * A listener isn't an event loop either: it hands over the events that its waits
 * report, by waking a worker of a thread pool for each. On its host it would preempt
 * the carrier for each packet, and would have to wake the carrier's kernel thread for
 * each worker. These count as hand-overs:
 *
 *	the user thread wakes another one from a futex wait;
 *	it waits for a futex itself, such as the lock of the workers' queue: two switches
 *	of kernel threads on its host, none on a carrier;
 *	more than STICKY_BARREN_WAITS waits in a row without receiving or sending, which an
 *	event loop does between its waits: all workers are busy.
 *
 * These don't count, because the user thread is better off on its host, nor do the next
 * STICKY_IGNORED hand-overs after them:
 *
 *	a hand-over to a slow worker, whose last run was so long that the user thread would
 *	wait for it on a carrier, whereas the kernel lets the host preempt it;
 *	a hand-over after a wait that needs the host.
 *
 * A user thread becomes an event loop after "loop_needs" waits without a hand-over.
 * That is STICKY_LOOP_WAITS at first, and doubles up to STICKY_MOST_WAITS each time
 * that an event loop hands over after all.
 *
 * The user thread itself calls each function when it does what the function's comment
 * states; flexsc__sticky_stuck() in a signal's handler.
 */
#ifndef FLEXSC_RUNTIME_STICKY_H
#define FLEXSC_RUNTIME_STICKY_H

#include "count.h"
#include "state.h"
#include "uthread.h"

/*
 * A user thread becomes an event loop after this many waits in a row, each for any of
 * many descriptors, with no call posted between them.
 */
#define STICKY_LOOP_WAITS	4U
/* The maximum of loop_needs. */
#define STICKY_MOST_WAITS	256U
/*
 * After this many waits without receiving or sending, each further one counts as a
 * hand-over.
 */
#define STICKY_BARREN_WAITS	8U
/*
 * After a hand-over to a slow user thread, this many hand-overs don't count. Few,
 * because a pool may have a slow request among a hundred: the time that its listener
 * meanwhile wastes on its host is small compared with the slow request. If such
 * hand-overs continue, the number grows up to STICKY_MOST_IGNORED.
 */
#define STICKY_IGNORED		16U
#define STICKY_MOST_IGNORED	256U

/* The user thread is about to return to its host for a wait. */
void flexsc__sticky_wait(struct uthread *u);

/*
 * The user thread was in a wait that blocked its carrier, and the monitor's signal
 * calls it to its host. Called in the handler of that signal.
 */
void flexsc__sticky_stuck(struct uthread *u);

/* The user thread begins a wait away from its host. */
static inline void sticky_away(struct uthread *u)
{
	u->sticky.away++;
}

/*
 * The user thread makes a call that may wait for one descriptor, so it isn't an event loop
 * (any more), whether the call is posted or attempted first.
 */
static inline void sticky_posts(struct uthread *u)
{
	u->sticky.loop_waits = 0;
}

/* Ignore the user thread's next hand-overs, and let it make calls natively. */
static inline void sticky_ignore_hand_overs(struct uthread *u)
{
	if (u->sticky.ignored < STICKY_IGNORED)
		u->sticky.ignored = STICKY_IGNORED;
	u->natively = flexsc__runtime.loops;
}

/*
 * The user thread has woken others from futex waits. "slow" is the highest uthread.slow
 * of these.
 */
static inline void sticky_hands_over(struct uthread *u, uint8_t slow)
{
	if (!flexsc__runtime.loops)
		return;
	if (u->sticky.needs_host) {
		u->sticky.needs_host--;
		return;
	}
	if (slow) {
		if (slow == UTHREAD_SLOW && u->sticky.ignored <= STICKY_MOST_IGNORED / 2)
			u->sticky.ignored *= 2;
		sticky_ignore_hand_overs(u);
		u->sticky.loop_waits = u->sticky.loop_needs;
	} else if (u->sticky.ignored) {
		u->sticky.ignored--;
	} else {
		if (u->sticky.loop_waits == u->sticky.loop_needs) {
			COUNT_HERE(handovers, 1);
			if (u->sticky.loop_needs < STICKY_MOST_WAITS)
				u->sticky.loop_needs *= 2;
			/*
			 * The user thread isn't an event loop after all, so revoke its
			 * grant.
			 */
			u->sticky.left = 0;
			u->sticky.grant = 0;
		}
		u->sticky.loop_waits = 0;
		u->natively = false;
	}
}

/* The user thread is about to make a wait that only its host can make. */
static inline void sticky_needs_host(struct uthread *u)
{
	u->sticky.needs_host = STICKY_IGNORED;
	u->natively = flexsc__runtime.loops;
}

/* The user thread waits for a futex whose value is still the expected one. */
static inline void sticky_waits_for_others(struct uthread *u)
{
	if (u->natively)
		sticky_hands_over(u, 0);
}

/* The user thread receives or sends. */
static inline void sticky_transfers(struct uthread *u)
{
	u->sticky.barren = 0;
}

/* The user thread waits for any of many descriptors, or has done so natively. */
static inline void sticky_counts_barren(struct uthread *u)
{
	if (++u->sticky.barren > STICKY_BARREN_WAITS)
		sticky_hands_over(u, 0);
}

/* The user thread will wait for any of many descriptors. Is it an event loop now? */
static inline bool sticky_counts_loop_wait(struct uthread *u)
{
	sticky_counts_barren(u);
	if (u->sticky.loop_waits < u->sticky.loop_needs)
		u->sticky.loop_waits++;
	if (u->sticky.loop_waits < u->sticky.loop_needs)
		return false;
	u->natively = flexsc__runtime.loops;
	return u->natively;
}

/*
 * The user thread is about to wait for any of many descriptors. Should it wait on its
 * host, because it is there already, or is an event loop now? Counts the wait.
 * can_post: the carrier's loop could wait on its behalf.
 */
static inline bool sticky_loop_wait(struct uthread *u, bool can_post)
{
	if (!flexsc__runtime.loops)
		return false;
	if (can_post)
		u->sticky.needs_host = 0;
	return sticky_counts_loop_wait(u) ||
	       (on_host() && (u->natively || !can_post));
}

/* Use up one wait of the user thread's grant. False: nothing is left of the grant. */
static inline bool sticky_take(struct uthread *u)
{
	if (!u->sticky.left)
		return false;
	u->sticky.left--;
	return true;
}

#endif /* FLEXSC_RUNTIME_STICKY_H */
