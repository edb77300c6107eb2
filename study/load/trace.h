/* SPDX-License-Identifier: MIT */
/*
 * A trace: clients' sessions, read from a file in the format of httperf's
 * --wsesslog. A session is a group of lines, each of which is a request. Empty
 * lines separate sessions.
 *
 * 	# a comment
 * 	/dir00012/class2_5 think=0.343
 * 	/pages/1024
 *
 * think= is the time in seconds between the answer and the next request. A
 * request is a GET of a file of the file set (fileset.h). The trace is constant
 * once it was read; all threads read it.
 */
#ifndef FLEXSC_STUDY_TRACE_H
#define FLEXSC_STUDY_TRACE_H

#include <stddef.h>
#include <stdio.h>

#include "fileset.h"
#include "bench/load/visit.h"

struct bench_trace {
	struct bench_page *pages;	/* requests of all sessions, in order */
	size_t page_count, page_room;
	size_t *firsts;			/* index of each session's first page, and the end */
	size_t session_count, session_room;
};

/*
 * Read a trace. Clients think for "think" percent of the trace's times. Returns
 * 0, or 1 after a message that states the line with the error.
 * bench_trace_fini() must be called in both cases, before the set is freed.
 */
int bench_trace_read(struct bench_trace *trace, const char *path,
		     const struct bench_fileset *set, long think);
void bench_trace_fini(struct bench_trace *trace);

/*
 * Return the first request of a session, and in "left" the number of its
 * further requests. Any index is valid: after the last session the trace begins
 * again.
 */
struct bench_page *bench_trace_session(const struct bench_trace *trace,
				       size_t index, size_t *left);

#endif /* FLEXSC_STUDY_TRACE_H */
