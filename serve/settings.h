/* SPDX-License-Identifier: MIT */
/*
 * What the command line asked for. Written before there are workers, read by
 * all of them.
 */
#ifndef SERVE_SETTINGS_H
#define SERVE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"
#include "http/request.h"

struct settings {
	const char *root;
	const char *address;
	const char *port;
	const char *engine;		/* NULL: the best that works */
	const char *cores;
	const char *log;
	bool all;			/* names with a dot in front, too */
	unsigned int loops;
	unsigned int cache;
	unsigned int max_connections;
	uint64_t timeout;		/* nanoseconds */
	uint64_t grace;
	struct limits limits;
	/* Beside max_connections, for each loop; by what descriptors there are. */
	unsigned int max_refused;
	/* Opened by command_serve(). */
	int root_fd;
	struct log_file *log_file;	/* shared by all workers */
};

/*
 * -1 to go on, else the exit status: 0 after --help, 2 after one line about
 * what is wrong.
 */
int settings_parse(struct settings *settings, int argc, char **argv);

#endif /* SERVE_SETTINGS_H */
