/* SPDX-License-Identifier: MIT */
/*
 * The answer that lists a folder: the stage LIST of answer.c.
 */
#ifndef SERVE_LISTING_H
#define SERVE_LISTING_H

#include <stdint.h>

struct exchange;

/* Begin the answer. The folder is open. */
void listing_start(struct exchange *x);

/* Continue the answer with the names that were read. */
void listing_loaded(struct exchange *x, int64_t ret);

#endif /* SERVE_LISTING_H */
