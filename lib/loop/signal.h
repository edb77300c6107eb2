/* SPDX-License-Identifier: MIT */
/* Signals as callbacks. Owner only, except for the signal handler itself. */
#ifndef FLEXSC_SIGNAL_H
#define FLEXSC_SIGNAL_H

#include <flexsc/flexsc.h>
#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;

/* A cb that waits for a signal. */
struct signal_wait {
	struct signal_wait *next;
	struct flexsc_cb *cb;
	int signo;
};

/* Returns the address of the link that points to the cb's wait, or NULL. */
static inline struct signal_wait **
signal_find(struct signal_wait **wait, const struct flexsc_cb *cb)
{
	while (*wait && (*wait)->cb != cb)
		wait = &(*wait)->next;
	return *wait ? wait : NULL;
}

/* Remove a wait from its list, and complete its cb. */
void flexsc__signal_end(struct flexsc_loop *loop, struct signal_wait **link,
			int64_t ret);

/* Complete the cbs that wait for signals that have arrived. */
void flexsc__signals_collect(struct flexsc_loop *loop);
bool flexsc__signals_waiting(const struct flexsc_loop *loop);

/* Called when the loop ends: complete all waits with -ECANCELED. */
void flexsc__signals_cancel(struct flexsc_loop *loop);

/*
 * In a forked child: restore the program's signal dispositions, and stop reporting
 * signals to the parent's loops.
 */
void flexsc__signals_forked(void);

#endif /* FLEXSC_SIGNAL_H */
