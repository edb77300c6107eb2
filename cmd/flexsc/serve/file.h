/* SPDX-License-Identifier: MIT */
/*
 * An open file and what heads say about it.
 */
#ifndef SERVE_FILE_H
#define SERVE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <linux/stat.h>

#include <flexsc/call.h>

#include "clock.h"
#include "mime.h"
#include "text.h"

struct flexsc_loop;
struct cached;

/* A quoted string of three numbers. */
#define FILE_ETAG_MAX	(3 * TEXT_HEX_MAX + 4)

#define FILE_HEADERS_MAX						\
	(sizeof("Content-Type: \r\nLast-Modified: \r\nETag: \r\n"	\
		"Accept-Ranges: bytes\r\n") +				\
	 MIME_TYPE_MAX + CLOCK_DATE_LEN + FILE_ETAG_MAX)

struct file {
	int fd;			/* -1: none */
	struct cached *cached;	/* whose descriptor it is; NULL: our own */
	const char *contents;	/* mapped by the cache; NULL: not */
	uint64_t size;
	time_t modified;
	/* "Content-Type: ...", all of its headers but Content-Length. */
	uint16_t headers_length;
	uint16_t date_at;	/* of Last-Modified in headers */
	uint16_t etag_at;	/* with its quotes */
	uint16_t etag_length;
	char headers[FILE_HEADERS_MAX];
};

/* Post what fills stx for the file; the only place that knows how. */
int file_stat(struct flexsc_loop *loop, struct flexsc_cb *cb, int fd,
	      struct statx *stx);

/* Fill in all but fd and cached from stx. */
void file_describe(struct file *file, const struct statx *stx,
		   struct mime mime);

static inline const char *file_date(const struct file *file)
{
	return file->headers + file->date_at;
}

static inline const char *file_etag(const struct file *file)
{
	return file->headers + file->etag_at;
}

#endif /* SERVE_FILE_H */
