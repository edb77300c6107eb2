/* SPDX-License-Identifier: MIT */
#include "status.h"

#include <stdint.h>
#include <string.h>

#include "syscall.h"

/*
 * Room for the beginning of an incomplete line, which is kept while the remainder is
 * read.
 */
#define LINE	256U

static void read_line(const char *line, struct status_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t size = strlen(values[i].name);

		if (strncmp(line, values[i].name, size) != 0)
			continue;
		line += size;
		line += strspn(line, "\t ");
		strncpy(values[i].text, line, sizeof(values[i].text) - 1);
		return;
	}
}

/* Reads all complete lines. Returns the last line, which is incomplete, or empty. */
static const char *read_lines(char *text, struct status_value *values, size_t n)
{
	char *end;

	while ((end = strchr(text, '\n'))) {
		*end = '\0';
		read_line(text, values, n);
		text = end + 1;
	}
	return text;
}

bool flexsc__status_read(int fd, long nr, struct status_value *values, size_t n)
{
	char text[4096];
	bool any = false;
	uint64_t position = 0;
	size_t have = 0;
	long more;

	for (size_t i = 0; i < n; i++)
		memset(values[i].text, 0, sizeof(values[i].text));
	/*
	 * Read until the end: the kernel generates the text at the first read, and
	 * may return it in several parts.
	 */
	while ((more = raw_syscall(nr, (uint64_t)fd, PTR(text + have),
				   sizeof(text) - 1 - have, position, 0, 0)) > 0) {
		const char *rest;

		any = true;
		position += (uint64_t)more;
		text[have + (size_t)more] = '\0';
		rest = read_lines(text, values, n);
		have = strnlen(rest, LINE);
		memmove(text, rest, have);
	}
	return any;
}
