/* SPDX-License-Identifier: MIT */
/*
 * The life cycle of an entry (drawn in <linux/flexsc.h>), with one function per
 * transition. No other file writes an entry's status. Only the loop's owner runs the
 * user side. The thread that executes the entry runs the engine side: a syscall thread,
 * or the owner for calls that it makes inline or through io_uring. U1..U3 and E1..E3
 * are the numbers used in <linux/flexsc.h>. Builds with -Dchecks check the state at the
 * start of each transition.
 *
 * The entry of a direct call stays FREE. Its life cycle begins only if the shadow is
 * filled (direct.h).
 */
#ifndef FLEXSC_ENTRY_H
#define FLEXSC_ENTRY_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/checks.h"

static inline uint8_t entry_status(const struct flexsc_entry *entry)
{
	/* U2: acquires the result that E2 published. */
	return __atomic_load_n(&entry->status, __ATOMIC_ACQUIRE);
}

static inline bool entry_swap(struct flexsc_entry *entry, uint8_t from,
			      uint8_t to)
{
	return __atomic_compare_exchange_n(&entry->status, &from, to, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Is the entry in one of these states? */
#define ENTRY_IN(entry, statuses)	(1U << entry_status(entry) & (statuses))
#define AT(status)			(1U << FLEXSC_##status)

/* The user side. */

/* FREE -> SUBMITTED, after the arguments are stored. */
static inline void entry_submit(struct flexsc_entry *entry)
{
	RULE(ENTRY_IN(entry, AT(FREE)));
	/* U1: publishes the arguments; pairs with E1. */
	__atomic_store_n(&entry->status, FLEXSC_SUBMITTED, __ATOMIC_RELEASE);
}

/* DONE -> SUBMITTED: the kernel returned the entry before its call was complete. */
static inline void entry_submit_again(struct flexsc_entry *entry)
{
	RULE(ENTRY_IN(entry, AT(DONE)));
	/* Publishes the remaining arguments, as U1 does; pairs with E1. */
	__atomic_store_n(&entry->status, FLEXSC_SUBMITTED, __ATOMIC_RELEASE);
}

/*
 * SUBMITTED or CANCEL -> DONE. The caller guarantees that no engine has begun the
 * entry, and none will.
 */
static inline void entry_refuse(struct flexsc_entry *entry, int64_t ret)
{
	RULE(ENTRY_IN(entry, AT(SUBMITTED) | AT(CANCEL)));
	entry->ret = ret;
	__atomic_store_n(&entry->status, FLEXSC_DONE, __ATOMIC_RELEASE);
}

/* SUBMITTED -> CANCEL; false if a thread has begun the entry. */
static inline bool entry_cancel_submitted(struct flexsc_entry *entry)
{
	return entry_swap(entry, FLEXSC_SUBMITTED, FLEXSC_CANCEL);
}

/* BUSY -> CANCEL; false if the entry is done, or not begun. */
static inline bool entry_cancel_busy(struct flexsc_entry *entry)
{
	return entry_swap(entry, FLEXSC_BUSY, FLEXSC_CANCEL);
}

/* DONE -> FREE, after the result was consumed. */
static inline void entry_free(struct flexsc_entry *entry)
{
	RULE(ENTRY_IN(entry, AT(DONE)));
	__atomic_store_n(&entry->status, FLEXSC_FREE, __ATOMIC_RELAXED);
}

/* U3: takes all completions, newest first; acquires what E3 released. */
static inline uint32_t completions_take(struct flexsc_completions *queue)
{
	if (__atomic_load_n(&queue->head, __ATOMIC_RELAXED) == FLEXSC_NO_ENTRY)
		return FLEXSC_NO_ENTRY;
	return __atomic_exchange_n(&queue->head, FLEXSC_NO_ENTRY,
				   __ATOMIC_ACQUIRE);
}

/* The engine side. */

/* SUBMITTED -> BUSY; false if the owner cancelled it first. */
static inline bool entry_begin(struct flexsc_entry *entry)
{
	/* E1: acquires the arguments that U1 published. */
	return entry_swap(entry, FLEXSC_SUBMITTED, FLEXSC_BUSY);
}

/*
 * SUBMITTED -> BUSY, if the owner itself executes an entry that it saw as SUBMITTED. A
 * plain store suffices, because no other thread competes for the entry; an atomic
 * read-modify-write would cost more than the rest of a call.
 */
static inline void entry_begin_alone(struct flexsc_entry *entry)
{
	RULE(ENTRY_IN(entry, AT(SUBMITTED)));
	__atomic_store_n(&entry->status, FLEXSC_BUSY, __ATOMIC_RELAXED);
}

/* BUSY or CANCEL -> DONE. */
static inline void entry_finish(struct flexsc_entry *entry, int64_t ret)
{
	RULE(ENTRY_IN(entry, AT(BUSY) | AT(CANCEL)));
	entry->ret = ret;
	/* E2: publishes ret and what the call wrote; pairs with U2. */
	__atomic_store_n(&entry->status, FLEXSC_DONE, __ATOMIC_RELEASE);
}

/* E3: passes the entry to the owner; pairs with U3. */
static inline void completions_push(struct flexsc_completions *queue,
				    struct flexsc_entry *entry, uint32_t index)
{
	uint32_t head = __atomic_load_n(&queue->head, __ATOMIC_RELAXED);

	do {
		entry->link = head;
		/*
		 * Sequentially consistent, because the protocol in loop_notify()
		 * requires more than a release.
		 */
	} while (!__atomic_compare_exchange_n(&queue->head, &head, index, true,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
}

#endif /* FLEXSC_ENTRY_H */
