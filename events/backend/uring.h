/* SPDX-License-Identifier: MIT */
/*
 * Delivery by io_uring, on every kernel that has it. The ring is an ECB's own,
 * and in its default mode: the kernel interrupts the owner wherever it computes,
 * to write completions. (With FLEXSC_ECB_BATCHED it does so in waits only.) What
 * is complete is collected into slots when the owner looks.
 *
 *	ring.c		requests, their names, polls
 *	uring.c		the backend, and what has completed
 *	uring_notify.c	how completions become SIGURG
 *	uring_accept.c	listeners
 *
 * io_uring_enter() may fail for good, for example because the program installed a
 * seccomp filter that forbids it. From then on the ring takes no requests: new watches
 * and waits return the error, forgetting and destroying work. Earlier watches may go on,
 * because the kernel completes their requests without being entered.
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
	int failed;		/* io_uring_enter() fails for good: -errno; or 0 */
	struct io_uring_sqe unsent;	/* stands for a failed ring's requests */
	int bell;		/* an eventfd that ends a wait */
	bool listens;		/* a read of it is pending */
	uint64_t rung;		/* what that read */
	int event_fd;		/* counts completions; -1: not made */
	int pipe[2];		/* with O_ASYNC; see uring_notify.c */
	uint64_t notified;	/* by the kernel: read from event_fd, so it notifies */
	bool armed;		/* the chain was submitted */
	char byte;
	struct acceptor *acceptors;
	uint64_t again;		/* when full listeners are tried again */
	uint32_t completions;	/* that the ring has room for */
	bool crowded;		/* it had none, for what is reaped now */
};

/* Listeners. Owner only, in a critical section. */

/* Make the slot's listener. 0 or -errno. */
int flexsc__evring_listen(struct flexsc_ecb *ecb, uint32_t index,
			  const struct flexsc_ecb_watch *watch);
void flexsc__evring_unlisten(struct flexsc_ecb *ecb, uint32_t index);
/* A connection, or -errno; "more": the request goes on. */
void flexsc__evring_accepted(struct flexsc_ecb *ecb, uint32_t index, int res,
			     bool more);
/* Accept what may be accepted now, full listeners too; stop what may not. */
void flexsc__evring_accept(struct flexsc_ecb *ecb);
/* Is a listener full, so that it has to be tried again? */
bool flexsc__evring_full(const struct flexsc_ecb *ecb);
void flexsc__evring_unlisten_all(struct flexsc_ecb *ecb);
/* In a forked child: free their memory, touch nothing else. */
void flexsc__evring_discard_listeners(struct evring *evring);
/*
 * Close connections whose events weren't handed out. At the end, or in a forked child,
 * whose copies they are.
 */
void flexsc__evring_disown(const struct flexsc_ecb *ecb);

/* How completions become SIGURG. Owner only, in a critical section. */

/* Completions don't notify. */
void flexsc__evring_hush(struct flexsc_ecb *ecb);
/* The next completion notifies. 0 or -errno. */
int flexsc__evring_notify(struct flexsc_ecb *ecb);
void flexsc__evring_notify_close(struct evring *evring);

#endif /* FLEXSC_EVENTS_URING_H */
