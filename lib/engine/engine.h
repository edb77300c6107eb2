/* SPDX-License-Identifier: MIT */
/*
 * The list of engines, and the choice of one. loop/engine.h defines what an engine is.
 */
#ifndef FLEXSC_ENGINE_H
#define FLEXSC_ENGINE_H

#include "lib/loop/engine.h"

extern const struct engine flexsc__engine_sync;
extern const struct engine flexsc__engine_threads;
extern const struct engine flexsc__engine_uring;
extern const struct engine flexsc__engine_kmod;
/* The engine of a loop whose ring has failed: uring_failed.c. */
extern const struct engine flexsc__engine_uring_failed;

/* Choose and open an engine, according to loop->options. */
int flexsc__engine_open(struct flexsc_loop *loop);

/*
 * Owner only, before a filter forbids their system calls: make the loop work without
 * io_uring and without an epoll set from now on. Both still work, so no call is lost.
 */
void flexsc__engine_retire(struct flexsc_loop *loop);
/*
 * Makes the loop work without an epoll set only. Also for an heir that acts as owner:
 * run/handover.h.
 */
void flexsc__engine_retire_pool(struct flexsc_loop *loop);

#endif /* FLEXSC_ENGINE_H */
