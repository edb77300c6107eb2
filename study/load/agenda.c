/* SPDX-License-Identifier: MIT */
#include "agenda.h"

#include <stdlib.h>

static bool grow(struct bench_agenda *agenda)
{
	size_t room = agenda->room ? 2 * agenda->room : 64;
	void *heap = realloc(agenda->heap, room * sizeof(struct bench_visit *));

	if (!heap)
		return false;
	agenda->heap = heap;
	agenda->room = room;
	return true;
}

bool bench_agenda_add(struct bench_agenda *agenda, struct bench_visit *visit)
{
	size_t at = agenda->count, above;

	if (at == agenda->room && !grow(agenda))
		return false;
	agenda->count++;
	for (; at; at = above) {
		above = (at - 1) / 2;
		if (agenda->heap[above]->due <= visit->due)
			break;
		agenda->heap[at] = agenda->heap[above];
	}
	agenda->heap[at] = visit;
	return true;
}

uint64_t bench_agenda_due(const struct bench_agenda *agenda)
{
	return agenda->count ? agenda->heap[0]->due : UINT64_MAX;
}

struct bench_visit *bench_agenda_take(struct bench_agenda *agenda)
{
	struct bench_visit **heap = agenda->heap, *first, *last;
	size_t at = 0, below;

	if (!agenda->count)
		return NULL;
	first = heap[0];
	last = heap[--agenda->count];
	for (; (below = 2 * at + 1) < agenda->count; at = below) {
		if (below + 1 < agenda->count &&
		    heap[below + 1]->due < heap[below]->due)
			below++;
		if (last->due <= heap[below]->due)
			break;
		heap[at] = heap[below];
	}
	heap[at] = last;
	return first;
}

void bench_agenda_fini(struct bench_agenda *agenda)
{
	free(agenda->heap);
}
