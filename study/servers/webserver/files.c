/* SPDX-License-Identifier: MIT */
#include "files.h"

#include "http/path.h"

/*
 * A call drops two files at most: the old file of the name, and the file that
 * has been unused for the longest time.
 */
static void drop(void *arg, int fd)
{
	struct dropped *dropped = ((struct files *)arg)->dropped;

	dropped->fds[dropped->count++] = fd;
}

void files_init(struct files *files, unsigned int limit)
{
	*files = (struct files){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.cache = { .close = drop, .arg = files, .limit = limit },
	};
}

static void files_lock(struct files *files, struct dropped *dropped)
{
	pthread_mutex_lock(&files->lock);
	files->dropped = dropped;
}

static void files_unlock(struct files *files)
{
	pthread_mutex_unlock(&files->lock);
}

struct file *files_find(struct files *files, const struct path *path)
{
	struct file *file;

	if (!files->cache.limit)
		return NULL;
	files_lock(files, NULL);
	file = cache_find(&files->cache, path->name, path->length);
	files_unlock(files);
	return file;
}

struct file *files_insert(struct files *files, const struct path *path,
			  const struct file *file, struct dropped *dropped)
{
	struct file *kept;

	if (!files->cache.limit)
		return NULL;
	files_lock(files, dropped);
	kept = cache_insert(&files->cache, path->name, path->length, file);
	files_unlock(files);
	return kept;
}

void files_forget(struct files *files, const struct path *path,
		  struct dropped *dropped)
{
	if (!files->cache.limit)
		return;
	files_lock(files, dropped);
	cache_forget(&files->cache, path->name, path->length);
	files_unlock(files);
}

void files_release(struct files *files, struct file *file,
		   struct dropped *dropped)
{
	files_lock(files, dropped);
	cache_release(&files->cache, file);
	files_unlock(files);
}
