/* SPDX-License-Identifier: MIT */
/*
 * The file set: the files that clients with a trace (trace.h) request, and
 * their bytes. study/flexstudy/webserver/fileset.py makes the files, and writes
 * two files into the trace's folder:
 *
 * 	sheet	bytes, of which each file is a piece
 * 	fileset	a line for each file, in the order of their names: name, size,
 * 		and where in the sheet it begins
 *
 * The set is constant once it was read; all threads read it.
 */
#ifndef FLEXSC_STUDY_FILESET_H
#define FLEXSC_STUDY_FILESET_H

#include <stddef.h>

#define BENCH_NAME_MAX	31	/* longest name */

struct bench_file {
	char name[BENCH_NAME_MAX + 1];
	size_t size;
	const unsigned char *body;	/* points into the set's sheet */
};

struct bench_fileset {
	unsigned char *sheet;
	size_t sheet_size;
	struct bench_file *files;
	size_t count, room;
};

/*
 * Read the set of a trace, given the trace's path. Returns 0, or 1 after a
 * message. bench_fileset_fini() must be called in both cases.
 */
int bench_fileset_read(struct bench_fileset *set, const char *trace);
void bench_fileset_fini(struct bench_fileset *set);

/*
 * Find a file by name; valid until bench_fileset_fini(). NULL: not in the set.
 */
const struct bench_file *bench_fileset_find(const struct bench_fileset *set,
					    const char *name);

#endif /* FLEXSC_STUDY_FILESET_H */
