/* SPDX-License-Identifier: MIT */
/*
 * Common parts of engines: making a call inline, and the sleep of an owner without
 * work. Owner only, except for flexsc__engine_ring().
 */
#ifndef FLEXSC_SLEEP_H
#define FLEXSC_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;

/* Execute a SUBMITTED entry inline, as a plain system call. */
void flexsc__engine_inline(struct flexsc_loop *loop, uint32_t index);

/*
 * Execute a SUBMITTED entry inline if it queries an open file without waiting. False:
 * it wasn't executed.
 */
bool flexsc__engine_look(struct flexsc_loop *loop, uint32_t index);

/*
 * Bracket every sleep, after submitted entries were handed over. "begin" returns
 * whether to sleep at all, and shortens *ns if the pool must be checked sooner. From
 * then on other threads call wake.
 */
bool flexsc__sleep_begin(struct flexsc_loop *loop, uint64_t *ns);
void flexsc__sleep_end(struct flexsc_loop *loop);
/*
 * Poll for work for poll_us, but at most ns, before sleeping. Returns how long to sleep
 * afterwards: 0 if there is work, or if ns have passed.
 */
uint64_t flexsc__engine_spin(struct flexsc_loop *loop, uint64_t ns);
/*
 * Sleep on loop->bell, and end that sleep. For engines that can't sleep in the kernel
 * otherwise.
 */
void flexsc__engine_sleep(struct flexsc_loop *loop, uint64_t ns);
void flexsc__engine_ring(struct flexsc_loop *loop);

#endif /* FLEXSC_SLEEP_H */
