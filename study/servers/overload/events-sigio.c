/* SPDX-License-Identifier: MIT */
/*
 * A real-time signal for each event, taken one by one (SEND, section 2.4). When
 * their queue overflows the kernel sends SIGIO instead, and then everything has
 * to be looked at.
 *
 * events-sigio-send.c is this file with FlexSC's signals.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "events.h"

#ifndef MODEL
#define MODEL	model_sigio
#define NAME	"sigio"
#define BY	NULL
#endif

static int listening;
static bool admitting = true;
static sigset_t signals;
static int highest;

static bool arm(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return !fcntl(fd, F_SETOWN, getpid()) &&
	       !fcntl(fd, F_SETSIG, SIGRTMIN) &&
	       !fcntl(fd, F_SETFL, flags | O_ASYNC);
}

static void accept_if_admitted(void)
{
	if (admitting)
		server_accept(listening);
}

static bool begin(int listener)
{
	listening = listener;
	sigemptyset(&signals);
	sigaddset(&signals, SIGRTMIN);
	sigaddset(&signals, SIGIO);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) || !arm(listener)) {
		perror("http-events: signals");
		return false;
	}
	/* Clients that were earlier sent no signal. */
	accept_if_admitted();
	return true;
}

static void look_at_all(void)
{
	static const struct timespec now;

	while (sigtimedwait(&signals, NULL, &now) >= 0)
		;
	for (int fd = 0; fd <= highest; fd++)
		server_ready(fd);
	accept_if_admitted();
}

static void wait_for_events(void)
{
	siginfo_t info;
	int signal = sigwaitinfo(&signals, &info);

	if (signal == SIGIO)
		look_at_all();
	else if (signal >= 0 && info.si_fd == listening)
		accept_if_admitted();
	else if (signal >= 0)
		server_ready(info.si_fd);
}

static void watch(int fd, bool sending)
{
	struct connection *c = &server_connections[fd];

	if (c->watched)
		return;
	c->watched = true;
	if (fd > highest)
		highest = fd;
	if (!arm(fd))
		perror("http-events: signals");
	/* What happened before the signal was asked for sends none. */
	server_ready(fd);
}

static void close_it(int fd)
{
	close(fd);
}

static void admit(bool yes)
{
	admitting = yes;
	accept_if_admitted();
}

const struct model MODEL = {
	.name = NAME, .delivery = "one by one",
	.notification = "one by one", .accepting = "in batches", .by = BY,
	.begin = begin, .wait = wait_for_events,
	.watch = watch, .close = close_it, .admit = admit,
};
