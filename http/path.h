/* SPDX-License-Identifier: MIT */
/*
 * From a request's target to a file's name below the served folder.
 */
#ifndef HTTP_PATH_H
#define HTTP_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* The file a directory is asked for. */
#define PATH_INDEX	"index.html"
#define PATH_INDEX_LEN	(sizeof(PATH_INDEX) - 1)

struct path {
	char *name;		/* "a/b", no "/" around it; "." for the root */
	size_t length;
	bool directory;		/* the target ended in "/" */
	const char *query;	/* "?..." within the target, or empty */
	size_t query_length;
};

/*
 * Decode target, in origin or absolute form, into name, which has size bytes
 * and keeps room for PATH_INDEX. Returns 0 or the HTTP status that answers:
 * 400 for what is no path, 403 for one that climbs out, 404 for a name with a
 * dot in front unless all, 414 for one that is too long.
 */
int path_resolve(struct path *path, const char *target, size_t length,
		 char *name, size_t size, bool all);

/* Put "index.html" behind a directory's name, and take it away again. */
void path_push_index(struct path *path);
void path_pop_index(struct path *path);

/* Append name as a URL, without a "/" in front; at most 3 bytes for one. */
char *path_encode(char *p, const char *name, size_t length);

#endif /* HTTP_PATH_H */
