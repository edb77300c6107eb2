/* SPDX-License-Identifier: MIT */
/* A loop gets its pool. Owner only. */
#ifndef FLEXSC_POOL_CREATE_H
#define FLEXSC_POOL_CREATE_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;

/*
 * Of at most max threads, but at least two. -EAGAIN: not one could be made; -EINVAL:
 * options.cores is no list of usable cores.
 */
int flexsc__pool_create(struct flexsc_loop *loop, uint32_t max);

/* Has the loop a pool? It gets one, if it can, of options.max_threads. */
bool flexsc__pool_ensure(struct flexsc_loop *loop);

#endif /* FLEXSC_POOL_CREATE_H */
