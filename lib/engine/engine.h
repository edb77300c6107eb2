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
 * Owner only: make the loop work without io_uring, the module and an epoll set from now
 * on. Called before the program installs a seccomp filter that may forbid the system
 * calls of these. They still work during this function, so no call is lost.
 */
void flexsc__engine_retire(struct flexsc_loop *loop);
/*
 * Like flexsc__engine_retire(), but for the module and the epoll set only. An heir that
 * acts as the owner may call it, too: run/handover.h.
 */
void flexsc__engine_retire_ward(struct flexsc_loop *loop);
/* The part of both that concerns the module. */
void flexsc__kmod_quit(struct flexsc_loop *loop);

#endif /* FLEXSC_ENGINE_H */
