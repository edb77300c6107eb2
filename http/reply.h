/* SPDX-License-Identifier: MIT */
/*
 * Parses the head of an answer, for a client. The head may arrive in pieces of
 * any length, and isn't copied. The body is left to the caller.
 */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>

struct reply {
	llhttp_t parser;
	size_t size;		/* bytes of the head received so far */
	bool complete;		/* the head is complete; these are valid: */
	bool has_length;
	bool keep_alive;
	int status;		/* status of an HTTP/1.1 answer; 0: another version */
	uint64_t length;	/* Content-Length */
	const char *wrong;	/* NULL, or why the head is invalid */
};

/* Begin with the next answer. */
void reply_init(struct reply *reply);

/*
 * Parse received bytes up to the end of the head. Returns how many of them
 * belong to the head. Don't call this again once the head is complete or
 * invalid.
 */
size_t reply_parse(struct reply *reply, const char *data, size_t n);

#endif /* HTTP_REPLY_H */
