/* SPDX-License-Identifier: MIT */
/*
 * The file set: the files that clients with a trace (trace.h) ask for, and their
 * bytes. study/flexstudy/webserver/fileset.py, which makes the files, writes two
 * files for it beside the trace:
 *
 *	sheet	bytes, of which each file is a piece
 *	fileset	a line for each file, in the order of their names: name, size,
 *		and where in the sheet it begins
 *
 * The set doesn't change once it is read: all threads read it.
 */
#ifndef FLEXSC_STUDY_FILESET_H
#define FLEXSC_STUDY_FILESET_H

#include <stddef.h>

#define BENCH_NAME_MAX	31	/* characters */

struct bench_file {
	char name[BENCH_NAME_MAX + 1];
	size_t size;
	const unsigned char *body;	/* in the set's sheet */
};

struct bench_fileset {
	unsigned char *sheet;
	size_t sheet_size;
	struct bench_file *files;
	size_t count, room;
};

/*
 * Read the set of a trace, by the trace's path. 0, or 1 after a line on stderr;
 * bench_fileset_fini() is due in both cases.
 */
int bench_fileset_read(struct bench_fileset *set, const char *trace);
void bench_fileset_fini(struct bench_fileset *set);

/* The file of a name, until bench_fileset_fini(). NULL: the set has none. */
const struct bench_file *bench_fileset_find(const struct bench_fileset *set,
					    const char *name);

#endif /* FLEXSC_STUDY_FILESET_H */
