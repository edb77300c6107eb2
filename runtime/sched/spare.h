/* SPDX-License-Identifier: MIT */
/*
 * Spares: carriers that run no user threads until they adopt a stuck carrier (adopt.h).
 *
 * A spare has its thread and its loop in advance. Creating them when a carrier is stuck
 * may be impossible, because that takes memory, and locks of libc's that a stuck user
 * thread may hold. The maker, a thread of the runtime, creates the next spare when none
 * is left. So the number of spares follows the largest number of carriers that were
 * stuck at the same time, up to SPARES_MOST (carriers.h).
 *
 *	(none)	-> spare	it started with the carriers, or the maker started it
 *	spare	-> carrier	it adopts
 *	carrier	-> spare	it was adopted, and is back
 *	spare	-> (none)	all carriers end: dormant.h
 */
#ifndef FLEXSC_RUNTIME_SPARE_H
#define FLEXSC_RUNTIME_SPARE_H

#include <flexsc/loop.h>
#include <stdbool.h>

/*
 * Start the maker. Called after the carriers have started with these options. Returns 0
 * or -errno. Without a spare, another carrier, if any, adopts a stuck one.
 */
int flexsc__spares_start(const struct flexsc_options *options);

/* End the maker. Called before the carriers end. */
void flexsc__spares_end(void);

/*
 * Called before the carriers retire: make the maker call "run", and then sleep for
 * good. The calling thread may have a seccomp filter, so this function makes no system
 * call but futex(2). False: there is no maker.
 */
bool flexsc__spares_end_by(void (*run)(void *arg), void *arg);

/* Called in a forked child, which has no maker. */
void flexsc__spares_forget(void);

#endif /* FLEXSC_RUNTIME_SPARE_H */
