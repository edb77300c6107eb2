/* SPDX-License-Identifier: MIT */
/*
 * Small files that are kept open, by name ("flexsc_keep"). Each request makes a
 * stat() of the name, which checks the same rights on the way to the file as
 * open(). If the name leads to the same file, with the same owner and mode,
 * opening it would give the same file again.
 *
 * Only the descriptor is kept. The contents are read for each answer, because a
 * change can't be detected: a file's times advance with a coarse clock, and a
 * write sets them before its bytes are stored.
 *
 * The table has one place per hash of a name, and a later file replaces an
 * earlier one. Pending answers keep using the file that they found.
 */
#include "module.h"

struct kept {
	struct stat st;
	int fd;
	ngx_uint_t uses;	/* references: pending answers, and the table */
	size_t length;
	u_char name[];
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

/*
 * Compare identity and rights. Only the change time shows that an access
 * control list has changed.
 */
static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_mode == b->st_mode && a->st_uid == b->st_uid &&
	       a->st_gid == b->st_gid &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

void keep_release(struct kept *k)
{
	if (!k || --k->uses)
		return;
	close(k->fd);
	ngx_free(k);
}

int keep_fd(const struct kept *k)
{
	return k->fd;
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

struct kept *keep_add(const ngx_str_t *name, const struct stat *st, int fd,
		      ngx_log_t *log)
{
	struct kept **place, *k;

	if (!places)
		return NULL;
	k = ngx_alloc(sizeof(*k) + name->len, log);
	if (!k)
		return NULL;
	k->st = *st;
	k->fd = fd;
	k->uses = 2;
	k->length = name->len;
	ngx_memcpy(k->name, name->data, name->len);
	place = place_of(name);
	keep_release(*place);
	*place = k;
	return k;
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
