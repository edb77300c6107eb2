/* SPDX-License-Identifier: MIT */
/*
 * An event-driven web server. It runs copies, which are processes, each with an
 * epoll set and one thread that makes non-blocking calls on sockets. Calls on
 * files may block; with --helpers, threads called helpers make them (the papers
 * call this AMPED). This file doesn't use FlexSC.
 *
 * 	web-events [OPTION]... DIR
 *
 * A client is in one of these states; the text after each arrow is the cause of
 * the transition. Only the copy's thread that waits for events makes
 * transitions.
 *
 * 	DRIVEN	calls are made	-> WAITING	a call returned EAGAIN
 * 				-> HELPED	a call on a file is a helper's
 * 				-> GONE		the connection has ended
 * 	WAITING	for the socket	-> DRIVEN	an event, or the time limit
 * 	HELPED	by a helper	-> DRIVEN	the helper has the result
 * 	GONE	to be freed	-> freed	at the end of the turn: before
 * 						that, events of the turn may
 * 						refer to the client
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <utlist.h>

#include "command.h"
#include "patience.h"
#include "queue.h"

#define EVENTS		256
#define SHORT_MS	20	/* pause in accepting when no descriptor is free */

enum client_state { DRIVEN, WAITING, HELPED, GONE };

struct client {
	struct queued queued;
	enum client_state state;
	struct web_call call;		/* the current call */
	int64_t ret;			/* HELPED: the call's result */
	struct patient patient;		/* WAITING: in copy.waiting */
	struct client *next;		/* GONE: in copy.gone */
	struct web_connection web;
};

struct copy {
	int listener, epoll, bell;
	bool listening;			/* the set contains the listener */
	uint64_t retry;			/* ns: end of the pause in accepting; or 0 */
	unsigned int clients;
	struct web_thread *thread;
	struct patient *waiting;
	struct client *gone;
	struct queue asked, answered;	/* to and from helpers */
};

static struct command command;
static unsigned int copies = 1, helpers, max = 100000, accepts = 16;

static const struct command_option options[] = {
	COMMAND_NUMBER("copies", &copies, 1, 1024),
	COMMAND_NUMBER("helpers", &helpers, 0, 1024),
	COMMAND_NUMBER("max", &max, 1, 1000000),
	COMMAND_NUMBER("accepts", &accepts, 1, 65536),
	{ 0 },
};

static void wait_is_over(struct copy *copy, struct client *client)
{
	patience_end(&copy->waiting, &client->patient);
	client->state = DRIVEN;
}

/* The listener. */

static void watch(struct copy *copy, int op, int fd, uint32_t events, void *arg)
{
	struct epoll_event event = { .events = events, .data.ptr = arg };

	web_count(&copy->thread->counts.watches);
	if (epoll_ctl(copy->epoll, op, fd, &event))
		command_complain("epoll", errno);
}

/*
 * EPOLLEXCLUSIVE: a client wakes only one of the copies that share the
 * listener.
 */
static void listen_again(struct copy *copy)
{
	if (!copy->listening)
		watch(copy, EPOLL_CTL_ADD, copy->listener,
		      EPOLLIN | EPOLLEXCLUSIVE, copy);
	copy->listening = true;
	copy->retry = 0;
}

static void listen_no_more(struct copy *copy)
{
	if (copy->listening)
		watch(copy, EPOLL_CTL_DEL, copy->listener, 0, NULL);
	copy->listening = false;
}

/* Driving. */

static void retire(struct copy *copy, struct client *client)
{
	client->state = GONE;
	LL_PREPEND(copy->gone, client);
	copy->clients--;
	listen_again(copy);
}

static void drive(struct copy *copy, struct client *client)
{
	struct web_call *call = &client->call;

	while (web_next(&client->web, call)) {
		int64_t ret;

		if (helpers && call->kind == WEB_FILE) {
			client->state = HELPED;
			web_count(&copy->thread->counts.handed);
			queue_push(&copy->asked, &client->queued);
			return;
		}
		ret = command_make(call);
		if (ret == -EAGAIN && call->kind <= WEB_SEND) {
			web_count(&copy->thread->counts.again);
			client->state = WAITING;
			patience_begin(&copy->waiting, &client->patient,
				       call->patience);
			return;
		}
		web_done(&client->web, ret);
	}
	retire(copy, client);
}

static struct client *client_waiting(struct patient *patient)
{
	return (struct client *)((char *)patient -
				 offsetof(struct client, patient));
}

static void give_up(struct copy *copy)
{
	struct patient *patient;

	while ((patient = patience_over(copy->waiting))) {
		struct client *client = client_waiting(patient);

		wait_is_over(copy, client);
		web_done(&client->web, -ETIME);
		drive(copy, client);
	}
}

/* Helpers. */

static struct client *client_of(struct queued *queued)
{
	return (struct client *)queued;
}

static void *help(void *arg)
{
	const uint64_t one = 1;
	struct copy *copy = arg;

	for (;;) {
		struct queued *queued = queue_pop(&copy->asked, 1);
		struct client *client = client_of(queued);

		client->ret = command_make(&client->call);
		if (queue_push(&copy->answered, queued) &&
		    write(copy->bell, &one, sizeof(one)) < 0)
			command_complain("eventfd", errno);
	}
	return NULL;
}

static void take_answered(struct copy *copy)
{
	struct queued *queued, *next;
	uint64_t rung;

	if (read(copy->bell, &rung, sizeof(rung)) < 0)
		return;
	for (queued = queue_take(&copy->answered); queued; queued = next) {
		struct client *client = client_of(queued);

		next = queued->next;
		client->state = DRIVEN;
		web_done(&client->web, client->ret);
		drive(copy, client);
	}
}

/* Accepting. */

static bool begin(struct copy *copy, int fd)
{
	struct client *client = malloc(sizeof(*client));

	if (!client) {
		close(fd);
		return false;
	}
	client->state = DRIVEN;
	copy->clients++;
	web_begin(&client->web, &command.web, copy->thread, fd);
	watch(copy, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLET, client);
	drive(copy, client);
	return true;
}

/*
 * No descriptor is free: accept again when a client of this copy has left, or
 * after a while, because other processes may have closed some.
 */
static void pause_accepting(struct copy *copy)
{
	listen_no_more(copy);
	copy->retry = clock_ticks() + SHORT_MS * 1000000ULL;
}

static void take_clients(struct copy *copy)
{
	for (unsigned int i = 0; i < accepts && copy->clients < max; i++) {
		int fd = accept4(copy->listener, NULL, NULL,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && errno == EAGAIN)
			return;
		if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
			pause_accepting(copy);
		if (fd < 0 || !begin(copy, fd))
			return;
	}
	if (copy->clients >= max)
		listen_no_more(copy);
}

/* A copy. */

static void handle(struct copy *copy, void *arg)
{
	struct client *client = arg;

	if (arg == copy) {
		take_clients(copy);
	} else if (arg == &copy->bell) {
		take_answered(copy);
	} else if (client->state == WAITING) {
		wait_is_over(copy, client);
		drive(copy, client);
	}
}

static void bury(struct copy *copy)
{
	struct client *client, *next;

	LL_FOREACH_SAFE(copy->gone, client, next)
		free(client);
	copy->gone = NULL;
}

static int turn_limit(const struct copy *copy)
{
	int ms = patience_ms(copy->waiting);

	return copy->retry && (ms < 0 || ms > SHORT_MS) ? SHORT_MS : ms;
}

static void *run(void *arg)
{
	struct epoll_event events[EVENTS];
	struct copy *copy = arg;

	for (;;) {
		int n = epoll_wait(copy->epoll, events, EVENTS,
				   turn_limit(copy));

		web_count(&copy->thread->counts.waits);
		for (int i = 0; i < n; i++)
			handle(copy, events[i].data.ptr);
		give_up(copy);
		bury(copy);
		if (copy->retry && clock_ticks() >= copy->retry)
			listen_again(copy);
	}
	return NULL;
}

static void start_copy(int listener)
{
	static struct copy copy = {
		.asked = QUEUE_INIT, .answered = QUEUE_INIT,
	};

	fcntl(listener, F_SETFL, O_NONBLOCK);
	copy.listener = listener;
	copy.epoll = epoll_create1(EPOLL_CLOEXEC);
	copy.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	copy.thread = command_thread();
	if (copy.epoll < 0 || copy.bell < 0 || !copy.thread) {
		command_complain("can't start a copy", errno);
		_exit(1);
	}
	watch(&copy, EPOLL_CTL_ADD, copy.bell, EPOLLIN, &copy.bell);
	listen_again(&copy);
	for (unsigned int i = 0; i < helpers; i++)
		command_start(help, &copy);
	command_start(run, &copy);
}

/* Fork a copy, which ends when the first process ends. */
static void fork_copy(int listener)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0) {
		command_complain("can't make a copy", errno);
		exit(1);
	}
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The first process may have ended before prctl() was called. */
	if (getppid() != parent)
		_exit(0);
	start_copy(listener);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int listener;

	command_parse(&command, "web-events", options, argc, argv);
	listener = command_listen(&command);
	for (unsigned int i = 1; i < copies; i++)
		fork_copy(listener);
	start_copy(listener);
	command_wait(copies > 1);
}
