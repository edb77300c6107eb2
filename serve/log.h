/* SPDX-License-Identifier: MIT */
/*
 * The access log, in the common log format.
 */
#ifndef SERVE_LOG_H
#define SERVE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <flexsc/call.h>

#include "http/clock.h"

#define LOG_BUFFER	65536

struct flexsc_loop;

/* The part that all workers share. */
struct log_file {
	const char *name;
	int fd;			/* open until all workers have duplicated it; or -1 */
	_Atomic bool told;	/* a message has reported the loss of lines */
	_Atomic uint64_t dropped;
	/*
	 * How many workers have yet to reopen the file. The last one calls
	 * reopened(), which may run on any worker's thread.
	 */
	_Atomic unsigned int reopening;
	void (*reopened)(void *arg);
	void *arg;
};

struct log {
	struct log_file *file;
	struct flexsc_loop *loop;
	struct flexsc_cb write;
	struct flexsc_cb timer;
	struct flexsc_cb open;
	int fd;			/* the worker's descriptor; -1: no log */
	int next;		/* the reopened file, to use after the pending write; or -1 */
	bool opening;
	bool writing;
	bool waiting;		/* the timer is pending */
	bool closing;
	char *fill;		/* collected lines */
	char *out;		/* lines that are being written */
	size_t filled;
	size_t out_at;
	size_t out_length;
};

struct log_line {
	const char *peer;
	const char *method;
	const char *target;	/* as received, or NULL */
	size_t target_length;
	uint8_t minor;
	int status;
	uint64_t sent;		/* bytes of the body */
};

/* Open the file for appending; "-" is standard output. Returns 0 or -errno. */
int log_open(struct log_file *file, const char *name);

int log_init(struct log *log, struct log_file *file, struct flexsc_loop *loop);

/*
 * Close the descriptor of log_open(), after every worker has called log_init().
 * Otherwise a file that is renamed and removed later would keep its disk
 * blocks.
 */
void log_file_close(struct log_file *file);

/* Add a line without waiting. If there is no room, drop and count the line. */
void log_write(struct log *log, const struct clock *clock,
	       const struct log_line *line);

/* Does the file have a name, so that it can be reopened? */
static inline bool log_has_name(const struct log_file *file)
{
	return file->name && strcmp(file->name, "-") != 0;
}

/*
 * Open the file's name again, because the file was renamed, and write to the
 * new file. A buffer that is being written still goes to the renamed file. Call
 * this again only after all workers have reopened the file.
 */
void log_reopen(struct log *log);

/*
 * Post the write of the collected lines, with a deadline of one second. Post
 * nothing else after this, so that the loop ends.
 */
void log_close(struct log *log);

void log_fini(struct log *log);

static inline bool log_enabled(const struct log *log)
{
	return log->fd >= 0;
}

#endif /* SERVE_LOG_H */
