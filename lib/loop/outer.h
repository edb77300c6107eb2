/* SPDX-License-Identifier: MIT */
/*
 * The descriptor that an outer loop, which is the program's own, watches: an
 * eventfd, made when the program asks for it. Owner only, but for ring.
 */
#ifndef FLEXSC_OUTER_H
#define FLEXSC_OUTER_H

#include <stdbool.h>

struct flexsc_loop;

struct outer {
	int fd;			/* -1: none */
	bool held;		/* the owner has rung it since the last silence */
};

/* Any thread, any signal handler: make it readable. */
void flexsc__outer_ring(struct flexsc_loop *loop);
/* Have it be readable until it is silenced. */
void flexsc__outer_hold(struct flexsc_loop *loop);
/* Make it unreadable until it is rung again. */
void flexsc__outer_silence(struct flexsc_loop *loop);
/* Close it, if there is one: the loop ends, or is a forked child's copy. */
void flexsc__outer_close(struct flexsc_loop *loop);

#endif /* FLEXSC_OUTER_H */
