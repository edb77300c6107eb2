/* SPDX-License-Identifier: MIT */
/*
 * The file set: the files that clients with a trace (trace.h) ask for. A file's
 * name tells its size and all of its bytes, by rules that
 * study/flexstudy/webserver/fileset.py, which writes the files, has as well:
 *
 *	dir00012/class2_5	5 x 10,240 bytes, of class 2
 *	pages/1024		1,024 bytes, of no class
 *
 * A file's bytes are a piece of one sheet of random bytes. The set doesn't
 * change once it is made: all threads read it.
 */
#ifndef FLEXSC_STUDY_FILESET_H
#define FLEXSC_STUDY_FILESET_H

#include <stdbool.h>
#include <stddef.h>

#define BENCH_CLASSES	4
#define BENCH_NO_CLASS	BENCH_CLASSES

struct bench_fileset {
	unsigned char *sheet;
};

struct bench_file {
	const unsigned char *body;	/* in the set's sheet */
	size_t size;
	unsigned int class;
};

/* Make the set. 0, or -errno. */
int bench_fileset_init(struct bench_fileset *set);
void bench_fileset_fini(struct bench_fileset *set);

/* The file of a name, until bench_fileset_fini(). False: the set has none. */
bool bench_fileset_find(const struct bench_fileset *set, const char *name,
			struct bench_file *file);

#endif /* FLEXSC_STUDY_FILESET_H */
