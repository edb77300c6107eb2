/* SPDX-License-Identifier: MIT */
/*
 * Names of files. Pure functions. A name that they return is safe by itself: it
 * contains no "..", isn't empty and isn't absolute. The kernel keeps symbolic
 * links inside the root (openat2() in answer.c).
 */
#include <string.h>

#include "path.h"
#include "text.h"

static int hex(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Decode the byte at *from, and advance *from. Returns -1 if no name can
 * contain it.
 */
static int decode(const char **from, const char *end)
{
	const char *p = *from;
	int byte = (unsigned char)*p;

	*from = p + 1;
	if (byte == '%') {
		int high = end - p < 3 ? -1 : hex(p[1]);
		int low = high < 0 ? -1 : hex(p[2]);

		if (low < 0)
			return -1;
		byte = high << 4 | low;
		*from = p + 3;
	}
	return byte ? byte : -1;
}

/* Skip "http://host" in front of the path. Without a path, the path is "/". */
static void skip_authority(const char **target, const char *end)
{
	const char *p = *target;
	const char *colon = memchr(p, ':', end - p);

	if (p == end || *p == '/' || !colon || end - colon < 3 ||
	    memcmp(colon, "://", 3) != 0)
		return;
	for (p = colon + 3; p < end && *p != '/' && *p != '?' && *p != '#'; )
		p++;
	*target = p;
}

/* Find the end of the path, where the query or the fragment begins. */
static const char *split_query(struct path *path, const char *p,
			       const char *end)
{
	const char *stop = memchr(p, '#', end - p);
	const char *query;

	if (stop)
		end = stop;
	query = memchr(p, '?', end - p) ?: end;
	path->query = query;
	path->query_length = end - query;
	return query;
}

/*
 * Handle the end of the name's last segment, which begins at "start". Drop it
 * if it is "." or empty; if it is "..", drop it and its parent. Returns a
 * status.
 */
static int close_segment(struct path *path, size_t start, bool all)
{
	const char *segment = path->name + start;
	size_t length = path->length - start;

	if (length == 0)
		return 0;
	if (*segment != '.')
		return 0;
	if (length == 1) {
		path->length = start;
		return 0;
	}
	if (length == 2 && segment[1] == '.') {
		if (start == 0)
			return 403;
		/* Go back to the "/" in front of the parent. */
		for (path->length = start - 1; path->length > 0; path->length--)
			if (path->name[path->length - 1] == '/')
				break;
		return 0;
	}
	if (all || (start == 0 && length == 11 &&
		    memcmp(segment, ".well-known", 11) == 0))
		return 0;
	return 404;
}

/*
 * Finish the name: remove the slash at its end, and terminate it. An empty name
 * becomes ".".
 */
static void finish(struct path *path)
{
	path->directory = path->length == 0 ||
			  path->name[path->length - 1] == '/';
	if (path->length == 0)
		path->name[path->length++] = '.';
	else if (path->directory)
		path->length--;
	path->name[path->length] = '\0';
}

int path_resolve(struct path *path, const char *target, size_t length,
		 char *name, size_t size, bool all)
{
	const char *p = target, *end = target + length;
	size_t start = 0, limit = size - PATH_INDEX_LEN - 2;
	int status;

	*path = (struct path){ .name = name };
	skip_authority(&p, end);
	end = split_query(path, p, end);
	if (p < end ? *p != '/' : p == target)
		return 400;
	while (p < end) {
		int c = decode(&p, end);

		if (c < 0)
			return 400;
		if (path->length >= limit)
			return 414;
		if (c != '/') {
			name[path->length++] = c;
			continue;
		}
		status = close_segment(path, start, all);
		if (status)
			return status;
		if (path->length && name[path->length - 1] != '/')
			name[path->length++] = '/';
		start = path->length;
	}
	status = close_segment(path, start, all);
	if (status)
		return status;
	finish(path);
	return 0;
}

void path_push_index(struct path *path)
{
	char *p = path->name + path->length;

	if (path->length == 1 && *path->name == '.')
		p = path->name;
	else
		*p++ = '/';
	p = TEXT_PUT(p, PATH_INDEX);
	*p = '\0';
	path->length = p - path->name;
}

void path_pop_index(struct path *path)
{
	path->length -= PATH_INDEX_LEN;
	finish(path);
}

static bool plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c && strchr("-._~/!$()*,;=@+", c));
}

char *path_encode(char *p, const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++) {
		unsigned char c = name[i];

		if (plain(c))
			*p++ = c;
		else
			p = text_percent(p, c);
	}
	return p;
}
