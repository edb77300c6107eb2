/* SPDX-License-Identifier: MIT */
/*
 * Contents of small files, kept by name ("flexsc_keep"). A request for one looks
 * at the name, as open() would, and at nothing else: while it leads to the same
 * file, and that hasn't been written to or changed its owner or mode, opening and
 * reading it would give the same bytes.
 *
 * A file's times have the clock's grain, so a file that was changed just now isn't
 * kept yet: it could change once more at the same time. What the times don't tell
 * is written through a shared mapping.
 *
 * The table has one place for a name, and who comes later gets it. Answers that
 * are on their way use what they have found until they are sent.
 */
#include "module.h"

#define GRAIN_S	0.02	/* more than a tick of any kernel's */

struct kept {
	struct stat st;
	ngx_uint_t uses;	/* answers, and the table */
	size_t length;
	u_char *name;
	u_char contents[];
};

static struct kept **table;
static ngx_uint_t places;

static struct kept **place_of(const ngx_str_t *name)
{
	return &table[ngx_murmur_hash2(name->data, name->len) % places];
}

static bool is_named(const struct kept *k, const ngx_str_t *name)
{
	return k->length == name->len &&
	       ngx_memcmp(k->name, name->data, name->len) == 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size && same_time(&a->st_mtim, &b->st_mtim) &&
	       same_time(&a->st_ctim, &b->st_ctim);
}

void keep_release(struct kept *k)
{
	if (k && --k->uses == 0)
		ngx_free(k);
}

const u_char *keep_contents(const struct kept *k)
{
	return k->contents;
}

struct kept *keep_find(const ngx_str_t *name, struct stat *st)
{
	struct kept **place, *k;

	if (!places)
		return NULL;
	place = place_of(name);
	k = *place;
	if (!k || !is_named(k, name))
		return NULL;
	if (stat((const char *)name->data, st) < 0 || !is_same(st, &k->st)) {
		*place = NULL;
		keep_release(k);
		return NULL;
	}
	k->uses++;
	return k;
}

bool keep_is_settled(const struct stat *st)
{
	struct timespec now;

	if (!places)
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	return (double)(now.tv_sec - st->st_ctim.tv_sec) +
	       (double)(now.tv_nsec - st->st_ctim.tv_nsec) / 1e9 > GRAIN_S;
}

void keep_add(const ngx_str_t *name, const struct stat *st,
	      const u_char *contents, ngx_log_t *log)
{
	struct kept **place, *k;
	size_t size = (size_t)st->st_size;

	k = ngx_alloc(sizeof(*k) + size + name->len, log);
	if (!k)
		return;
	k->st = *st;
	k->uses = 1;
	k->length = name->len;
	k->name = k->contents + size;
	ngx_memcpy(k->contents, contents, size);
	ngx_memcpy(k->name, name->data, name->len);
	place = place_of(name);
	keep_release(*place);
	*place = k;
}

ngx_int_t keep_init(ngx_uint_t files, ngx_log_t *log)
{
	if (!files)
		return NGX_OK;
	table = ngx_calloc(files * sizeof(struct kept *), log);
	if (!table)
		return NGX_ERROR;
	places = files;
	return NGX_OK;
}
