/* SPDX-License-Identifier: MIT */
/*
 * A cache is used by one thread. Its table holds one reference to each file,
 * and each request that reads the file holds another. Dropping the last
 * reference closes the descriptor.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "cache.h"

struct cached {
	struct file file;
	unsigned int references;
	uint64_t checked;	/* when the file was opened, or a reopen began */
	UT_hash_handle hh;
	struct cached *prev, *next;
	char name[];
};

static void unmap(struct file *file)
{
	if (file->contents)
		munmap((void *)file->contents, file->size);
	file->contents = NULL;
}

static void drop(struct cache *cache, struct cached *entry)
{
	if (--entry->references)
		return;
	if (cache->close)
		cache->close(cache->arg, entry->file.fd);
	else
		close(entry->file.fd);
	unmap(&entry->file);
	free(entry);
}

/* Remove the entry from the table and from the list of uses. */
static void evict(struct cache *cache, struct cached *entry)
{
	HASH_DEL(cache->table, entry);
	DL_DELETE(cache->oldest, entry);
	cache->count--;
	drop(cache, entry);
}

static struct cached *look_up(struct cache *cache, const char *name,
			      size_t length)
{
	struct cached *entry;

	HASH_FIND(hh, cache->table, name, length, entry);
	return entry;
}

struct file *cache_find(struct cache *cache, const char *name, size_t length)
{
	struct cached *entry = look_up(cache, name, length);
	uint64_t now;

	if (!entry)
		return NULL;
	now = clock_ticks();
	if (now - entry->checked > CACHE_VALID) {
		entry->checked = now;
		return NULL;
	}
	DL_DELETE(cache->oldest, entry);
	DL_APPEND(cache->oldest, entry);
	entry->references++;
	return &entry->file;
}

struct file *cache_insert(struct cache *cache, const char *name, size_t length,
			  const struct file *file)
{
	struct cached *entry = look_up(cache, name, length);

	if (entry)
		evict(cache, entry);
	entry = malloc(sizeof(*entry) + length);
	if (!entry)
		return NULL;
	entry->file = *file;
	entry->file.cached = entry;
	entry->references = 2;
	entry->checked = clock_ticks();
	memcpy(entry->name, name, length);
	HASH_ADD_KEYPTR(hh, cache->table, entry->name, length, entry);
	if (!entry->hh.tbl) {
		free(entry);
		return NULL;
	}
	DL_APPEND(cache->oldest, entry);
	if (++cache->count > cache->limit)
		evict(cache, cache->oldest);
	return &entry->file;
}

void cache_forget(struct cache *cache, const char *name, size_t length)
{
	struct cached *entry = look_up(cache, name, length);

	if (entry)
		evict(cache, entry);
}

void cache_map(struct file *file)
{
	void *contents;

	if (file->contents)
		return;
	/*
	 * The pages are in memory, because the file was just read: MAP_POPULATE
	 * maps them now, and no answer has to wait for them.
	 */
	contents = mmap(NULL, file->size, PROT_READ, MAP_SHARED | MAP_POPULATE,
			file->fd, 0);
	file->contents = contents == MAP_FAILED ? NULL : contents;
}

void cache_release(struct cache *cache, struct file *file)
{
	drop(cache, file->cached);
}

void cache_fini(struct cache *cache)
{
	struct cached *entry, *next;

	DL_FOREACH_SAFE(cache->oldest, entry, next) {
		HASH_DEL(cache->table, entry);
		close(entry->file.fd);
		unmap(&entry->file);
		free(entry);
	}
	cache->oldest = NULL;
}
