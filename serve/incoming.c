/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <flexsc/event.h>
#include <flexsc/send.h>

#include "incoming.h"

#define CONNECTIONS	1U	/* the group's bit */

/* Have the loop look, and don't say so again before it has. */
static void incoming_notified(struct flexsc_ecb *ecb, void *arg)
{
	struct incoming *in = arg;

	__atomic_store_n(&flexsc_ecb_control(ecb)->notify, 0,
			 __ATOMIC_RELAXED);
	flexsc_loop_wake(in->loop, &in->cb);
}

int incoming_init(struct incoming *in, struct flexsc_loop *loop, int fd,
		  void (*there_are)(struct flexsc_cb *cb), void *arg)
{
	/* What becomes of a connection is the loop's. */
	const struct flexsc_inherit inherit = { .flags = SOCK_CLOEXEC };
	struct flexsc_ecb_options options = FLEXSC_ECB_OPTIONS_INIT;
	int err;

	*in = (struct incoming){
		.loop = loop,
		.cb = { .callback = there_are, .arg = arg },
	};
	/* The loop sleeps in calls. */
	options.flags = FLEXSC_ECB_INTERRUPTS_CALLS;
	err = flexsc_ecb_create(&in->ecb, &options);
	if (err)
		return err;
	flexsc_ecb_handler(in->ecb, incoming_notified, in);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	err = flexsc_ecb_autoaccept(in->ecb, fd, 0, &inherit, NULL);
	return err < 0 ? err : 0;
}

int incoming_next(struct incoming *in)
{
	struct flexsc_event event;

	while (flexsc_ecb_next(in->ecb, CONNECTIONS, &event)) {
		if (event.type == FLEXSC_EVT_OVERFLOW)
			return event.error;
		/* Anything else is of a connection that is forgotten. */
		if (event.type != FLEXSC_EVT_IPACCEPT)
			continue;
		flexsc_ecb_forget(in->ecb, event.event);
		return event.fd;
	}
	return -EAGAIN;
}

void incoming_go_on(struct incoming *in)
{
	flexsc_ecb_deliver(in->ecb, CONNECTIONS);
	flexsc_ecb_notify(in->ecb, CONNECTIONS);
}

void incoming_stop(struct incoming *in)
{
	flexsc_ecb_notify(in->ecb, 0);
	flexsc_ecb_deliver(in->ecb, 0);
}

void incoming_fini(struct incoming *in)
{
	flexsc_ecb_destroy(in->ecb);
}
