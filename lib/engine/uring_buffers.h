/* SPDX-License-Identifier: MIT */
/*
 * Multishot requests of the uring engine, and the rings by which the kernel is
 * lent buffers for them: the owner puts a free buffer at a ring's tail, the
 * kernel takes one from its head when something has come. Owner only.
 */
#ifndef FLEXSC_URING_BUFFERS_H
#define FLEXSC_URING_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/loop/buffers.h"

/* See loop/engine.h. */
bool flexsc__uring_accepts_many(const struct flexsc_loop *loop);
int flexsc__uring_buffers_lend(struct flexsc_buffers *buffers);
void flexsc__uring_buffers_unlend(struct flexsc_buffers *buffers);
void flexsc__uring_buffer_put(struct flexsc_buffers *buffers, uint32_t which);

#endif /* FLEXSC_URING_BUFFERS_H */
