/* SPDX-License-Identifier: MIT */
/*
 * What the web servers' programs have in common: options, sockets that listen,
 * the counters of all threads and copies, and the end.
 *
 * A program blocks these signals before it has threads (command_parse() does),
 * starts its threads or copies, and calls command_wait(). Its first line of output
 * is the port.
 */
#ifndef WEBSERVER_COMMAND_H
#define WEBSERVER_COMMAND_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "web.h"

/* An option of one program: a number, or, if "text" isn't NULL, a word. */
struct command_option {
	const char *name;
	unsigned int *number;
	unsigned int min, max;
	const char **text;
	const char *help;
};

struct command {
	const char *program;
	const char *address;
	unsigned int port;
	struct web web;
	struct files files;
};

/*
 * Read the arguments: common options, then the program's, ended by one without a
 * name, and the folder. Ends the process after one line if something is wrong.
 */
void command_parse(struct command *command, const char *program,
		   const struct command_option *options, int argc, char **argv);

/* What --accept says: one socket for each that accepts? Ends the process if neither. */
bool command_accepts_by_port(const char *word);

/*
 * A socket that listens; accepted sockets inherit TCP_NODELAY. The first call prints
 * the port. "shared": further sockets may listen on the port. Ends the process if it
 * fails.
 */
int command_listen(struct command *command, bool shared);

/*
 * Counters and a clock for one more thread of the process, or of a copy that is
 * forked later or was before. NULL: there are very many already.
 */
struct web_thread *command_thread(void);

/* A line on stderr with the program's name and an errno. */
void command_complain(const char *what, int error);

/*
 * Wait for SIGTERM or SIGINT, write the file of --stats, and end the process.
 * Connections are cut. "copies": the process has forked copies; if a child ends,
 * the process ends with status 1.
 */
_Noreturn void command_wait(bool copies);

/* Make a call. Its result, or -errno. */
static inline int64_t command_make(const struct web_call *call)
{
	const uint64_t *a = call->args;
	long ret = syscall(call->nr, a[0], a[1], a[2], a[3], a[4], a[5]);

	return ret < 0 ? -errno : ret;
}

#endif /* WEBSERVER_COMMAND_H */
