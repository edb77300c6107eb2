/* SPDX-License-Identifier: MIT */
#include "fileset.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/raw/loop.h"

#define BYTES_MAX	(1UL << 20)	/* of a file */
#define STARTS		1048573		/* where files begin: a prime */
#define SHEET		(2UL << 20)	/* bytes */
#define SHEET_SEED	2463534242
#define NAME_MAX_SIZE	32

static const size_t units[BENCH_CLASSES] = { 102, 1024, 10240, 102400 };

int bench_fileset_init(struct bench_fileset *set)
{
	uint64_t state = SHEET_SEED;

	set->sheet = malloc(SHEET);
	if (!set->sheet)
		return -ENOMEM;
	for (size_t i = 0; i < SHEET; i += sizeof(state)) {
		uint64_t word = htole64(bench_random(&state));

		memcpy(set->sheet + i, &word, sizeof(word));
	}
	return 0;
}

void bench_fileset_fini(struct bench_fileset *set)
{
	free(set->sheet);
}

/* A file's offset in the sheet: FNV-1a of its name, modulo a prime number. */
static size_t start_of(const char *name)
{
	uint64_t state = 0xcbf29ce484222325;

	for (; *name; name++)
		state = (state ^ (unsigned char)*name) * 0x100000001b3;
	return state % STARTS;
}

/*
 * The size and the class that a name tells; 0: the name is no file's. The
 * numbers that were read are written as a name again, so "dir1" or "+1" passes
 * for none.
 */
static size_t size_of(const char *name, unsigned int *class)
{
	unsigned int folder, index;
	char same[NAME_MAX_SIZE];
	size_t size = 0;

	if (sscanf(name, "dir%5u/class%1u_%1u", &folder, class, &index) == 3 &&
	    *class < BENCH_CLASSES) {
		snprintf(same, sizeof(same), "dir%05u/class%u_%u", folder,
			 *class, index);
		size = index * units[*class];
	} else if (sscanf(name, "pages/%7zu", &size) == 1) {
		snprintf(same, sizeof(same), "pages/%zu", size);
		*class = BENCH_NO_CLASS;
	}
	return size <= BYTES_MAX && size && strcmp(name, same) == 0 ? size : 0;
}

bool bench_fileset_find(const struct bench_fileset *set, const char *name,
			struct bench_file *file)
{
	file->size = size_of(name, &file->class);
	file->body = set->sheet + start_of(name);
	return file->size;
}
