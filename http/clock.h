/* SPDX-License-Identifier: MIT */
/*
 * The time, and how HTTP writes it. A clock has one thread that uses it; its texts are
 * formatted once a second, and only when somebody asks.
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

/* Make the texts true again, if the second has changed. */
void clock_update(struct clock *clock);

/* Nanoseconds of CLOCK_MONOTONIC, a few milliseconds coarse, and cheap. */
uint64_t clock_ticks(void);

/* Writes CLOCK_DATE_LEN characters and returns their end. */
char *clock_date(char *p, time_t time);

/* Understands the three forms that RFC 9110 names. */
bool clock_parse(const char *text, size_t length, time_t *time);

#endif /* HTTP_CLOCK_H */
