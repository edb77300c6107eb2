/* SPDX-License-Identifier: MIT */
/*
 * Open files, kept for the next request with the same name: descriptors, the
 * file's part of heads, and the mapped contents of small files.
 */
#ifndef HTTP_CACHE_H
#define HTTP_CACHE_H

#include <stddef.h>

#include "file.h"

/* How long an entry stays valid although another file may have replaced it. */
#define CACHE_VALID	(1 * CLOCK_SECOND)

struct cache {
	void (*close)(void *arg, int fd);	/* NULL: close() at once */
	void *arg;
	struct cached *table;	/* keyed by name */
	struct cached *oldest;	/* list, the least recently used first */
	unsigned int count;
	unsigned int limit;	/* 0: no cache */
};

/*
 * Return the file of that name, if the cache has it and it was checked within
 * CACHE_VALID. If the entry is older, one caller per CACHE_VALID gets NULL and
 * has to open the file anew. The others get the old file meanwhile. Release the
 * file by cache_release().
 */
struct file *cache_find(struct cache *cache, const char *name, size_t length);

/*
 * Keep "file", which was just opened and described, in place of any older file
 * of that name. Takes over the descriptor. Returns the kept file, as
 * cache_find() does. NULL: it can't be kept, and the caller still owns "file".
 */
struct file *cache_insert(struct cache *cache, const char *name, size_t length,
			  const struct file *file);

/* Remove the name, because it leads to no file any more. */
void cache_forget(struct cache *cache, const char *name, size_t length);

/*
 * Map the contents of a small file that was just read, so that answers can be
 * sent from the mapping. The mapping shows later changes of the file. If the
 * file becomes shorter, sending fails.
 */
void cache_map(struct file *file);

void cache_release(struct cache *cache, struct file *file);

/* Close all files at once. All must have been released. */
void cache_fini(struct cache *cache);

#endif /* HTTP_CACHE_H */
