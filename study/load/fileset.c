/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "fileset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Open the file "name" in the trace's folder. NULL after a message. */
static FILE *opened(const char *trace, const char *name)
{
	const char *slash = strrchr(trace, '/');
	FILE *file = NULL;
	char *path;

	if (asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - trace) : 0,
		     trace, name) < 0)
		return NULL;
	file = fopen(path, "re");
	if (!file)
		fprintf(stderr, "flexsc: study: load: %s: %s\n", path,
			strerror(errno));
	free(path);
	return file;
}

static int read_sheet(struct bench_fileset *set, FILE *file)
{
	long size;

	if (fseek(file, 0, SEEK_END) || (size = ftell(file)) <= 0)
		return -EINVAL;
	rewind(file);
	set->sheet = malloc((size_t)size);
	if (!set->sheet)
		return -ENOMEM;
	set->sheet_size = fread(set->sheet, 1, (size_t)size, file);
	return set->sheet_size == (size_t)size ? 0 : -EIO;
}

static int add(struct bench_fileset *set, const char *line)
{
	struct bench_file file, *files = set->files;
	size_t start;

	if (sscanf(line, "%31s %zu %zu", file.name, &file.size, &start) != 3 ||
	    !file.size ||
	    start > set->sheet_size || file.size > set->sheet_size - start ||
	    (set->count &&
	     strcmp(files[set->count - 1].name, file.name) >= 0))
		return -EINVAL;
	file.body = set->sheet + start;
	if (set->count == set->room) {
		set->room = set->room ? 2 * set->room : 256;
		files = reallocarray(files, set->room, sizeof(*files));
		if (!files)
			return -ENOMEM;
		set->files = files;
	}
	files[set->count++] = file;
	return 0;
}

static int read_lines(struct bench_fileset *set, FILE *file)
{
	char line[128];
	int err = 0;

	while (!err && fgets(line, sizeof(line), file))
		err = add(set, line);
	return err;
}

int bench_fileset_read(struct bench_fileset *set, const char *trace)
{
	static const struct {
		const char *name;
		int (*read)(struct bench_fileset *set, FILE *file);
	} parts[] = { { "sheet", read_sheet }, { "fileset", read_lines } };

	*set = (struct bench_fileset){ };
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		FILE *file = opened(trace, parts[i].name);
		int err;

		if (!file)
			return 1;
		err = parts[i].read(set, file);
		fclose(file);
		if (err) {
			fprintf(stderr, "flexsc: study: load: %s beside %s: "
				"%s\n", parts[i].name, trace, strerror(-err));
			return 1;
		}
	}
	return 0;
}

void bench_fileset_fini(struct bench_fileset *set)
{
	free(set->sheet);
	free(set->files);
}

static int by_name(const void *name, const void *file)
{
	return strcmp(name, ((const struct bench_file *)file)->name);
}

const struct bench_file *bench_fileset_find(const struct bench_fileset *set,
					    const char *name)
{
	return bsearch(name, set->files, set->count, sizeof(*set->files),
		       by_name);
}
