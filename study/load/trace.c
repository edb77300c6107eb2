/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "trace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define THINK_MAX	86400	/* seconds */
#define TOLD_MAX	64	/* characters of a wrong word that are printed */
#define BLANKS		" \t\r\n"

/* State of reading a trace. */
struct reading {
	struct bench_trace *trace;
	const struct bench_fileset *set;
	const char *path;
	unsigned long line;
	double scale;		/* ns per second of think= */
	bool within;		/* the session has at least one request */
};

/*
 * Report an error in the current line. "what" may be text of the file: its
 * beginning is printed, in printable characters.
 */
static int complain(const struct reading *reading, const char *what,
		    const char *why)
{
	char told[TOLD_MAX];
	size_t n = 0;

	for (; what[n] && n < TOLD_MAX - 1; n++)
		told[n] = what[n] >= ' ' && what[n] < 0x7f ? what[n] : '?';
	told[n] = '\0';
	fprintf(stderr, "flexsc: study: load: %s: line %lu: %s: %s\n",
		reading->path, reading->line, told, why);
	return 1;
}

/*
 * Make room for one more element. Returns the array, which may have moved, or
 * NULL.
 */
static void *grow(void *array, size_t count, size_t *room, size_t size)
{
	void *grown = array;

	if (count < *room)
		return array;
	*room = *room ? 2 * *room : 256;
	grown = reallocarray(array, *room, size);
	return grown;
}

static int no_memory(const struct reading *reading)
{
	return complain(reading, "out of memory", "give a shorter trace");
}

/* Add a request to the current session, or to a new one. */
static int add(struct reading *reading, const char *target)
{
	struct bench_trace *trace = reading->trace;
	struct bench_page *pages;
	const struct bench_file *file = NULL;
	size_t *firsts;

	if (*target == '/')
		file = bench_fileset_find(reading->set, target + 1);
	if (!file)
		return complain(reading, target, "give a file of the file set, "
						 "such as /pages/1024");
	pages = grow(trace->pages, trace->page_count, &trace->page_room,
		     sizeof(*pages));
	if (!pages)
		return no_memory(reading);
	trace->pages = pages;
	firsts = grow(trace->firsts, trace->session_count + 1,
		      &trace->session_room, sizeof(*firsts));
	if (!firsts)
		return no_memory(reading);
	trace->firsts = firsts;
	if (!reading->within)
		firsts[trace->session_count++] = trace->page_count;
	reading->within = true;
	bench_page_of(&pages[trace->page_count++], target, file->body,
		      file->size);
	firsts[trace->session_count] = trace->page_count;
	return 0;
}

/* Parse KEY=VALUE, which follows the file's name. */
static int set(struct reading *reading, const char *word)
{
	struct bench_trace *trace = reading->trace;
	char *end = NULL;
	double think = 0;

	if (strncmp(word, "think=", 6) == 0)
		think = strtod(word + 6, &end);
	if (!end || end == word + 6 || *end || !(think >= 0) ||
	    think > THINK_MAX)
		return complain(reading, word, "give think=SECONDS, from 0 "
				"to 86400");
	trace->pages[trace->page_count - 1].think =
		(uint64_t)(think * reading->scale);
	return 0;
}

static int read_request(struct reading *reading, char *line)
{
	char *at = NULL, *word = strtok_r(line, BLANKS, &at);
	int err = add(reading, word);

	while (!err && (word = strtok_r(NULL, BLANKS, &at)))
		err = set(reading, word);
	return err;
}

static int read_lines(struct reading *reading, FILE *file)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int err = 0;

	while (!err && (n = getline(&line, &room, file)) >= 0) {
		reading->line++;
		if (strlen(line) != (size_t)n)
			err = complain(reading, "a byte 0",
				       "the file isn't a trace");
		else if (!line[strspn(line, BLANKS)])
			reading->within = false;
		else if (*line != '#')
			err = read_request(reading, line);
	}
	if (!err && !feof(file))
		err = complain(reading, "reading", strerror(errno));
	if (!err && !reading->trace->page_count)
		err = complain(reading, "the end", "the trace has no request");
	free(line);
	return err;
}

int bench_trace_read(struct bench_trace *trace, const char *path,
		     const struct bench_fileset *set, long think)
{
	struct reading reading = {
		.trace = trace, .path = path, .set = set, .scale = 1e7 * (double)think,
	};
	FILE *file;
	int err;

	*trace = (struct bench_trace){ };
	file = fopen(path, "re");
	if (!file) {
		fprintf(stderr, "flexsc: study: load: %s: %s\n", path,
			strerror(errno));
		return 1;
	}
	err = read_lines(&reading, file);
	fclose(file);
	return err;
}

void bench_trace_fini(struct bench_trace *trace)
{
	free(trace->pages);
	free(trace->firsts);
}

struct bench_page *bench_trace_session(const struct bench_trace *trace,
				       size_t index, size_t *left)
{
	size_t first = trace->firsts[index % trace->session_count];
	size_t end = trace->firsts[index % trace->session_count + 1];

	*left = end - first - 1;
	return &trace->pages[first];
}
