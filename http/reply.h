/* SPDX-License-Identifier: MIT */
/*
 * The head of an answer, as a client receives it: however it is cut to pieces, and
 * without a copy. The body is the caller's.
 */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>

struct reply {
	llhttp_t parser;
	size_t size;		/* bytes of the head that have come */
	bool complete;		/* the head has come; these are known: */
	bool has_length;
	bool keep_alive;
	int status;		/* of HTTP/1.1; 0: another version */
	uint64_t length;	/* Content-Length */
	const char *wrong;	/* NULL, or why this is no head */
};

/* Start over with the next answer. */
void reply_init(struct reply *reply);

/*
 * Parse bytes that have come, up to the end of the head. Returns how many of them
 * belong to the head. Parse no more once it is complete or wrong.
 */
size_t reply_parse(struct reply *reply, const char *data, size_t n);

#endif /* HTTP_REPLY_H */
