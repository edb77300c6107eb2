/* SPDX-License-Identifier: MIT */
/*
 * One request, as it arrives.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>

#define REQUEST_HEAD_MAX	32768

struct limits {
	size_t head;		/* bytes of request line and headers */
	uint64_t body;
};

/* Headers that are understood. */
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
	HEADERS
};

/* Where something lies in the head. */
struct span {
	uint32_t at;
	uint32_t length;
};

/* What request_parse() returns, besides HTTP statuses from 400 on. */
enum request_state {
	REQUEST_IDLE,		/* nothing of it has come */
	REQUEST_HEAD,		/* more is needed */
	REQUEST_BODY,		/* the same; the head is complete */
	REQUEST_READY,		/* it is complete */
};

struct request {
	llhttp_t parser;
	const struct limits *limits;
	const char *head;	/* its first byte, while there is a callback */
	enum request_state state;
	int status;		/* why it's refused, or 0 */
	size_t length;		/* of the head, once it is complete */
	uint64_t body;		/* bytes after it, framing included */
	bool keep_alive;
	bool unread;		/* there is a body that nobody will read */
	uint8_t method;		/* enum llhttp_method */
	uint8_t minor;		/* HTTP/1.minor */
	uint8_t current;	/* the header being read, HEADERS: another */
	struct span name;	/* and its name */
	struct span target;
	struct span header[HEADERS];	/* without blanks around them */
	uint8_t count[HEADERS];	/* how often each was there, up to 2 */
};

/* Start over with the next request. */
void request_init(struct request *request, const struct limits *limits);

/*
 * Bytes from to to (exclusive) of what begins at head are new. Those before
 * are as they were, but head may be another address than the last time.
 * *used is how many, counted from head, belong to this request.
 */
int request_parse(struct request *request, const char *head, size_t from,
		  size_t to, size_t *used);

/*
 * The value of a header within head, when that is complete; NULL unless the header was
 * there just once.
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
 * The same for a header that is a list, and may be there several times: *at is 0
 * for the first value, and NULL comes after the last.
 */
const char *request_next_header(const struct request *request, const char *head,
				enum header header, size_t *at, size_t *length);

#endif /* HTTP_REQUEST_H */
