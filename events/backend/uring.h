/* SPDX-License-Identifier: MIT */
/*
 * Delivery by io_uring, on every kernel that has it. The ring belongs to the ECB, and
 * is in its default mode: the kernel interrupts the owner at any point of a computation
 * to write completions. (With FLEXSC_ECB_BATCHED it does so only during waits.)
 * Completions are collected into slots when the owner looks for events.
 *
 *	ring.c		requests, their names, polls
 *	uring.c		the backend, and its completions
 *	uring_notify.c	how completions become SIGURG
 *	uring_accept.c	listening sockets
 *
 * io_uring_enter() may fail permanently, for example because the program installed a
 * seccomp filter that forbids it. From then on the ring takes no requests: new watches
 * and waits return the error, but forgetting and destroying work. Earlier watches may
 * continue, because the kernel completes their requests without being entered.
 *
 * Owner only, in a critical section.
 */
#ifndef FLEXSC_EVENTS_URING_H
#define FLEXSC_EVENTS_URING_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

struct acceptor;
struct flexsc_ecb;
struct flexsc_ecb_watch;

struct evring {
	struct io_uring ring;
	int failed;		/* -errno if io_uring_enter() fails permanently,
				 * otherwise 0 */
	struct io_uring_sqe unsent;	/* where requests of a failed ring are
					 * written */
	int bell;		/* an eventfd that ends a wait */
	bool listens;		/* a read of the bell is pending */
	uint64_t rung;		/* the result of that read */
	int event_fd;		/* counts completions; -1: not created */
	int pipe[2];		/* with O_ASYNC; see uring_notify.c */
	uint64_t notified;	/* nonzero: the kernel has read event_fd, and
				 * notifies */
	bool armed;		/* the chain of requests was submitted */
	char byte;
	struct acceptor *acceptors;
	uint64_t again;		/* when to retry full listening sockets */
	uint32_t completions;	/* capacity of the completion queue */
	bool crowded;		/* the completions being reaped have filled the
				 * queue */
};

/*
 * Listening sockets, one struct acceptor each. A socket is FULL if its last attempt to
 * accept found no free slot or descriptor. Owner only, in a critical section.
 */

/* Start to accept from the slot's listening socket. 0 or -errno. */
int flexsc__evring_listen(struct flexsc_ecb *ecb, uint32_t index,
			  const struct flexsc_ecb_watch *watch);
void flexsc__evring_unlisten(struct flexsc_ecb *ecb, uint32_t index);
/*
 * Called when an accept has returned a connection or -errno. "more": its request
 * continues.
 */
void flexsc__evring_accepted(struct flexsc_ecb *ecb, uint32_t index, int res,
			     bool more);
/*
 * Start all accepts that are allowed now, also of full listening sockets, and stop the
 * others.
 */
void flexsc__evring_accept(struct flexsc_ecb *ecb);
/* Is a listening socket full, so that it has to be retried? */
bool flexsc__evring_full(const struct flexsc_ecb *ecb);
void flexsc__evring_unlisten_all(struct flexsc_ecb *ecb);
/* In a forked child: free the memory of the acceptors, and change nothing else. */
void flexsc__evring_discard_listeners(struct evring *evring);
/*
 * Close accepted connections whose events weren't handed out. Called when the ECB ends,
 * and in a forked child, which has copies of their descriptors.
 */
void flexsc__evring_disown(const struct flexsc_ecb *ecb);

/* How completions become SIGURG. Owner only, in a critical section. */

/* Stop completions from notifying. */
void flexsc__evring_hush(struct flexsc_ecb *ecb);
/* Make the next completion notify. 0 or -errno. */
int flexsc__evring_notify(struct flexsc_ecb *ecb);
void flexsc__evring_notify_close(struct evring *evring);

#endif /* FLEXSC_EVENTS_URING_H */
