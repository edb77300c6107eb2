/* SPDX-License-Identifier: MIT */
/*
 * What delivers events to an event control block. Every function but kick is
 * called by the owner, in a critical section.
 */
#ifndef FLEXSC_EVENTS_BACKEND_H
#define FLEXSC_EVENTS_BACKEND_H

#include <linux/flexsc_ecb.h>
#include <stdbool.h>
#include <stdint.h>

struct flexsc_ecb;

struct backend {
	const char *name;
	/*
	 * Make ecb->control and ecb->slots: 0, or -errno. -EOPNOTSUPP means that
	 * it doesn't work here, and ecb->why says why in one line.
	 */
	int (*open)(struct flexsc_ecb *ecb);
	/* Returns the slot's index, or -errno. */
	int (*watch)(struct flexsc_ecb *ecb,
		     const struct flexsc_ecb_watch *watch);
	/*
	 * No more events of a slot, which its source no longer has; "close": its
	 * descriptor is closed, too. 0 or -errno.
	 */
	int (*forget)(struct flexsc_ecb *ecb, uint32_t index, bool close);
	/* The owner took a slot that is REVOKED: it is free. */
	void (*dropped)(struct flexsc_ecb *ecb, uint32_t index);
	/*
	 * "notify" or "deliver" changed: deliver what was held and may be
	 * delivered, accept and notify what may be.
	 */
	int (*flush)(struct flexsc_ecb *ecb);
	/*
	 * Sleep until something of the groups may have happened, or until
	 * control->deadline.
	 */
	int (*wait)(struct flexsc_ecb *ecb, uint32_t groups);
	/*
	 * Put what has arrived on the lists, and have the owner notified of the
	 * next event. NULL: the kernel does both.
	 */
	void (*collect)(struct flexsc_ecb *ecb);
	/* Has something arrived? Of a backend that collects. */
	bool (*stirs)(const struct flexsc_ecb *ecb);
	/* Any thread, any signal handler: S3 for these groups. */
	void (*kick)(struct flexsc_ecb *ecb, uint32_t groups);
	/*
	 * A notification met a critical section: the end of that collects, so
	 * what comes until then needn't notify. NULL: SIGURG comes for what is on
	 * a list by then, and isn't blocked.
	 */
	void (*hush)(struct flexsc_ecb *ecb);
	/* The critical section that a notification met is over. */
	void (*unmask)(struct flexsc_ecb *ecb);
	void (*close)(struct flexsc_ecb *ecb);
	/*
	 * In a forked child: close descriptors, and connections that weren't handed
	 * out. Touch nothing else. The child may be in a critical section.
	 */
	void (*forked)(struct flexsc_ecb *ecb);
	/* ... and later, when the child destroys its copy: free the memory. */
	void (*discard)(struct flexsc_ecb *ecb);
};

#endif /* FLEXSC_EVENTS_BACKEND_H */
