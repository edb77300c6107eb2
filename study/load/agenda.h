/* SPDX-License-Identifier: MIT */
/*
 * The agenda of a crowd (crowd.h): the visits of clients that think, so that
 * their next request is due later. The agenda is a heap, ordered by
 * bench_visit.due. Only the crowd's thread uses it.
 */
#ifndef FLEXSC_STUDY_AGENDA_H
#define FLEXSC_STUDY_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/load/visit.h"

struct bench_agenda {
	struct bench_visit **heap;
	size_t count, room;
};

/*
 * Add a visit. Its "due" must not change until it is taken. False: out of
 * memory.
 */
bool bench_agenda_add(struct bench_agenda *agenda, struct bench_visit *visit);

/*
 * The time when the first visit is due (ns, CLOCK_MONOTONIC). UINT64_MAX: no
 * visit.
 */
uint64_t bench_agenda_due(const struct bench_agenda *agenda);

/*
 * Remove the first visit from the agenda and return it. NULL: the agenda is
 * empty.
 */
struct bench_visit *bench_agenda_take(struct bench_agenda *agenda);

/* Free the agenda. Visits belong to the caller and aren't freed. */
void bench_agenda_fini(struct bench_agenda *agenda);

#endif /* FLEXSC_STUDY_AGENDA_H */
