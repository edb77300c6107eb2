/* SPDX-License-Identifier: MIT */
/*
 * Listings of folders. Pure functions, apart from malloc(). Names are sorted by
 * their bytes; those of folders end in a slash.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "directory.h"
#include "http/path.h"
#include "http/text.h"

struct directory {
	/* the names in sequence, each with its terminating zero */
	char *names;
	size_t length;
	size_t room;
	size_t count;
	size_t more;		/* number of names beyond the limit */
	bool all;
};

/* The record that getdents64() returns; libc declares it under another name. */
struct record {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

struct directory *directory_create(bool all)
{
	struct directory *d = calloc(1, sizeof(*d));

	if (d)
		d->all = all;
	return d;
}

void directory_destroy(struct directory *d)
{
	if (!d)
		return;
	free(d->names);
	free(d);
}

static bool add_name(struct directory *d, const char *name, bool folder)
{
	size_t n = strlen(name);

	if (d->room - d->length < n + 2) {
		size_t room = 2 * d->room + n + 4096;
		char *names = realloc(d->names, room);

		if (!names)
			return false;
		d->names = names;
		d->room = room;
	}
	memcpy(d->names + d->length, name, n);
	d->length += n;
	if (folder)
		d->names[d->length++] = '/';
	d->names[d->length++] = '\0';
	d->count++;
	return true;
}

bool directory_add(struct directory *d, const char *records, size_t length)
{
	size_t at;
	uint16_t step;

	for (at = 0; at < length; at += step) {
		const char *p = records + at;
		const char *name = p + offsetof(struct record, name);
		bool folder = p[offsetof(struct record, type)] == DT_DIR;

		memcpy(&step, p + offsetof(struct record, reclen),
		       sizeof(step));
		if (*name == '.' && (!d->all || strcmp(name, ".") == 0 ||
				     strcmp(name, "..") == 0))
			continue;
		if (d->count == DIRECTORY_NAMES)
			d->more++;
		else if (!add_name(d, name, folder))
			return false;
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char **sorted(const struct directory *d)
{
	const char **names = calloc(d->count + 1, sizeof(*names));
	const char *p = d->names;
	size_t i;

	if (!names)
		return NULL;
	for (i = 0; i < d->count; i++) {
		names[i] = p;
		p += strlen(p) + 1;
	}
	if (d->count)
		qsort(names, d->count, sizeof(*names), compare);
	return names;
}

/* Append text, escaped for HTML: each byte becomes at most six. */
static char *put_escaped(char *p, const char *text, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++) {
		switch (text[i]) {
		case '&':
			p = TEXT_PUT(p, "&amp;");
			break;
		case '<':
			p = TEXT_PUT(p, "&lt;");
			break;
		case '>':
			p = TEXT_PUT(p, "&gt;");
			break;
		case '"':
			p = TEXT_PUT(p, "&quot;");
			break;
		case '\'':
			p = TEXT_PUT(p, "&#39;");
			break;
		default:
			*p++ = text[i];
		}
	}
	return p;
}

static char *put_title(char *p, const char *path, size_t length)
{
	bool root = length == 1 && *path == '.';

	p = TEXT_PUT(p, "Index of /");
	if (root)
		return p;
	p = put_escaped(p, path, length);
	*p++ = '/';
	return p;
}

/* "./" in front keeps a browser from taking "a:" of "a:b" for a protocol. */
static char *put_link(char *p, const char *name)
{
	size_t n = strlen(name);

	p = TEXT_PUT(p, "<li><a href=\"./");
	p = path_encode(p, name, n);
	p = TEXT_PUT(p, "\">");
	p = put_escaped(p, name, n);
	return TEXT_PUT(p, "</a></li>\n");
}

static char *put_page(char *p, const struct directory *d, const char **names,
		      const char *path, size_t path_length)
{
	size_t i;

	p = TEXT_PUT(p, "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>");
	p = put_title(p, path, path_length);
	p = TEXT_PUT(p, "</title>\n<h1>");
	p = put_title(p, path, path_length);
	p = TEXT_PUT(p, "</h1>\n<ul>\n");
	if (path_length != 1 || *path != '.')
		p = TEXT_PUT(p, "<li><a href=\"../\">../</a></li>\n");
	for (i = 0; i < d->count; i++)
		p = put_link(p, names[i]);
	p = TEXT_PUT(p, "</ul>\n");
	if (d->more) {
		p = TEXT_PUT(p, "<p>and ");
		p = text_decimal(p, d->more);
		p = TEXT_PUT(p, " more</p>\n");
	}
	return p;
}

char *directory_page(struct directory *d, const char *path,
		     size_t path_length, size_t head, size_t *length)
{
	size_t room = head + 512 + 12 * path_length + 64 * d->count +
		      9 * d->length;
	const char **names = sorted(d);
	char *page = malloc(room), *smaller;

	if (!names || !page) {
		free(names);
		free(page);
		return NULL;
	}
	*length = put_page(page + head, d, names, path, path_length) -
		  (page + head);
	free(names);
	smaller = realloc(page, head + *length);
	return smaller ? smaller : page;
}
