/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "head.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS	" \t"

size_t bench_head_size(const char *data, size_t size)
{
	const char *end = memmem(data, size, "\r\n\r\n", 4);

	return end ? (size_t)(end + 4 - data) : 0;
}

bool bench_head_is_right(const char *head, size_t size)
{
	static const char status[] = "HTTP/1.1 200 ";

	return size >= sizeof(status) - 1 &&
	       memcmp(head, status, sizeof(status) - 1) == 0;
}

/* A field's value, which ends before "\r"; NULL: the head has no such field. */
static const char *field(const char *head, size_t size, const char *name)
{
	const char *end = head + size, *line = head;
	size_t length = strlen(name);

	while ((line = memmem(line, (size_t)(end - line), "\r\n", 2))) {
		line += 2;
		if ((size_t)(end - line) > length && line[length] == ':' &&
		    strncasecmp(line, name, length) == 0)
			return line + length + 1 +
			       strspn(line + length + 1, BLANKS);
	}
	return NULL;
}

/* Is this the end of a field, but for blanks? */
static bool ends(const char *at)
{
	return at[strspn(at, BLANKS)] == '\r';
}

long bench_head_length(const char *head, size_t size)
{
	const char *value = field(head, size, "Content-Length");
	char *end;
	long length;

	if (!value || !isdigit((unsigned char)*value))
		return -1;
	length = strtol(value, &end, 10);
	return ends(end) ? length : -1;
}

bool bench_head_closes(const char *head, size_t size)
{
	static const char word[] = "close";
	const char *value = field(head, size, "Connection");

	return value && strncasecmp(value, word, sizeof(word) - 1) == 0 &&
	       ends(value + sizeof(word) - 1);
}
