/* SPDX-License-Identifier: MIT */
/*
 * A backend delivers events to an event control block. The owner calls its
 * functions in a critical section, except for "kick", which any thread may call at any
 * time.
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
	 * Create ecb->control and ecb->slots: 0 or -errno. -EOPNOTSUPP: the backend
	 * doesn't work here, and ecb->why gives the reason in one line.
	 */
	int (*open)(struct flexsc_ecb *ecb);
	/* Returns the slot's index, or -errno. */
	int (*watch)(struct flexsc_ecb *ecb,
		     const struct flexsc_ecb_watch *watch);
	/*
	 * Stop the events of a slot whose source has ended. "close": also close its
	 * descriptor. 0 or -errno.
	 */
	int (*forget)(struct flexsc_ecb *ecb, uint32_t index, bool close);
	/*
	 * Called when the owner has taken a REVOKED slot off its list: the slot is
	 * free now.
	 */
	void (*dropped)(struct flexsc_ecb *ecb, uint32_t index);
	/*
	 * Called when "notify" or "deliver" has changed: deliver held events,
	 * accept connections and notify, as is allowed now.
	 */
	int (*flush)(struct flexsc_ecb *ecb);
	/*
	 * Sleep until an event of the groups may have happened, or until
	 * control->deadline.
	 */
	int (*wait)(struct flexsc_ecb *ecb, uint32_t groups);
	/*
	 * Put events that have arrived on their groups' lists, and arrange for
	 * notification of the next one. NULL: the kernel does both.
	 */
	void (*collect)(struct flexsc_ecb *ecb);
	/* Has an event arrived? Only for backends with "collect". */
	bool (*stirs)(const struct flexsc_ecb *ecb);
	/*
	 * Wake or notify the owner for these groups (S3). Any thread, any signal
	 * handler.
	 */
	void (*kick)(struct flexsc_ecb *ecb, uint32_t groups);
	/*
	 * Called when a notification has arrived in a critical section: stop further
	 * notifications until the end of the section, which collects the events. NULL:
	 * SIGURG is sent only for events that are already on a list, and isn't blocked.
	 */
	void (*hush)(struct flexsc_ecb *ecb);
	/*
	 * Called at the end of a critical section in which a notification has arrived:
	 * unblock SIGURG.
	 */
	void (*unmask)(struct flexsc_ecb *ecb);
	void (*close)(struct flexsc_ecb *ecb);
	/*
	 * In a forked child: close descriptors, and connections that weren't handed
	 * out. Change nothing else. The child may be in a critical section.
	 */
	void (*forked)(struct flexsc_ecb *ecb);
	/* Called when the child destroys its copy later: free the memory. */
	void (*discard)(struct flexsc_ecb *ecb);
};

#endif /* FLEXSC_EVENTS_BACKEND_H */
