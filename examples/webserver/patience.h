/* SPDX-License-Identifier: MIT */
/*
 * Clients that wait for their sockets, by the time when their patience ends. Most
 * have one patience, so the list is in order nearly by itself. A list has one user
 * at a time.
 */
#ifndef WEBSERVER_PATIENCE_H
#define WEBSERVER_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct patient {
	uint64_t due;	/* clock_ticks(); ns */
	struct patient *prev, *next;
};

/* The patient waits from now on, for ns nanoseconds. */
void patience_begin(struct patient **list, struct patient *patient, uint64_t ns);
void patience_end(struct patient **list, struct patient *patient);

/* A patient whose time is over, or NULL. The patient still waits. */
struct patient *patience_over(struct patient *list);

/* Milliseconds until the first one's time is over; -1: none waits. */
int patience_ms(const struct patient *list);

#endif /* WEBSERVER_PATIENCE_H */
