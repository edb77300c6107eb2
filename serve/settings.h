/* SPDX-License-Identifier: MIT */
/*
 * The settings from the command line. Written before any worker starts, read by
 * all.
 */
#ifndef SERVE_SETTINGS_H
#define SERVE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"
#include "http/encoding.h"
#include "http/file.h"
#include "http/request.h"

struct settings {
	const char *root;
	const char *address;
	const char *port;
	const char *engine;		/* NULL: the best engine that works */
	const char *kernel_cores;	/* NULL: calls execute where the loops run */
	const char *log;
	const char *metrics;		/* [ADDRESS:]PORT; NULL: no metrics */
	const char *cache_control;	/* NULL: no such header */
	bool precompressed;
	bool all;			/* serve names that begin with a dot, too */
	unsigned int loops;
	unsigned int cache;
	unsigned int max_connections;
	uint64_t timeout;		/* nanoseconds */
	uint64_t grace;
	struct limits limits;
	struct file_more more[ENCODINGS];	/* headers for each encoding */
	/*
	 * Refused clients per loop, in addition to max_connections; limited by
	 * descriptors.
	 */
	unsigned int max_refused;
	/* Opened by command_serve(). */
	int root_fd;
	struct log_file *log_file;	/* shared by all workers */
	bool passed;			/* the service manager has passed the sockets */
};

/*
 * Returns -1 to continue, or else the exit status: 0 after --help, 2 after a
 * message of one line.
 */
int settings_parse(struct settings *settings, int argc, char **argv);

#endif /* SERVE_SETTINGS_H */
