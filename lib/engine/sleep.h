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
 * If the entry only queries an open file and can't wait, execute it inline. False: it
 * wasn't executed.
 */
bool flexsc__engine_look(struct flexsc_loop *loop, uint32_t index);

/*
 * Before every sleep, hand over the submitted entries, then call "begin". Call "end"
 * after the sleep. "begin" gets the longest time to sleep, in ns, and returns a shorter
 * one if the pool must be checked sooner; 0: there is work, so don't sleep, and don't
 * call "end". From "begin" to "end", other threads wake the owner through
 * engine->wake().
 */
uint64_t flexsc__sleep_begin(struct flexsc_loop *loop, uint64_t ns);
void flexsc__sleep_end(struct flexsc_loop *loop);
/*
 * Before sleeping, poll for completions: for poll_us or the adaptive time, but at most
 * ns. Returns how long to sleep afterwards: 0 if there is work, or if ns have passed.
 */
uint64_t flexsc__engine_spin(struct flexsc_loop *loop, uint64_t ns);
/*
 * The first function sleeps on the futex loop->bell, and the second one ends that
 * sleep. For engines without another way to sleep in the kernel.
 */
void flexsc__engine_sleep(struct flexsc_loop *loop, uint64_t ns);
void flexsc__engine_ring(struct flexsc_loop *loop);

#endif /* FLEXSC_SLEEP_H */
