/* SPDX-License-Identifier: MIT */
/*
 * A web server with libflexsc: threads, each with a loop. Every call is posted.
 * A call's callback passes the result to the connection (web.h), and posts the
 * next call.
 *
 * 	web-loops [OPTION]... DIR
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <flexsc/flexsc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "command.h"

#define PAUSE_NS	20000000ULL	/* pause before accepting again after an error */

struct client {
	struct flexsc_cb cb;
	struct web_connection web;
};

/* The owner of a loop, which is a thread. */
struct owner {
	struct flexsc_loop *loop;
	struct web_thread *thread;
	struct flexsc_cb accept, pause;
	int listener;
};

static struct command command;
static unsigned int loops = 1;

/* Each thread's owner: callbacks find their thread's loop here. */
static __thread struct owner self;

static const struct command_option options[] = {
	COMMAND_NUMBER("loops", &loops, 1, 1024),
	{ 0 },
};

/* Post the connection's next call. If posting fails, the call has failed. */
static void post(struct client *client)
{
	struct web_call call;

	while (web_next(&client->web, &call)) {
		const uint64_t *a = call.args;
		int err;

		err = flexsc_loop_call(self.loop, &client->cb, call.nr,
				       a[0], a[1], a[2], a[3], a[4], a[5]);
		if (err) {
			web_done(&client->web, call.kind == WEB_CLOSE ?
				 command_make(&call) : err);
			continue;
		}
		if (call.patience)
			flexsc_loop_deadline(self.loop, &client->cb,
					     call.patience);
		return;
	}
	free(client);
}

static void on_done(struct flexsc_cb *cb)
{
	struct client *client = cb->arg;

	web_done(&client->web, cb->ret);
	post(client);
}

static void begin(int fd)
{
	struct client *client = malloc(sizeof(*client));

	if (!client) {
		close(fd);
		return;
	}
	client->cb = (struct flexsc_cb){ .callback = on_done, .arg = client };
	web_begin(&client->web, &command.web, self.thread, fd);
	post(client);
}

static void accept_again(struct flexsc_cb *cb)
{
	int err = flexsc_loop_accept_multishot(self.loop, &self.accept,
					       self.listener, SOCK_CLOEXEC);

	(void)cb;
	if (!err || !flexsc_loop_timer(self.loop, &self.pause, PAUSE_NS))
		return;
	command_complain("accepting", -err);
	_exit(1);
}

/*
 * A result is a client's descriptor, or an error, which ends the multishot
 * call.
 */
static void on_accept(struct flexsc_cb *cb)
{
	bool more = flexsc_cb_more(cb);
	int64_t ret = cb->ret;

	if (ret >= 0)
		begin((int)ret);
	if (more)
		return;
	if (ret >= 0 || ret == -ECONNABORTED || ret == -EINTR ||
	    flexsc_loop_timer(self.loop, &self.pause, PAUSE_NS))
		accept_again(cb);
}

/*
 * Set SCHED_BATCH. io_uring makes calls on files on kernel threads that inherit
 * the policy. With SCHED_OTHER such a thread preempts the loop's thread for
 * each file. With SCHED_BATCH it runs when the loop's thread sleeps.
 */
static void run_in_batches(void)
{
	const struct sched_param none = { 0 };

	sched_setscheduler(0, SCHED_BATCH, &none);
}

static void *run(void *arg)
{
	int err;

	self.listener = *(int *)arg;
	self.accept.callback = on_accept;
	self.pause.callback = accept_again;
	self.thread = command_thread();
	run_in_batches();
	err = self.thread ? flexsc_loop_create(&self.loop, NULL) : -ENOMEM;
	if (err) {
		command_complain("no loop", -err);
		_exit(1);
	}
	/*
	 * Open files without O_NONBLOCK, because with the flag io_uring's reads
	 * don't wait for the disk. Without the flag, opening a pipe that has no
	 * writer doesn't wait either if the kernel has the path's names in
	 * memory. Otherwise a thread of io_uring waits until the call's time
	 * limit.
	 */
	if (!strcmp(flexsc_loop_engine(self.loop), "uring"))
		__atomic_and_fetch(&command.web.how.flags, ~(uint64_t)O_NONBLOCK,
				   __ATOMIC_RELAXED);
	accept_again(NULL);
	flexsc_loop_run(self.loop);
	_exit(1);
}

int main(int argc, char **argv)
{
	int listener;

	command_parse(&command, "web-loops", options, argc, argv);
	listener = command_listen(&command);
	for (unsigned int i = 0; i < loops; i++)
		command_start(run, &listener);
	command_wait(false);
}
