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

/* What all workers share. */
struct log_file {
	const char *name;
	int fd;			/* until all workers have their own; or -1 */
	_Atomic bool told;	/* that lines are being lost */
	_Atomic uint64_t dropped;
};

struct log {
	struct log_file *file;
	struct flexsc_loop *loop;
	struct flexsc_cb write;
	struct flexsc_cb timer;
	struct flexsc_cb open;
	int fd;			/* of this worker; -1: no log */
	int next;		/* reopened, and used after the current write; or -1 */
	bool opening;
	bool again;		/* it is to be opened once more after that */
	bool writing;
	bool waiting;		/* the timer runs */
	bool closing;
	char *fill;		/* lines that wait */
	char *out;		/* lines being written */
	size_t filled;
	size_t out_at;
	size_t out_length;
};

struct log_line {
	const char *peer;
	const char *method;
	const char *target;	/* as it came, or NULL */
	size_t target_length;
	uint8_t minor;
	int status;
	uint64_t sent;		/* bytes of body */
};

/* Open for appending; "-" is standard output. 0 or -errno. */
int log_open(struct log_file *file, const char *name);

int log_init(struct log *log, struct log_file *file, struct flexsc_loop *loop);

/*
 * Close the file that log_open() opened, when every worker has called log_init(). Else a
 * file that is renamed and removed later would keep its blocks.
 */
void log_file_close(struct log_file *file);

/* Never waits; a line that finds no room is counted and lost. */
void log_write(struct log *log, const struct clock *clock,
	       const struct log_line *line);

/* Has the file a name, so that it can be reopened? */
static inline bool log_has_name(const struct log_file *file)
{
	return file->name && strcmp(file->name, "-") != 0;
}

/*
 * The file was renamed: open one of its old name again, and go on there. A buffer that
 * is being written still goes to the renamed file.
 */
void log_reopen(struct log *log);

/* Write what is there, within a second; nothing is posted after that. */
void log_close(struct log *log);

void log_fini(struct log *log);

static inline bool log_enabled(const struct log *log)
{
	return log->fd >= 0;
}

#endif /* SERVE_LOG_H */
