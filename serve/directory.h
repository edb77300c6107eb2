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

/* NULL: no memory. all: with names that begin with a dot. */
struct directory *directory_create(bool all);
void directory_destroy(struct directory *directory);

/* Take what getdents64() has put into records; false: no memory. */
bool directory_add(struct directory *directory, const char *records,
		   size_t length);

/*
 * The page for the folder at path, with head bytes of room in front of it.
 * From malloc(); NULL: no memory.
 */
char *directory_page(struct directory *directory, const char *path,
		     size_t path_length, size_t head, size_t *length);

#endif /* SERVE_DIRECTORY_H */
