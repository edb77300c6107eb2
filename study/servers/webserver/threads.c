/* SPDX-License-Identifier: MIT */
/*
 * A multithreaded web server: each thread accepts a client, serves it to its
 * end by blocking calls, and then accepts the next one. This file doesn't use
 * FlexSC.
 *
 * 	web-threads [OPTION]... DIR
 *
 * A blocking call has no time limit. So a thread stores in its seat, a struct,
 * until when its call may wait. One additional thread, the usher, checks the
 * seats twice a second and shuts the sockets of late clients down, which ends
 * the threads' calls.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "command.h"

#define PAUSE_US	20000	/* pause before accepting again after an error */
#define LOOK_US		500000	/* interval between the usher's checks */

/* A seat: the state that a serving thread shares with the usher. */
struct seat {
	int listener;
	struct web_thread *thread;
	/*
	 * clock_ticks() until which the call may wait; 0: no call is pending.
	 * The thread stores due and receives, and the usher loads them. If the
	 * usher loads outdated values, its next check corrects that.
	 */
	_Atomic uint64_t due;
	_Atomic bool receives;		/* the call is a RECEIVE */
	_Atomic bool late;		/* the usher has shut the socket down */
	pthread_mutex_t lock;
	int fd;				/* the client's, under the lock; or -1 */
	struct web_connection web;
};

static struct command command;
static unsigned int count = 128;
static struct seat **seats;

static const struct command_option options[] = {
	COMMAND_NUMBER("threads", &count, 1, 32000),
	{ 0 },
};

/* The usher. */

/* Shut a late client's socket down, unless its call has ended meanwhile. */
static void show_out(struct seat *seat, uint64_t due)
{
	pthread_mutex_lock(&seat->lock);
	if (seat->fd >= 0 && seat->due == due) {
		seat->late = true;
		/*
		 * A client that has sent half a request may still receive a
		 * 408.
		 */
		shutdown(seat->fd, seat->receives ? SHUT_RD : SHUT_RDWR);
	}
	pthread_mutex_unlock(&seat->lock);
}

static void *usher(void *arg)
{
	for (;;) {
		uint64_t now = clock_ticks();

		for (unsigned int i = 0; i < count; i++) {
			uint64_t due = seats[i]->due;

			if (due && due <= now)
				show_out(seats[i], due);
		}
		usleep(LOOK_US);
	}
	return arg;
}

/* The threads that serve clients. */

static void seat_set(struct seat *seat, int fd)
{
	pthread_mutex_lock(&seat->lock);
	seat->fd = fd;
	seat->late = false;
	pthread_mutex_unlock(&seat->lock);
}

static int64_t make_patiently(struct seat *seat, const struct web_call *call)
{
	int64_t ret;

	atomic_store_explicit(&seat->receives, call->kind == WEB_RECEIVE,
			      memory_order_relaxed);
	atomic_store_explicit(&seat->due, clock_ticks() + call->patience,
			      memory_order_relaxed);
	ret = command_make(call);
	atomic_store_explicit(&seat->due, 0, memory_order_relaxed);
	return ret <= 0 && seat->late ? -ETIME : ret;
}

static int64_t make(struct seat *seat, const struct web_call *call)
{
	if (call->kind <= WEB_SEND)
		return make_patiently(seat, call);
	/*
	 * Remove the descriptor before it is closed. Otherwise the usher could
	 * shut down a later socket with the same number.
	 */
	if (call->nr == SYS_close && (int)call->args[0] == seat->web.fd)
		seat_set(seat, -1);
	return command_make(call);
}

static void serve(struct seat *seat, int fd)
{
	struct web_connection *c = &seat->web;
	struct web_call call;

	seat_set(seat, fd);
	web_begin(c, &command.web, seat->thread, fd);
	while (web_next(c, &call))
		web_done(c, make(seat, &call));
}

static void *run(void *arg)
{
	struct seat *seat = arg;

	for (;;) {
		int fd = accept4(seat->listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			serve(seat, fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			usleep(PAUSE_US);
	}
	return NULL;
}

static struct seat *seat_make(int listener)
{
	struct seat *seat = malloc(sizeof(*seat));
	struct web_thread *thread = command_thread();

	if (!seat || !thread) {
		command_complain("threads", ENOMEM);
		exit(1);
	}
	/*
	 * Don't clear the connection: most pages of its buffers are never
	 * touched.
	 */
	memset(seat, 0, offsetof(struct seat, web));
	seat->listener = listener;
	seat->thread = thread;
	seat->fd = -1;
	pthread_mutex_init(&seat->lock, NULL);
	return seat;
}

int main(int argc, char **argv)
{
	int listener;

	command_parse(&command, "web-threads", options, argc, argv);
	seats = calloc(count, sizeof(struct seat *));
	if (!seats)
		return 1;
	listener = command_listen(&command);
	for (unsigned int i = 0; i < count; i++)
		seats[i] = seat_make(listener);
	for (unsigned int i = 0; i < count; i++)
		command_start(run, seats[i]);
	command_start(usher, NULL);
	command_wait(false);
}
