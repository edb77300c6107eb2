/* SPDX-License-Identifier: MIT */
/* An open file, and the headers that describe it. */
#ifndef HTTP_FILE_H
#define HTTP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* musl before 1.2.4 has no struct statx. */
#ifndef STATX_TYPE
#include <linux/stat.h>
#endif

#include "clock.h"
#include "mime.h"
#include "text.h"

struct cached;

/* The tag is a quoted string of three numbers. */
#define FILE_ETAG_MAX	(3 * TEXT_HEX_MAX + 4)

/* Maximum length of the headers that a server adds to those of a file. */
#define FILE_MORE_MAX	192

#define FILE_HEADERS_MAX						\
	(FILE_MORE_MAX +						\
	 sizeof("Content-Type: \r\nLast-Modified: \r\nETag: \r\n"	\
		"Accept-Ranges: bytes\r\n") +				\
	 MIME_TYPE_MAX + CLOCK_DATE_LEN + FILE_ETAG_MAX)

struct file {
	int fd;			/* -1: not open */
	struct cached *cached;	/* the cache entry that owns the descriptor; NULL:
				 * this struct does */
	const char *contents;	/* mapped by the cache; NULL: not mapped */
	uint64_t size;
	time_t modified;
	/* "Content-Type: ...": all headers of the file but Content-Length. */
	uint16_t headers_length;
	uint16_t date_at;	/* offset of Last-Modified in headers */
	uint16_t etag_at;	/* offset of the tag, which includes its quotes */
	uint16_t etag_length;
	char headers[FILE_HEADERS_MAX];
};

/* The statx() mask that file_describe() needs. */
#define FILE_STATX	(STATX_TYPE | STATX_SIZE | STATX_MTIME | STATX_INO)

/* Further headers, each with its line's end. */
struct file_more {
	size_t length;
	char text[FILE_MORE_MAX];
};

/* Set all fields except "fd" and "cached" from stx. "more" may be NULL. */
void file_describe(struct file *file, const struct statx *stx,
		   struct mime mime, const struct file_more *more);

static inline const char *file_date(const struct file *file)
{
	return file->headers + file->date_at;
}

static inline const char *file_etag(const struct file *file)
{
	return file->headers + file->etag_at;
}

#endif /* HTTP_FILE_H */
