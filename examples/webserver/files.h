/* SPDX-License-Identifier: MIT */
/*
 * Files that are kept open for the next request of the same name. All functions
 * may be called by any thread: one lock protects the cache (http/cache.h). They
 * make no system call but for a lock that is held; descriptors that aren't needed
 * any more are the caller's to close.
 */
#ifndef WEBSERVER_FILES_H
#define WEBSERVER_FILES_H

#include <pthread.h>

#include "http/cache.h"

struct path;

/* Descriptors that the cache gave up during a caller's function. */
#define DROPPED_MAX	4

struct dropped {
	int fds[DROPPED_MAX];
	unsigned int count;
};

struct files {
	pthread_mutex_t lock;
	struct cache cache;
	struct dropped *dropped;	/* the caller's, with the lock */
};

/* limit: files that are kept; 0: none, and the functions do nothing. */
void files_init(struct files *files, unsigned int limit);

/* As cache_find(), cache_insert(), cache_forget() and cache_release(). */
struct file *files_find(struct files *files, const struct path *path);
struct file *files_insert(struct files *files, const struct path *path,
			  const struct file *file, struct dropped *dropped);
void files_forget(struct files *files, const struct path *path,
		  struct dropped *dropped);
void files_release(struct files *files, struct file *file,
		   struct dropped *dropped);

#endif /* WEBSERVER_FILES_H */
