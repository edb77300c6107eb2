/* SPDX-License-Identifier: MIT */
/*
 * Conditions and ranges of a request: is the file to be sent, and which part of
 * it?
 */
#ifndef HTTP_CONDITION_H
#define HTTP_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "file.h"
#include "request.h"

/*
 * The status that the request's conditions result in: 412, 304, or 200 to
 * answer the request. "file" is NULL for a resource that has neither tag nor
 * date.
 */
int condition_check(const struct request *request, const char *head,
		    const struct file *file);

/*
 * The status for a request of a file: 200, 206, 304, 412 or 416. For the first
 * two, *first and *length are set to the bytes to send. The clock provides the
 * answer's date.
 */
int condition_decide(const struct request *request, const char *head,
		     const struct file *file, const struct clock *clock,
		     uint64_t *first, uint64_t *length);

#endif /* HTTP_CONDITION_H */
