/* SPDX-License-Identifier: MIT */
/*
 * The answer that lists a folder: the stage LIST of exchange.c.
 */
#ifndef SERVE_LISTING_H
#define SERVE_LISTING_H

#include <stdint.h>

struct connection;

/* The folder is open. */
void listing_start(struct connection *c);

/* Names were read. */
void listing_loaded(struct connection *c, int64_t ret);

#endif /* SERVE_LISTING_H */
