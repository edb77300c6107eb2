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
 * Owner only: make the loop work without io_uring and without an epoll set from now on.
 * Called before the program installs a seccomp filter that may forbid the system calls
 * of both. io_uring and the set still work during this function, so no call is lost.
 */
void flexsc__engine_retire(struct flexsc_loop *loop);
/*
 * Like flexsc__engine_retire(), but for the pool's epoll set only. An heir that acts as
 * the owner may call it, too: run/handover.h.
 */
void flexsc__engine_retire_pool(struct flexsc_loop *loop);

#endif /* FLEXSC_ENGINE_H */
