/* SPDX-License-Identifier: MIT */
/* One request, parsed as its bytes arrive. */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>

#define REQUEST_HEAD_MAX	32768

struct limits {
	size_t head;		/* bytes of the request line and the headers */
	uint64_t body;
};

/*
 * The headers that are interpreted. Parsing records the headers before HEADERS.
 * request_next_header() searches the head for the other ones, and is called
 * only by functions that need one.
 */
enum header {
	HEADER_HOST,
	HEADER_RANGE,
	HEADER_IF_RANGE,
	HEADER_IF_MATCH,
	HEADER_IF_NONE_MATCH,
	HEADER_IF_MODIFIED_SINCE,
	HEADER_IF_UNMODIFIED_SINCE,
	HEADER_EXPECT,
	HEADER_TRANSFER_ENCODING,
	HEADERS,
	HEADER_ACCEPT_ENCODING = HEADERS,
	HEADER_NAMES
};

/* A part of the head, by offset and length. */
struct span {
	uint32_t at;
	uint32_t length;
};

/* What request_parse() returns, besides HTTP statuses from 400 on. */
enum request_state {
	REQUEST_IDLE,		/* no byte of it has been received */
	REQUEST_HEAD,		/* the head is incomplete */
	REQUEST_BODY,		/* the head is complete, the body is not */
	REQUEST_READY,		/* the request is complete */
};

struct request {
	llhttp_t parser;
	const struct limits *limits;
	const char *head;	/* the head's first byte, valid during callbacks */
	enum request_state state;
	int status;		/* the status that refuses it, or 0 */
	size_t length;		/* length of the head, set when the head is complete */
	uint64_t body;		/* bytes after the head, including chunk framing */
	bool keep_alive;
	bool unread;		/* the request has a body that won't be read */
	uint8_t method;		/* enum llhttp_method */
	uint8_t minor;		/* HTTP/1.minor */
	/* the header that is being read; HEADERS: an unknown one */
	uint8_t current;
	struct span name;	/* the name of that header */
	struct span target;
	struct span header[HEADERS];	/* values without surrounding blanks */
	uint8_t count[HEADERS];	/* occurrences of each header, counted up to 2 */
};

void request_init(struct request *request, const struct limits *limits);

/*
 * Parse the bytes from offset "from" to "to" (exclusive) after "head". The
 * bytes before "from" must be unchanged, but may have moved since the last
 * call. *used is set to the number of bytes after "head" that belong to this
 * request.
 */
int request_parse(struct request *request, const char *head, size_t from,
		  size_t to, size_t *used);

/*
 * The value of a header within the head, which must be complete. NULL unless
 * the header occurs exactly once.
 */
static inline const char *request_header(const struct request *request,
					 const char *head, enum header header,
					 size_t *length)
{
	if (request->count[header] != 1)
		return NULL;
	*length = request->header[header].length;
	return head + request->header[header].at;
}

/*
 * The next value of a header that is a list and may occur several times: start
 * with *at = 0. NULL comes after the last value.
 */
const char *request_next_header(const struct request *request, const char *head,
				enum header header, size_t *at, size_t *length);

#endif /* HTTP_REQUEST_H */
