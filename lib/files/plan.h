/* SPDX-License-Identifier: MIT */
/*
 * How a call on a descriptor waits, and whether io_uring may make it. Only this file
 * combines the table of calls (calls/call_info.h), the flags among a call's arguments,
 * the kind of its file (kinds.h), and other facts (fds.h). Engines and the runtime act
 * on the results. Any thread.
 */
#ifndef FLEXSC_PLAN_H
#define FLEXSC_PLAN_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

#include "fds.h"

/* How a call of CLASS_WAIT waits. */
enum waits {
	WAITS_POLLED,	/* until poll(2) reports the descriptor of argument 0 ready */
	WAITS_NEVER,	/* not at all, because of its file's kind */
	/*
	 * For a device such as a disk, or for another call that uses the file's
	 * position.
	 */
	WAITS_DEVICE,
	WAITS_UNKNOWN,	/* unknown kind of file: a thread has to wait */
	WAITS_OTHER,	/* for something that poll(2) doesn't report */
};

/* Facts that argument 0 must have before io_uring may make a call. */
enum plan_need {
	NEED_WAITS = FD_WAITS,
	NEED_SEEKS = FD_SEEKS,
	NEED_POLLS_IN = FD_POLLS_IN,
	NEED_POLLS_OUT = FD_POLLS_OUT,
};

/* How a call affects descriptors. */
enum plan_effect {
	EFFECT_CHANGES = 1 << 6,	/* flexsc__fds_note() has to be called before
					 * the call */
	EFFECT_CLOSES = 1 << 7,
};

/* One byte per system call: enum plan_need and enum plan_effect. */
extern uint8_t *flexsc__plan_uses;

/* Call it before all other functions here; it may be called again. 0 or -ENOMEM. */
int flexsc__plan_init(void);

/*
 * Called before an entry is executed: would io_uring have the same effect as the plain
 * call? Updates the facts of descriptors that the call changes.
 */
bool flexsc__plan_ask(const struct flexsc_entry *entry, uint8_t use);

static inline bool plan_admit(const struct flexsc_entry *entry)
{
	uint8_t use = flexsc__plan_uses[entry->nr];
	uint32_t fd = (uint32_t)entry->args[0];

	if (use == EFFECT_CLOSES)
		return fds_forget_closed(fd);
	if (!use ||
	    (fd < FDS_MAX &&
	     (atomic_load_explicit(&flexsc__fds_facts[fd],
				   memory_order_relaxed) & use) == use))
		return true;
	return flexsc__plan_ask(entry, use);
}

/*
 * Called before a call that io_uring doesn't make: update the facts of descriptors that
 * it changes. False: the call shuts a socket down, or closes a descriptor that calls may
 * be waiting for: see files/closing.h.
 */
static inline bool plan_follow(const struct flexsc_entry *entry)
{
	return !(flexsc__plan_uses[entry->nr] &
		 (EFFECT_CLOSES | EFFECT_CHANGES)) ||
	       plan_admit(entry);
}

/*
 * Returns how the call waits, as its arguments and the kind of its file determine. A
 * call on a bad descriptor is WAITS_POLLED, as each engine returns -EBADF. O_NONBLOCK
 * and socket options aren't considered.
 */
enum waits flexsc__plan_waits(const struct call_info *row,
			      const struct flexsc_entry *entry);

/* Does the call read or write at the file's position? */
bool flexsc__plan_at_position(const struct call_info *row, const __u64 *args);

/*
 * Is the call a receive that waits for all bytes (MSG_WAITALL on a byte stream)? Other
 * sockets return one record, or reject the flag at once.
 */
bool flexsc__plan_wants_all(const struct call_info *row, const __u64 *args);

#endif /* FLEXSC_PLAN_H */
