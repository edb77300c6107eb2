/* SPDX-License-Identifier: MIT */
/*
 * Files that are kept open for the next request of the same name. Any thread
 * may call the functions: one lock protects the cache (http/cache.h). The
 * functions make no system call, unless two threads want the lock at once. The
 * caller closes the descriptors that the cache gives up.
 */
#ifndef WEBSERVER_FILES_H
#define WEBSERVER_FILES_H

#include <pthread.h>

#include "http/cache.h"

struct path;

/* Descriptors that the cache gave up, for the caller to close. */
#define DROPPED_MAX	4

struct dropped {
	int fds[DROPPED_MAX];
	unsigned int count;
};

struct files {
	pthread_mutex_t lock;
	struct cache cache;
	struct dropped *dropped;	/* of the thread that has the lock */
};

/* limit: how many files are kept at most; 0: no file is kept or found. */
void files_init(struct files *files, unsigned int limit);

/*
 * As cache_find(), cache_insert(), cache_forget() and cache_release().
 * Descriptors to close are appended to "dropped".
 */
struct file *files_find(struct files *files, const struct path *path);
struct file *files_insert(struct files *files, const struct path *path,
			  const struct file *file, struct dropped *dropped);
void files_forget(struct files *files, const struct path *path,
		  struct dropped *dropped);
void files_release(struct files *files, struct file *file,
		   struct dropped *dropped);

#endif /* WEBSERVER_FILES_H */
