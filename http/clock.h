/* SPDX-License-Identifier: MIT */
/*
 * The time, and its text in HTTP. A clock is used by one thread. Its texts are
 * formatted on demand, at most once a second.
 */
#ifndef HTTP_CLOCK_H
#define HTTP_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define CLOCK_SECOND	1000000000ULL

/* "Sun, 06 Nov 1994 08:49:37 GMT", "06/Nov/1994:08:49:37 +0000" */
#define CLOCK_DATE_LEN	29
#define CLOCK_LOG_LEN	26

struct clock {
	time_t now;
	char date[CLOCK_DATE_LEN];
	char log[CLOCK_LOG_LEN];
};

/* Update the texts if the second has changed. */
void clock_update(struct clock *clock);

/* CLOCK_MONOTONIC in nanoseconds. Cheap, but up to a few milliseconds late. */
uint64_t clock_ticks(void);

/* Write CLOCK_DATE_LEN characters; returns their end. */
char *clock_date(char *p, time_t time);

/*
 * Parse a date in any of the three forms of RFC 9110. False: it has none of
 * them.
 */
bool clock_parse(const char *text, size_t length, time_t *time);

#endif /* HTTP_CLOCK_H */
