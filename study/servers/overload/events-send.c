/* SPDX-License-Identifier: MIT */
/*
 * SEND, and two servers that isolate its advantages (SEND, section 4.7):
 *
 * 	send	events are delivered at once, and the handler puts connections on
 * 		the queues, even while the server computes
 * 	ps2	events are delivered at once, and the server looks at them when it
 * 		has nothing else to do
 * 	ps1	events are delivered when the server requests them
 *
 * In all three, connections are accepted when they are delivered.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <flexsc/ecb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "events.h"

/* Groups: a lower one has priority. */
#define FRESH	0x1U
#define OTHERS	0x2U
#define ALL	(FRESH | OTHERS)
#define FOREVER	UINT64_MAX
#define WANT	(POLLIN | POLLOUT | POLLRDHUP)

static struct flexsc_ecb *ecb;
static int listening;
/* The server calls accept4(), because a tracer or filter watches its thread. */
static bool accepts;
static uint32_t admitted = ALL;

/* Store the index of the source that watches the connection. */
static void note(int fd, unsigned int event)
{
	server_connections[fd].place = (int)event;
	server_connections[fd].watched = true;
}

static void handle(struct flexsc_ecb *from, void *arg)
{
	struct flexsc_ecb_event event;

	while (flexsc_ecb_next(from, ALL, &event)) {
		if (event.type == FLEXSC_EVT_IPACCEPT) {
			server_new(event.fd, server_clock());
			note(event.fd, event.event);
			accepts = false;
		} else if (event.type == FLEXSC_EVT_OVERFLOW &&
			   event.error == -EPERM) {
			accepts = true;
			server_accept(listening);
		} else if (event.type == FLEXSC_EVT_IOREADY) {
			server_ready(event.fd);
		}
	}
}

static bool failed(int err)
{
	if (err >= 0)
		return false;
	fprintf(stderr, "http-events: send: %s\n", strerror(-err));
	return true;
}

static bool begin(int listener, uint32_t flags)
{
	struct flexsc_ecb_options options = FLEXSC_ECB_OPTIONS_INIT;
	struct flexsc_ecb_inherit inherit = {
		.want = WANT, .group = 1, .flags = SOCK_NONBLOCK,
	};

	listening = listener;
	options.flags = flags;
	options.events = (uint32_t)server_limit;
	return !failed(flexsc_ecb_create(&ecb, &options)) &&
	       !failed(flexsc_ecb_handler(ecb, handle, NULL)) &&
	       !failed(flexsc_ecb_autoaccept(ecb, listener, 0, &inherit,
					     NULL));
}

static bool begin_ps1(int listener)
{
	return begin(listener, FLEXSC_ECB_BATCHED);
}

static bool begin_ps2(int listener)
{
	return begin(listener, 0) &&
	       !failed(flexsc_ecb_deliver(ecb, admitted));
}

static bool begin_send(int listener)
{
	return begin_ps2(listener) &&
	       !failed(flexsc_ecb_notify(ecb, admitted));
}

static void wait_for_events(void)
{
	flexsc_ecb_wait(ecb, admitted, FOREVER);
	handle(ecb, NULL);
}

/*
 * As in SEND, figure 4.2: disable notification during the sleep, because the
 * events that end the sleep need no handler.
 */
static void wait_send(void)
{
	flexsc_ecb_notify(ecb, 0);
	wait_for_events();
	flexsc_ecb_notify(ecb, admitted);
}

/*
 * Watch a connection that the server accepted. If the socket is ready already,
 * that is reported as an event, too.
 */
static void watch(int fd, bool sending)
{
	int event;

	if (server_connections[fd].watched)
		return;
	event = flexsc_ecb_watch(ecb, fd, WANT, 1, NULL);
	if (!failed(event))
		note(fd, (unsigned int)event);
}

static void close_it(int fd)
{
	if (server_connections[fd].watched)
		flexsc_ecb_close(ecb,
				 (unsigned int)server_connections[fd].place);
	else
		close(fd);
}

static void admit_ps1(bool yes)
{
	admitted = yes ? ALL : OTHERS;
}

static void admit_ps2(bool yes)
{
	admit_ps1(yes);
	flexsc_ecb_deliver(ecb, admitted);
	if (yes && accepts)
		server_accept(listening);
}

/* Notification implies delivery. */
static void admit_send(bool yes)
{
	admit_ps2(yes);
	flexsc_ecb_notify(ecb, admitted);
}

static void hold(void)
{
	flexsc_ecb_critical_begin(ecb);
}

static void release(void)
{
	flexsc_ecb_critical_end(ecb);
}

static const char *send_by(void)
{
	struct flexsc_ecb *probe;
	const char *name;

	if (flexsc_ecb_create(&probe, NULL))
		return NULL;
	name = flexsc_ecb_backend(probe);
	flexsc_ecb_destroy(probe);
	return name;
}

const struct model model_send = {
	.name = "send", .delivery = "immediate", .notification = "preemptive",
	.accepting = "at delivery", .by = send_by, .begin = begin_send,
	.wait = wait_send, .watch = watch, .close = close_it,
	.admit = admit_send, .hold = hold, .release = release,
};

const struct model model_ps2 = {
	.name = "ps2", .delivery = "immediate", .notification = "batched",
	.accepting = "at delivery", .by = send_by, .begin = begin_ps2,
	.wait = wait_for_events, .watch = watch, .close = close_it,
	.admit = admit_ps2,
};

const struct model model_ps1 = {
	.name = "ps1", .delivery = "batched", .notification = "batched",
	.accepting = "at delivery", .by = send_by, .begin = begin_ps1,
	.wait = wait_for_events, .watch = watch, .close = close_it,
	.admit = admit_ps1,
};
