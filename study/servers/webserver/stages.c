/* SPDX-License-Identifier: MIT */
/*
 * A staged web server: the threads of a stage make calls of one kind, for many
 * clients. When a client's next call is of another kind, they hand the client
 * to that call's stage. This file doesn't use FlexSC.
 *
 * 	web-stages [OPTION]... DIR
 *
 * 	accept -> poll -> read -> file -> write -> read ...
 * 		    ^------+---------------+
 *
 * A stage has a queue and threads, which may be pinned to cores. A thread takes
 * a batch of clients at once, and continues with a client while its next call
 * belongs to the stage. Any stage makes the calls that close a client. A client
 * is in one place at a time: a queue, a thread's batch, or the epoll set. So
 * pushing needs no room, and stages that form a circle can't wait for each
 * other. The accept stage limits the number of clients: --admit.
 *
 * After watch() or push(), another thread may own the client, or have freed it,
 * so the caller must not use the client any more.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "command.h"
#include "patience.h"
#include "queue.h"

#define EVENTS		256
#define LOOK_MS		500	/* interval between checks for time limits */
#define PAUSE_US	20000	/* pause before accepting again after an error */

struct stage {
	unsigned int threads;
	void *(*run)(void *stage);
	struct queue queue;
};

struct client {
	struct queued queued;
	struct patient patient;		/* in "waiting", guarded by waiting_lock */
	bool watched;			/* the epoll set contains the socket */
	enum web_kind kind;		/* kind of the call that returned EAGAIN */
	struct web_connection web;
};

static struct command command;
static int listener, epoll;

static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
static struct patient *waiting;

static pthread_mutex_t admission = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static unsigned int clients;		/* guarded by "admission" */

static unsigned int batch = 16, admit = 100000;

static void *run_accept(void *stage), *run_poll(void *stage);
static void *run_stage(void *stage);

enum { ACCEPT, POLL, READ, DISK, WRITE, STAGES };

#define STAGE(count, function) \
	{ .threads = (count), .run = (function), .queue = QUEUE_INIT }

static struct stage stages[STAGES] = {
	[ACCEPT] = STAGE(1, run_accept),
	[POLL] = STAGE(1, run_poll),
	[READ] = STAGE(1, run_stage),
	[DISK] = STAGE(2, run_stage),
	[WRITE] = STAGE(1, run_stage),
};

static const struct command_option options[] = {
	COMMAND_NUMBER("read", &stages[READ].threads, 1, 1024),
	COMMAND_NUMBER("file", &stages[DISK].threads, 1, 1024),
	COMMAND_NUMBER("write", &stages[WRITE].threads, 1, 1024),
	COMMAND_NUMBER("batch", &batch, 1, 100000),
	COMMAND_NUMBER("admit", &admit, 1, 1000000),
	{ 0 },
};

static struct client *client_of(struct queued *queued)
{
	return (struct client *)queued;
}

static struct client *client_waiting(struct patient *patient)
{
	return (struct client *)((char *)patient -
				 offsetof(struct client, patient));
}

/* The stage that makes calls of this kind. NULL: any stage does. */
static struct stage *stage_of(enum web_kind kind)
{
	switch (kind) {
	case WEB_RECEIVE:
		return &stages[READ];
	case WEB_FILE:
		return &stages[DISK];
	case WEB_SEND:
		return &stages[WRITE];
	default:
		return NULL;
	}
}

/* Waiting for a socket. */

/* Let the client wait for its socket. Only the poll stage ends the wait. */
static void watch(struct client *client, const struct web_call *call)
{
	struct epoll_event event = { .data.ptr = client };
	int op = client->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	int fd = client->web.fd;

	event.events = EPOLLONESHOT |
		       (call->kind == WEB_RECEIVE ? EPOLLIN : EPOLLOUT);
	web_count(&client->web.thread->counts.watches);
	client->watched = true;
	client->kind = call->kind;
	/*
	 * Start the time limit and change the set under one lock, because the
	 * time limit must not end before the set contains the socket.
	 */
	pthread_mutex_lock(&waiting_lock);
	patience_begin(&waiting, &client->patient, call->patience);
	if (epoll_ctl(epoll, op, fd, &event))
		command_complain("epoll", errno);
	pthread_mutex_unlock(&waiting_lock);
}

static void push(struct web_thread *thread, struct client *client,
		 struct stage *stage)
{
	web_count(&thread->counts.handed);
	queue_push(&stage->queue, &client->queued);
}

/* Called by the poll stage: an event of the client's socket has come. */
static void wait_is_over(struct web_thread *thread, struct client *client)
{
	pthread_mutex_lock(&waiting_lock);
	patience_end(&waiting, &client->patient);
	pthread_mutex_unlock(&waiting_lock);
	push(thread, client, stage_of(client->kind));
}

/* Take one client whose time limit is over out of the epoll set. NULL: none is. */
static struct client *give_up_one(void)
{
	struct client *client = NULL;
	struct patient *patient;

	pthread_mutex_lock(&waiting_lock);
	patient = patience_over(waiting);
	if (patient) {
		client = client_waiting(patient);
		patience_end(&waiting, patient);
		epoll_ctl(epoll, EPOLL_CTL_DEL, client->web.fd, NULL);
		client->watched = false;
	}
	pthread_mutex_unlock(&waiting_lock);
	return client;
}

static void retire(struct client *client)
{
	free(client);
	pthread_mutex_lock(&admission);
	clients--;
	pthread_cond_signal(&left);
	pthread_mutex_unlock(&admission);
}

/* The stage of the client's next call, or NULL if that is this stage. */
static struct stage *leads_to(struct client *client, const struct stage *stage)
{
	struct stage *next = stage_of(web_kind_of(&client->web));

	return next == stage ? NULL : next;
}

/*
 * Make the client's calls that belong to this stage, and hand it on. stage
 * NULL: only close.
 */
static void drive(struct client *client, struct web_thread *thread,
		  const struct stage *stage)
{
	struct stage *next;
	struct web_call call;

	client->web.thread = thread;
	while (!(next = leads_to(client, stage)) &&
	       web_next(&client->web, &call)) {
		int64_t ret = command_make(&call);

		if (ret == -EAGAIN && call.kind <= WEB_SEND) {
			web_count(&thread->counts.again);
			watch(client, &call);
			return;
		}
		web_done(&client->web, ret);
	}
	if (next)
		push(thread, client, next);
	else
		retire(client);
}

/* The stages' threads. */

static struct web_thread *thread_begin(void)
{
	struct web_thread *thread = command_thread();

	if (!thread) {
		command_complain("threads", EAGAIN);
		_exit(1);
	}
	return thread;
}

static void *run_stage(void *arg)
{
	struct stage *stage = arg;
	struct web_thread *thread = thread_begin();
	struct queued *queued, *next;

	for (;;) {
		queued = queue_pop(&stage->queue, batch);
		for (; queued; queued = next) {
			next = queued->next;
			drive(client_of(queued), thread, stage);
		}
	}
	return NULL;
}

static void *run_poll(void *arg)
{
	struct web_thread *thread = thread_begin();
	struct epoll_event events[EVENTS];
	struct client *client;

	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, LOOK_MS);

		web_count(&thread->counts.waits);
		for (int i = 0; i < n; i++)
			wait_is_over(thread, events[i].data.ptr);
		while ((client = give_up_one())) {
			client->web.thread = thread;
			web_done(&client->web, -ETIME);
			drive(client, thread, NULL);
		}
	}
	return NULL;
}

static void await_admission(void)
{
	pthread_mutex_lock(&admission);
	while (clients >= admit)
		pthread_cond_wait(&left, &admission);
	clients++;
	pthread_mutex_unlock(&admission);
}

static void begin(struct web_thread *thread, int fd)
{
	struct client *client = malloc(sizeof(*client));
	struct web_call call;

	if (!client) {
		close(fd);
		retire(NULL);
		return;
	}
	client->watched = false;
	web_begin(&client->web, &command.web, thread, fd);
	web_next(&client->web, &call);
	watch(client, &call);
}

static void *run_accept(void *arg)
{
	struct web_thread *thread = thread_begin();
	bool admitted = false;

	for (;;) {
		int fd;

		if (!admitted)
			await_admission();
		fd = accept4(listener, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
		admitted = fd < 0;
		if (fd >= 0)
			begin(thread, fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			usleep(PAUSE_US);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	command_parse(&command, "web-stages", options, argc, argv);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0) {
		command_complain("epoll", errno);
		return 1;
	}
	listener = command_listen(&command);
	for (int i = 0; i < STAGES; i++)
		for (unsigned int n = 0; n < stages[i].threads; n++)
			command_start(stages[i].run, &stages[i]);
	command_wait(false);
}
