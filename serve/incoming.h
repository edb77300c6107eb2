/* SPDX-License-Identifier: MIT */
/*
 * Connections by SEND: accepted whatever the worker does, as long as there is
 * room for clients. On the worker's thread; its handler interrupts that.
 */
#ifndef SERVE_INCOMING_H
#define SERVE_INCOMING_H

#include <stdbool.h>

#include <flexsc/call.h>

struct flexsc_ecb;
struct flexsc_loop;

struct incoming {
	struct flexsc_ecb *ecb;
	struct flexsc_loop *loop;
	struct flexsc_cb cb;	/* there are connections; its arg is the caller's */
};

/*
 * Accept what comes to the listener fd. "there_are" runs on the loop when
 * incoming_next() has something, and once more after incoming_go_on(). 0 or
 * -errno.
 */
int incoming_init(struct incoming *in, struct flexsc_loop *loop, int fd,
		  void (*there_are)(struct flexsc_cb *cb), void *arg);

/*
 * The next connection; -EAGAIN: none; -EPERM: they have to be accepted by calls,
 * because something watches the worker's; else why one can't be accepted.
 */
int incoming_next(struct incoming *in);

/* Have there_are() called for what comes; also accept again what couldn't be. */
void incoming_go_on(struct incoming *in);

/* Leave what comes to the listener's queue. */
void incoming_stop(struct incoming *in);

void incoming_fini(struct incoming *in);

#endif /* SERVE_INCOMING_H */
