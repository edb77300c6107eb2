/* SPDX-License-Identifier: MIT */
/*
 * Engines' common parts: a call made on the spot, and how an owner that has
 * nothing to do rests. Owner only, but for flexsc__engine_ring().
 */
#ifndef FLEXSC_SLEEP_H
#define FLEXSC_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;

/* Execute a SUBMITTED entry here and now, as a plain system call. */
void flexsc__engine_inline(struct flexsc_loop *loop, uint32_t index);

/*
 * Execute a SUBMITTED entry here and now if it looks at an open file and
 * doesn't wait for that. False: it isn't executed.
 */
bool flexsc__engine_look(struct flexsc_loop *loop, uint32_t index);

/*
 * Around every sleep, after submitted entries were handed over: begin says
 * whether to sleep at all and shortens *ns if the pool is to be checked sooner;
 * wake is called from then on.
 */
bool flexsc__sleep_begin(struct flexsc_loop *loop, uint64_t *ns);
void flexsc__sleep_end(struct flexsc_loop *loop);
/*
 * Look for work for poll_us, and ns at most, instead of sleeping at once.
 * Returns how long to sleep then: 0 if there is work, or ns have passed.
 */
uint64_t flexsc__engine_spin(struct flexsc_loop *loop, uint64_t ns);
/*
 * Sleep on loop->bell, and end that sleep: of engines that have nothing better
 * to sleep in.
 */
void flexsc__engine_sleep(struct flexsc_loop *loop, uint64_t ns);
void flexsc__engine_ring(struct flexsc_loop *loop);

#endif /* FLEXSC_SLEEP_H */
