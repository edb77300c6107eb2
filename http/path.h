/* SPDX-License-Identifier: MIT */
/* Converts a request's target to a file's name below the served folder. */
#ifndef HTTP_PATH_H
#define HTTP_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* The file that is served for a directory. */
#define PATH_INDEX	"index.html"
#define PATH_INDEX_LEN	(sizeof(PATH_INDEX) - 1)

struct path {
	char *name;		/* "a/b", without leading or trailing "/"; "." is the root */
	size_t length;
	bool directory;		/* the target ends in "/" */
	const char *query;	/* the query within the target: "?..." or empty */
	size_t query_length;
};

/*
 * Decode "target", in origin or absolute form, into "name", which has "size"
 * bytes and keeps room for PATH_INDEX. Returns 0, or the HTTP status of the
 * answer:
 * - 400: not a path
 * - 403: it leads out of the root
 * - 404: a name begins with a dot, unless "all" is set
 * - 414: it is too long
 */
int path_resolve(struct path *path, const char *target, size_t length,
		 char *name, size_t size, bool all);

/* Append "index.html" to a directory's name, and remove it again. */
void path_push_index(struct path *path);
void path_pop_index(struct path *path);

/*
 * Append "name" to a URL, without a leading "/". Each byte becomes at most
 * three.
 */
char *path_encode(char *p, const char *name, size_t length);

#endif /* HTTP_PATH_H */
