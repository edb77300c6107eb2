/* SPDX-License-Identifier: MIT */
/*
 * What is sent back: heads, and the bodies of messages.
 */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "file.h"

struct path;

/* Bytes that a head with a file or a listing needs in front of the body. */
#define RESPONSE_HEAD_MAX	(FILE_HEADERS_MAX + 512)

/* Bytes that a message needs, besides its location. */
#define RESPONSE_MESSAGE_MAX	1024

struct response {
	const struct clock *clock;
	int status;
	bool keep_alive;
	bool head_only;
	uint8_t minor;		/* of the client's HTTP/1.minor */
};

/*
 * Write the head for length bytes of file from first on, so that it ends at
 * body; returns its beginning.
 */
char *response_file(const struct response *response, char *body,
		    const struct file *file, uint64_t first, uint64_t length);

/* The same for length bytes of HTML. */
char *response_html(const struct response *response, char *body,
		    uint64_t length);

/* Details that some messages have. */
struct response_detail {
	const char *location;	/* of a redirection */
	size_t location_length;
	uint64_t size;		/* of the file that has no such range */
};

/* Write a whole response that tells people its status; returns its end. */
char *response_message(const struct response *response, char *p,
		       const struct response_detail *detail);

/* The status that says that a call on a file has failed with this errno. */
int response_status_of(int error);

/* Bytes of the longest query that a redirection keeps. */
#define RESPONSE_QUERY_MAX	16384

/* Bytes that response_location() needs for a path of that length. */
#define RESPONSE_LOCATION_MAX(length)	(RESPONSE_QUERY_MAX + 3 * (length) + 2)

/* Write where a folder's name without a slash leads; returns the end. */
char *response_location(char *p, const struct path *path);

/* A whole one for when there is no memory to write one. */
const char *response_busy(size_t *length);

#endif /* HTTP_RESPONSE_H */
