/* SPDX-License-Identifier: MIT */
/* The engines, and the choice of one. What an engine is: loop/engine.h. */
#ifndef FLEXSC_ENGINE_H
#define FLEXSC_ENGINE_H

#include "lib/loop/engine.h"

extern const struct engine flexsc__engine_sync;
extern const struct engine flexsc__engine_threads;
extern const struct engine flexsc__engine_uring;
extern const struct engine flexsc__engine_kmod;
/* The engine of a loop whose ring has failed: uring_failed.c. */
extern const struct engine flexsc__engine_uring_failed;

/* Choose and open an engine as loop->options say. */
int flexsc__engine_open(struct flexsc_loop *loop);

/*
 * Owner only, before a filter forbids their calls: have the loop do without io_uring and
 * without an epoll set from here on. They still work, so no call is lost.
 */
void flexsc__engine_retire(struct flexsc_loop *loop);
/* The epoll set only. Also on an heir that acts as owner: run/handover.h. */
void flexsc__engine_retire_pool(struct flexsc_loop *loop);

#endif /* FLEXSC_ENGINE_H */
