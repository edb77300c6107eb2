/* SPDX-License-Identifier: MIT */
/*
 * Media types: a built-in table for the files of common web pages, and the
 * system's /etc/mime.types for the rest. Only mime_load() writes, while there
 * is one thread; after that all threads only read.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mime.h"

#define EXTENSION_MAX	15

struct row {
	char extension[EXTENSION_MAX + 1];	/* lower case, padded with zeros */
	const char *type;
};

/* Sorted by memcmp(). Text is declared as UTF-8, which it nearly always is. */
static const struct row builtin[] = {
	{ "avif",	"image/avif" },
	{ "bmp",	"image/bmp" },
	{ "bz2",	"application/x-bzip2" },
	{ "c",		"text/plain; charset=utf-8" },
	{ "css",	"text/css; charset=utf-8" },
	{ "csv",	"text/csv; charset=utf-8" },
	{ "gif",	"image/gif" },
	{ "gz",		"application/gzip" },
	{ "h",		"text/plain; charset=utf-8" },
	{ "htm",	"text/html; charset=utf-8" },
	{ "html",	"text/html; charset=utf-8" },
	{ "ico",	"image/x-icon" },
	{ "jpeg",	"image/jpeg" },
	{ "jpg",	"image/jpeg" },
	{ "js",		"text/javascript; charset=utf-8" },
	{ "json",	"application/json" },
	{ "log",	"text/plain; charset=utf-8" },
	{ "md",		"text/markdown; charset=utf-8" },
	{ "mjs",	"text/javascript; charset=utf-8" },
	{ "mp3",	"audio/mpeg" },
	{ "mp4",	"video/mp4" },
	{ "ogg",	"audio/ogg" },
	{ "pdf",	"application/pdf" },
	{ "png",	"image/png" },
	{ "svg",	"image/svg+xml" },
	{ "tar",	"application/x-tar" },
	{ "tif",	"image/tiff" },
	{ "tiff",	"image/tiff" },
	{ "txt",	"text/plain; charset=utf-8" },
	{ "wasm",	"application/wasm" },
	{ "wav",	"audio/wav" },
	{ "webm",	"video/webm" },
	{ "webmanifest", "application/manifest+json" },
	{ "webp",	"image/webp" },
	{ "woff",	"font/woff" },
	{ "woff2",	"font/woff2" },
	{ "xhtml",	"application/xhtml+xml" },
	{ "xml",	"application/xml" },
	{ "xz",		"application/x-xz" },
	{ "zip",	"application/zip" },
	{ "zst",	"application/zstd" },
};

#define BUILTIN (sizeof(builtin) / sizeof(*builtin))

static struct row *loaded;
static size_t nloaded;

static int compare(const void *a, const void *b)
{
	return memcmp(((const struct row *)a)->extension,
		      ((const struct row *)b)->extension, EXTENSION_MAX);
}

static bool set_extension(struct row *row, const char *from, size_t length)
{
	size_t i;

	if (length == 0 || length > EXTENSION_MAX)
		return false;
	memset(row->extension, 0, sizeof(row->extension));
	for (i = 0; i < length; i++) {
		char c = from[i];

		row->extension[i] = c >= 'A' && c <= 'Z' ? c + 32 : c;
	}
	return true;
}

/* Add a row. True: the table refers to "type", which must not be freed. */
static bool add(const char *extension, const char *type)
{
	struct row row = { .type = type };

	if (!set_extension(&row, extension, strlen(extension)))
		return false;
	if ((nloaded & (nloaded - 1)) == 0) {
		size_t room = nloaded ? 2 * nloaded : 1;
		struct row *rows = reallocarray(loaded, room, sizeof(*rows));

		if (!rows)
			return false;
		loaded = rows;
	}
	loaded[nloaded++] = row;
	return true;
}

/* Parse "type extension extension", or a comment. */
static void load_line(char *line)
{
	char *state, *type = strtok_r(line, " \t\r\n", &state);
	char *extension = strtok_r(NULL, " \t\r\n", &state);
	bool used = false;

	if (!extension || *type == '#' || strlen(type) > MIME_TYPE_MAX)
		return;
	type = strdup(type);
	for (; type && extension; extension = strtok_r(NULL, " \t\r\n", &state))
		used |= add(extension, type);
	if (!used)
		free(type);
}

void mime_load(void)
{
	FILE *file = fopen("/etc/mime.types", "re");
	char line[1024];

	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		load_line(line);
	fclose(file);
	qsort(loaded, nloaded, sizeof(*loaded), compare);
}

static const struct row *find(const char *extension, size_t length)
{
	const struct row *found;
	struct row key;

	if (!set_extension(&key, extension, length))
		return NULL;
	found = bsearch(&key, builtin, BUILTIN, sizeof(key), compare);
	if (!found && nloaded)
		found = bsearch(&key, loaded, nloaded, sizeof(key), compare);
	return found;
}

struct mime mime_find(const char *path, size_t length)
{
	const char *name = memrchr(path, '/', length);
	const char *end = path + length, *dot;
	const struct row *row = NULL;
	const char *type;

	name = name ? name + 1 : path;
	dot = memrchr(name, '.', end - name);
	/* A file named ".profile" has no extension. */
	if (dot && dot != name)
		row = find(dot + 1, end - dot - 1);
	type = row ? row->type : "application/octet-stream";
	return (struct mime){ .type = type, .length = strlen(type) };
}
