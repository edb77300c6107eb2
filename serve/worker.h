/* SPDX-License-Identifier: MIT */
/*
 * A worker: one loop and everything that runs on it. Workers share only the
 * settings and the log's file.
 */
#ifndef SERVE_WORKER_H
#define SERVE_WORKER_H

#include <stdbool.h>

#include <sys/types.h>

#include <flexsc/call.h>

#include "connection.h"
#include "environment.h"
#include "listener.h"

/*
 * A worker handles SIGTERM and SIGINT. The first worker also handles SIGUSR1,
 * and SIGHUP if the log can be reopened.
 */
#define WORKER_SIGNALS	4

struct worker {
	struct environment env;
	struct clients clients;
	struct listener listener;
	struct flexsc_cb signals[WORKER_SIGNALS];
	struct flexsc_cb grace;
	struct flexsc_cb ask;		/* posted by worker_ask_stop() */
	struct flexsc_cb reopen;	/* posted by the first worker */
	pid_t tid;
	bool closing;
	/* The list of all workers; set before the first one runs. */
	struct worker *next;
	/* The rest is for the first worker only. */
	bool first;
	bool reopening;		/* some worker has yet to reopen the log */
	bool again;		/* another signal arrived while "reopening" was set */
	/* posted by the last worker that has reopened the log */
	struct flexsc_cb reopened;
};

/*
 * Make a loop for the calling thread, and begin to accept from "socket". The
 * worker owns the socket from now on, even on failure. first: this worker
 * reopens the log for all, and reports to the service manager. Returns 0, or
 * -errno after a message.
 */
int worker_init(struct worker *worker, const struct settings *settings,
		int socket, bool first);

/* Serve until stopped. Returns 0, or -errno after a message. */
int worker_run(struct worker *worker);

/*
 * End a worker, on the thread that called worker_init(), even if worker_init()
 * failed.
 */
void worker_fini(struct worker *worker);

/*
 * Stop a worker as SIGTERM does. Any thread may call this until the worker's
 * own thread begins to end it.
 */
void worker_ask_stop(struct worker *worker);

#endif /* SERVE_WORKER_H */
