/* SPDX-License-Identifier: MIT */
/*
 * The common parts of the web servers' programs: options, listening sockets,
 * the counters of all threads and copies, and the end of the process. A copy is
 * a forked process.
 *
 * A program's main thread calls command_parse(), which blocks SIGTERM, SIGINT
 * and SIGCHLD, then command_listen(), starts its threads or copies, and calls
 * command_wait(). The program's first line of output is the port. Any thread
 * may call command_thread(), command_complain() and command_make().
 */
#ifndef WEBSERVER_COMMAND_H
#define WEBSERVER_COMMAND_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "web.h"

/* An option: a number from min to max, or, if "text" isn't NULL, a word. */
struct command_option {
	const char *name;
	unsigned int *number;
	unsigned int min, max;
	const char **text;
};

#define COMMAND_NUMBER(word, where, least, most) \
	{ .name = (word), .number = (where), .min = (least), .max = (most) }

struct command {
	const char *program;
	const char *address;
	unsigned int port;
	struct web web;
};

/*
 * Parse the arguments: the folder, the common options, and the program's
 * options. The last element of "options" has no name. Exits after a message if
 * an argument is wrong.
 */
void command_parse(struct command *command, const char *program,
		   const struct command_option *options, int argc, char **argv);

/*
 * Make the listening socket, and print the port. Accepted sockets inherit
 * TCP_NODELAY. Exits after a message on failure.
 */
int command_listen(struct command *command);

/*
 * Counters and a clock for an additional thread of the process or of a copy;
 * valid until the program ends. NULL: 32,768 threads have theirs already.
 */
struct web_thread *command_thread(void);

/* Start a thread. Exits after a message on failure. */
void command_start(void *(*run)(void *), void *arg);

/* Print a message with the program's name and an errno. */
void command_complain(const char *what, int error);

/*
 * Wait for SIGTERM or SIGINT, write the file of --stats, and exit with status
 * 0. Connections are cut. copies: the process has copies; if one of them ends,
 * the process exits with status 1.
 */
_Noreturn void command_wait(bool copies);

/* Make a call. Returns its result or -errno. */
static inline int64_t command_make(const struct web_call *call)
{
	const uint64_t *a = call->args;
	long ret = syscall(call->nr, a[0], a[1], a[2], a[3], a[4], a[5]);

	return ret < 0 ? -errno : ret;
}

#endif /* WEBSERVER_COMMAND_H */
