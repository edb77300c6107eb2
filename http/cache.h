/* SPDX-License-Identifier: MIT */
/*
 * Open files, kept for the next request of the same name: descriptors, what
 * heads say about them, and where the kernel has the contents of small ones.
 */
#ifndef HTTP_CACHE_H
#define HTTP_CACHE_H

#include <stddef.h>

#include "file.h"

/* For so long a file under another name's place may go unnoticed. */
#define CACHE_VALID	(1 * CLOCK_SECOND)

struct cache {
	void (*close)(void *arg, int fd);	/* NULL: at once */
	void *arg;
	struct cached *table;	/* by name */
	struct cached *oldest;	/* in the order of use */
	unsigned int count;
	unsigned int limit;	/* 0: no cache */
};

/*
 * The file of that name, if it is here and was looked at within CACHE_VALID.
 * When it is older, one caller in CACHE_VALID gets NULL, in order to open it
 * anew; the others have the old one meanwhile. Pair with cache_release().
 */
struct file *cache_find(struct cache *cache, const char *name, size_t length);

/*
 * Keep file, which has just been opened and described, under that name in
 * place of what was there; takes the descriptor. Returns the kept one, as
 * cache_find() does, or NULL if it can't be kept: then file remains the
 * caller's.
 */
struct file *cache_insert(struct cache *cache, const char *name, size_t length,
			  const struct file *file);

/* The name leads nowhere any more. */
void cache_forget(struct cache *cache, const char *name, size_t length);

/*
 * Map the contents of a small file, which were just read, so that answers can
 * be sent from there. They change when the file does. Where a file has become
 * shorter, sending fails.
 */
void cache_map(struct file *file);

void cache_release(struct cache *cache, struct file *file);

/* When all are released. Closes at once. */
void cache_fini(struct cache *cache);

#endif /* HTTP_CACHE_H */
