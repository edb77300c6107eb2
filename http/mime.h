/* SPDX-License-Identifier: MIT */
/*
 * Media types by a file name's extension.
 */
#ifndef HTTP_MIME_H
#define HTTP_MIME_H

#include <stddef.h>

#define MIME_TYPE_MAX	100	/* longest name of a type */

struct mime {
	const char *type;
	size_t length;
};

/*
 * Call this once, before there are threads. Without this call, fewer types are
 * known.
 */
void mime_load(void);

/*
 * The media type of the file at path; application/octet-stream if it is
 * unknown.
 */
struct mime mime_find(const char *path, size_t length);

#endif /* HTTP_MIME_H */
