/* SPDX-License-Identifier: MIT */
/* Formats what is sent back: heads, and the bodies of messages. */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "file.h"

struct path;

/* Bytes needed for a head in front of a file's or a listing's body. */
#define RESPONSE_HEAD_MAX	(FILE_HEADERS_MAX + 512)

/* Bytes needed for a message, besides its location. */
#define RESPONSE_MESSAGE_MAX	1024

struct response {
	const struct clock *clock;
	int status;
	bool keep_alive;
	bool head_only;
	uint8_t minor;		/* of the client's HTTP/1.minor */
};

/*
 * Write a head for "length" bytes of the file from offset "first" on. The head
 * ends at "body". Returns its beginning.
 */
char *response_file(const struct response *response, char *body,
		    const struct file *file, uint64_t first, uint64_t length);

/*
 * Write a head for "length" bytes of HTML, which ends at "body". Returns its
 * beginning.
 */
char *response_html(const struct response *response, char *body,
		    uint64_t length);

/* Details of a message, which only some statuses need. */
struct response_detail {
	const char *location;	/* for a redirection */
	size_t location_length;
	uint64_t size;		/* for 416: the file's size */
};

/* Write a response that explains its status to people; returns its end. */
char *response_message(const struct response *response, char *p,
		       const struct response_detail *detail);

/* The status for a file's call that failed with this errno. */
int response_status_of(int error);

/* The longest query that a redirection keeps, in bytes. */
#define RESPONSE_QUERY_MAX	16384

/* Bytes needed by response_location() for a path of that length. */
#define RESPONSE_LOCATION_MAX(length)	(RESPONSE_QUERY_MAX + 3 * (length) + 2)

/*
 * Write the location to which a request for a folder without a "/" at the end
 * is redirected: the path with the "/", and the query. Returns the end.
 */
char *response_location(char *p, const struct path *path);

/* A complete, constant 503 response, for when no memory is left. */
const char *response_busy(size_t *length);

#endif /* HTTP_RESPONSE_H */
