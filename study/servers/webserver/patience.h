/* SPDX-License-Identifier: MIT */
/*
 * A list of patients: clients that wait for their sockets, ordered by the end
 * of their patience, which is their time limit. Most time limits are equal, so
 * a new patient is nearly always the last one. One thread at a time uses a
 * list.
 */
#ifndef WEBSERVER_PATIENCE_H
#define WEBSERVER_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct patient {
	uint64_t due;	/* clock_ticks(); ns */
	struct patient *prev, *next;
};

/* Add a patient, which waits from now on, for at most ns nanoseconds. */
void patience_begin(struct patient **list, struct patient *patient, uint64_t ns);
void patience_end(struct patient **list, struct patient *patient);

/* A patient whose time limit is over, or NULL. It stays in the list. */
struct patient *patience_over(struct patient *list);

/* Milliseconds until the first time limit ends; -1: the list is empty. */
int patience_ms(const struct patient *list);

#endif /* WEBSERVER_PATIENCE_H */
