/* SPDX-License-Identifier: MIT */
/*
 * What a request asks for of a file: all of it, a part, or only news.
 */
#ifndef HTTP_CONDITION_H
#define HTTP_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "file.h"
#include "request.h"

enum range_kind {
	RANGE_NONE,	/* everything */
	RANGE_BYTES,	/* from first to last, both included */
	RANGE_SUFFIX,	/* the last "last" bytes */
};

struct range {
	enum range_kind kind;
	uint64_t first;
	uint64_t last;
};

/*
 * The value of a Range header. RANGE_NONE for all that isn't one range of
 * bytes: that includes several, which are answered with the whole file.
 */
struct range range_parse(const char *value, size_t length);

/* Which bytes those are in a file of that size; false: none. */
bool range_resolve(const struct range *range, uint64_t size, uint64_t *first,
		   uint64_t *length);

/*
 * The status that the conditions of a request lead to: 412, 304, or 200 if it is
 * to be answered. file is NULL for something that has neither tag nor date.
 */
int condition_check(const struct request *request, const char *head,
		    const struct file *file);

/*
 * The status for a request of a file: 200, 206, 304, 412 or 416. For the first two
 * *first and *length are the bytes to send. The clock has the date of the answer.
 */
int condition_decide(const struct request *request, const char *head,
		     const struct file *file, const struct clock *clock,
		     uint64_t *first, uint64_t *length);

#endif /* HTTP_CONDITION_H */
