/* SPDX-License-Identifier: MIT */
/*
 * The descriptor that the program's own outer loop watches: an eventfd, created when
 * the program requests it. Owner only, except for flexsc__outer_ring().
 */
#ifndef FLEXSC_OUTER_H
#define FLEXSC_OUTER_H

#include <stdbool.h>

struct flexsc_loop;

struct outer {
	int fd;			/* -1: not created */
	bool held;		/* Set by flexsc__outer_hold(), cleared by
				 * flexsc__outer_silence(). */
};

/* Any thread, any signal handler: make the descriptor readable. */
void flexsc__outer_ring(struct flexsc_loop *loop);
/* Make the descriptor readable until it is silenced. */
void flexsc__outer_hold(struct flexsc_loop *loop);
/* Make the descriptor unreadable until the next ring or hold. */
void flexsc__outer_silence(struct flexsc_loop *loop);
/*
 * Close the descriptor, if it exists. Called when the loop ends, and in a forked child.
 */
void flexsc__outer_close(struct flexsc_loop *loop);

#endif /* FLEXSC_OUTER_H */
