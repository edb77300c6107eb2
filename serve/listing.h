/* SPDX-License-Identifier: MIT */
/*
 * The answer that lists a folder: the stage LIST of answer.c.
 */
#ifndef SERVE_LISTING_H
#define SERVE_LISTING_H

#include <stdint.h>

struct exchange;

/* Begin the answer: the folder is open. */
void listing_start(struct exchange *x);

/* Go on with the answer: names were read. */
void listing_loaded(struct exchange *x, int64_t ret);

#endif /* SERVE_LISTING_H */
