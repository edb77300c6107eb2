/* SPDX-License-Identifier: MIT */
/*
 * A worker: one loop with everything that runs on it. Workers share nothing
 * but the settings and the log's file.
 */
#ifndef SERVE_WORKER_H
#define SERVE_WORKER_H

#include <stdbool.h>

#include <linux/openat2.h>

#include <flexsc/call.h>

#include "buffer.h"
#include "cache.h"
#include "clock.h"
#include "listener.h"
#include "log.h"
#include "settings.h"

struct flexsc_loop;
struct connection;

struct worker {
	struct flexsc_loop *loop;
	const struct settings *settings;
	struct clock clock;
	struct pool pool;
	struct cache cache;
	struct log log;
	struct listener listener;
	/* Arguments of openat2(), for a file and for a folder. */
	struct open_how how_file;
	struct open_how how_folder;
	/* Clients that wait between two requests, longest first; others. */
	struct connection *idle;
	struct connection *busy;
	struct connection *unused;
	unsigned int connections;
	unsigned int max_connections;
	struct flexsc_cb signals[2];
	struct flexsc_cb grace;
	struct flexsc_cb ask;		/* worker_ask_stop() */
	bool stopping;
};

/*
 * Make a loop for the calling thread, and begin to accept from socket, which
 * becomes the worker's, even on failure. 0, or -errno after a message.
 */
int worker_init(struct worker *worker, const struct settings *settings,
		int socket);

/* Serve until told to stop. 0, or -errno after a message. */
int worker_run(struct worker *worker);

/* On the thread that made it, whether that succeeded or not. */
void worker_fini(struct worker *worker);

/* From any thread, before the worker's own begins to end it: as SIGTERM. */
void worker_ask_stop(struct worker *worker);

/* Descriptors or places are short: close the longest idle client, if any. */
bool worker_shed(struct worker *worker);

/* A connection has gone. */
void worker_left(struct worker *worker);

#endif /* SERVE_WORKER_H */
