/* SPDX-License-Identifier: MIT */
/*
 * A worker: one loop with everything that runs on it. Workers share nothing
 * but the settings and the log's file.
 */
#ifndef SERVE_WORKER_H
#define SERVE_WORKER_H

#include <flexsc/call.h>

#include "connection.h"
#include "environment.h"
#include "listener.h"

/* SIGTERM, SIGINT, SIGUSR1, and SIGHUP if there is a log to be reopened. */
#define WORKER_SIGNALS	4

struct worker {
	struct environment env;
	struct clients clients;
	struct listener listener;
	struct flexsc_cb signals[WORKER_SIGNALS];
	struct flexsc_cb grace;
	struct flexsc_cb ask;		/* worker_ask_stop() */
};

/*
 * Make a loop for the calling thread, and begin to accept from socket, which
 * becomes the worker's, even on failure. 0, or -errno after a message.
 */
int worker_init(struct worker *worker, const struct settings *settings,
		int socket);

/* Serve until told to stop. 0, or -errno after a message. */
int worker_run(struct worker *worker);

/* End a worker, on the thread that made it, whether that succeeded or not. */
void worker_fini(struct worker *worker);

/*
 * Stop a worker as SIGTERM does. From any thread, before the worker's own
 * begins to end it.
 */
void worker_ask_stop(struct worker *worker);

#endif /* SERVE_WORKER_H */
