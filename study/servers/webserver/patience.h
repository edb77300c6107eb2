/* SPDX-License-Identifier: MIT */
/*
 * A list of patients: clients that wait for their sockets, in the order of the
 * times when their patience ends. Most clients have equal patience, so a new
 * patient is nearly always the last one. One thread at a time uses a list.
 */
#ifndef WEBSERVER_PATIENCE_H
#define WEBSERVER_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct patient {
	uint64_t due;	/* clock_ticks(); ns */
	struct patient *prev, *next;
};

/* The patient waits from now on, for ns nanoseconds, until patience_end(). */
void patience_begin(struct patient **list, struct patient *patient, uint64_t ns);
void patience_end(struct patient **list, struct patient *patient);

/* A patient whose time is over, or NULL. The patient stays in the list. */
struct patient *patience_over(struct patient *list);

/* Milliseconds until a patient's time is over; -1: the list is empty. */
int patience_ms(const struct patient *list);

#endif /* WEBSERVER_PATIENCE_H */
