/* SPDX-License-Identifier: MIT */
/*
 * The access log of one worker; runs on its thread. One buffer collects lines
 * while the other one is written. A buffer is written LATENCY after its first
 * line, or earlier. The file is opened for appending, so the buffers of several
 * workers don't overwrite each other. When a write fails, its lines are dropped
 * and counted, the first failure is reported by a message, and the next buffer
 * is tried again.
 *
 * Each worker has its own descriptor. When the file is reopened, a worker
 * switches to the new descriptor as soon as it isn't writing a buffer. Only
 * then does the worker count as having reopened the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <flexsc/flexsc.h>

#include "log.h"
#include "http/text.h"

#define LATENCY		(CLOCK_SECOND / 5)
#define ENOUGH		(LOG_BUFFER / 4)	/* a buffer with this many
						 * bytes is written at once */
#define TARGET_MAX	4096			/* longest logged target, in bytes
						 * before escaping */
#define LINE_MAX_SIZE	(256 + 4 * TARGET_MAX)

#define HOW_TO_OPEN	(O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY)
#define MODE		0644

int log_open(struct log_file *file, const char *name)
{
	*file = (struct log_file){ .name = name, .fd = -1 };
	if (!name)
		return 0;
	if (strcmp(name, "-") == 0)
		file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	else
		file->fd = open(name, HOW_TO_OPEN, MODE);
	return file->fd < 0 ? -errno : 0;
}

static uint64_t count_lines(const char *p, size_t length)
{
	const char *end = p + length;
	uint64_t n = 0;

	while ((p = memchr(p, '\n', end - p))) {
		n++;
		p++;
	}
	return n;
}

/* Drop and count the lines of a failed write. */
static void fail(struct log *log, int error)
{
	log->file->dropped += count_lines(log->out + log->out_at,
					  log->out_length - log->out_at);
	log->out_at = log->out_length;
	if (!atomic_exchange(&log->file->told, true))
		fprintf(stderr, "flexsc: access log %s: %s; lines are dropped "
				"until writing works again\n",
			log->file->name, strerror(error));
}

static void write_out(struct log *log)
{
	int rc = flexsc_loop_write(log->loop, &log->write, log->fd,
				   log->out + log->out_at,
				   log->out_length - log->out_at);

	log->writing = rc == 0;
	if (rc)
		fail(log, -rc);
	else if (log->closing)
		flexsc_loop_deadline(log->loop, &log->write, CLOCK_SECOND);
}

static void flush(struct log *log)
{
	char *full = log->fill;

	log->fill = log->out;
	log->out = full;
	log->out_at = 0;
	log->out_length = log->filled;
	log->filled = 0;
	write_out(log);
}

/* Write the collected lines, now or soon, unless a write is pending. */
static void schedule(struct log *log)
{
	if (log->filled >= ENOUGH || (log->closing && log->filled))
		flush(log);
	else if (log->filled && !log->waiting)
		log->waiting = flexsc_loop_timer(log->loop, &log->timer,
						 LATENCY) == 0;
}

static void end_reopening(struct log *log)
{
	if (atomic_fetch_sub(&log->file->reopening, 1) == 1)
		log->file->reopened(log->file->arg);
}

/* Switch to the reopened file, unless a write to the old one is pending. */
static void use_next(struct log *log)
{
	if (log->writing || log->next < 0)
		return;
	flexsc_loop_close(log->loop, NULL, log->fd);
	log->fd = log->next;
	log->next = -1;
	end_reopening(log);
}

static void on_written(struct flexsc_cb *cb)
{
	struct log *log = cb->arg;

	log->writing = false;
	if (cb->ret > 0)
		log->out_at += cb->ret;
	else if (cb->ret != -EINTR)
		fail(log, cb->ret ? -cb->ret : EIO);
	if (log->out_at < log->out_length)
		write_out(log);
	if (log->writing)
		return;
	use_next(log);
	schedule(log);
}

static void on_timer(struct flexsc_cb *cb)
{
	struct log *log = cb->arg;

	log->waiting = false;
	/* A full buffer was written early, so there may be nothing to write. */
	if (!log->writing && log->filled)
		flush(log);
}

static void on_opened(struct flexsc_cb *cb)
{
	struct log *log = cb->arg;

	log->opening = false;
	if (cb->ret < 0) {
		if (!log->closing)
			fprintf(stderr, "flexsc: can't reopen access log %s: "
					"%s; still writing to the old file\n",
				log->file->name, strerror((int)-cb->ret));
		end_reopening(log);
	} else {
		log->next = (int)cb->ret;
		use_next(log);
	}
}

void log_reopen(struct log *log)
{
	if (!log->closing)
		log->opening = flexsc_loop_openat(log->loop, &log->open,
						  AT_FDCWD, log->file->name,
						  HOW_TO_OPEN, MODE) == 0;
	if (!log->opening)
		end_reopening(log);
}

int log_init(struct log *log, struct log_file *file, struct flexsc_loop *loop)
{
	*log = (struct log){
		.file = file,
		.loop = loop,
		.write = { .callback = on_written, .arg = log },
		.timer = { .callback = on_timer, .arg = log },
		.open = { .callback = on_opened, .arg = log },
		.fd = -1,
		.next = -1,
	};
	if (file->fd < 0)
		return 0;
	log->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	if (log->fd < 0)
		return -errno;
	log->fill = malloc(LOG_BUFFER);
	log->out = malloc(LOG_BUFFER);
	return log->fill && log->out ? 0 : -ENOMEM;
}

void log_file_close(struct log_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

/*
 * Escape text, so that clients can't forge lines. Each byte becomes at most
 * four.
 */
static char *put_escaped(char *p, const char *text, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++) {
		unsigned char c = text[i];

		if (c >= ' ' && c < 0x7f && c != '"' && c != '\\') {
			*p++ = c;
			continue;
		}
		p = TEXT_PUT(p, "\\x");
		*p++ = "0123456789abcdef"[c >> 4];
		*p++ = "0123456789abcdef"[c & 15];
	}
	return p;
}

static char *put_request(char *p, const struct log_line *line)
{
	size_t length = line->target_length;

	*p++ = '"';
	if (line->target) {
		p = text_put(p, line->method, strlen(line->method));
		*p++ = ' ';
		p = put_escaped(p, line->target,
				length < TARGET_MAX ? length : TARGET_MAX);
		p = TEXT_PUT(p, " HTTP/1.");
		*p++ = '0' + line->minor % 10;
	} else {
		*p++ = '-';
	}
	*p++ = '"';
	return p;
}

void log_write(struct log *log, const struct clock *clock,
	       const struct log_line *line)
{
	char *p = log->fill + log->filled;

	if (LOG_BUFFER - log->filled < LINE_MAX_SIZE) {
		log->file->dropped++;
		return;
	}
	p = text_put(p, line->peer, strlen(line->peer));
	p = TEXT_PUT(p, " - - [");
	p = text_put(p, clock->log, CLOCK_LOG_LEN);
	p = TEXT_PUT(p, "] ");
	p = put_request(p, line);
	*p++ = ' ';
	p = text_decimal(p, line->status);
	*p++ = ' ';
	p = text_decimal(p, line->sent);
	*p++ = '\n';
	log->filled = p - log->fill;
	if (!log->writing)
		schedule(log);
}

void log_close(struct log *log)
{
	log->closing = true;
	if (log->opening)
		flexsc_loop_cancel(log->loop, &log->open);
	if (log->waiting)
		flexsc_loop_cancel(log->loop, &log->timer);
	if (log->writing)
		flexsc_loop_deadline(log->loop, &log->write, CLOCK_SECOND);
	else
		schedule(log);
}

void log_fini(struct log *log)
{
	/* log->fill is NULL if the worker failed before log_init(). */
	if (log->fill) {
		close(log->fd);
		if (log->next >= 0)
			close(log->next);
	}
	free(log->fill);
	free(log->out);
}
