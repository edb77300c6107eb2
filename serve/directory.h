/* SPDX-License-Identifier: MIT */
/*
 * The listing of a folder that has no index.html.
 */
#ifndef SERVE_DIRECTORY_H
#define SERVE_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

/* More names than this are counted, not listed. */
#define DIRECTORY_NAMES	16384

struct directory;

/*
 * Start a listing. If "all" is set, it includes names that begin with a dot.
 * NULL: no memory.
 */
struct directory *directory_create(bool all);
void directory_destroy(struct directory *directory);

/* Add the records that getdents64() returned. False: no memory. */
bool directory_add(struct directory *directory, const char *records,
		   size_t length);

/*
 * Return the page for the folder at "path", from malloc(), with "head" bytes of
 * free room in front of it. NULL: no memory.
 */
char *directory_page(struct directory *directory, const char *path,
		     size_t path_length, size_t head, size_t *length);

#endif /* SERVE_DIRECTORY_H */
