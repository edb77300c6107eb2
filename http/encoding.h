/* SPDX-License-Identifier: MIT */
/* The encodings of compressed files that a client accepts. */
#ifndef HTTP_ENCODING_H
#define HTTP_ENCODING_H

struct request;

/* The server prefers an accepted encoding with a larger number. */
enum encoding {
	ENCODING_NONE,
	ENCODING_GZIP,
	ENCODING_BR,
	ENCODINGS
};

/*
 * The encodings that Accept-Encoding accepts, as bits (1 << ENCODING_GZIP ...).
 * ENCODING_NONE is always accepted and has no bit.
 */
unsigned int encoding_accepted(const struct request *request,
			       const char *head);

#endif /* HTTP_ENCODING_H */
