/* SPDX-License-Identifier: MIT */
/*
 * A trace: the sessions of clients, read from a file that httperf reads, too, by
 * --wsesslog. A session is a group of lines, each a request; empty lines are
 * between sessions.
 *
 *	# a comment
 *	/dir00012/class2_5 think=0.343
 *	/pages/1024
 *
 * think= is the time in seconds from the answer to the next request. A request
 * is a GET of a file of the file set (fileset.h). The trace doesn't change once
 * it is read: all threads read it.
 */
#ifndef FLEXSC_STUDY_TRACE_H
#define FLEXSC_STUDY_TRACE_H

#include <stddef.h>
#include <stdio.h>

#include "fileset.h"
#include "bench/load/visit.h"

struct bench_trace {
	struct bench_page *pages;	/* requests in their order */
	size_t page_count, page_room;
	size_t *firsts;			/* sessions' first pages; the end */
	size_t session_count, session_room;
};

/*
 * Read a trace. Clients think for "think" percent of the trace's times. 0, or 1
 * after a line on stderr that says where the file is wrong; bench_trace_fini()
 * is due in both cases, before the set's end.
 */
int bench_trace_read(struct bench_trace *trace, const char *path,
		     const struct bench_fileset *set, long think);
void bench_trace_fini(struct bench_trace *trace);

/*
 * The first request of a session, and in "left" how many more requests the
 * session has. Any index: behind the last session comes the first one.
 */
struct bench_page *bench_trace_session(const struct bench_trace *trace,
				       size_t index, size_t *left);

#endif /* FLEXSC_STUDY_TRACE_H */
