/* SPDX-License-Identifier: MIT */
/*
 * The agenda of a crowd: visits whose next request is due later, while their
 * clients think. It is a heap by that time; one thread has it.
 */
#ifndef FLEXSC_BENCH_AGENDA_H
#define FLEXSC_BENCH_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "visit.h"

struct bench_agenda {
	struct bench_visit **heap;
	size_t count, room;
};

/* False: out of memory. */
bool bench_agenda_add(struct bench_agenda *agenda, struct bench_visit *visit);

/* When the first visit is due; UINT64_MAX: there is none. */
uint64_t bench_agenda_due(const struct bench_agenda *agenda);

/* Take the first visit off the agenda; NULL: there is none. */
struct bench_visit *bench_agenda_take(struct bench_agenda *agenda);

/* The visits are the caller's. */
void bench_agenda_fini(struct bench_agenda *agenda);

#endif /* FLEXSC_BENCH_AGENDA_H */
