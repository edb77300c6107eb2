/* SPDX-License-Identifier: MIT */
/*
 * Spares: carriers, with thread and loop, that run nothing until they adopt a stuck
 * one (adopt.h). One is always ready, as making a thread takes memory and locks of
 * libc's, which a stuck user thread may hold. A thread of the runtime's, the maker,
 * makes the next one when the last is used. A carrier that is back from where it was stuck is
 * a spare, too, so there are as many carriers as the most that were stuck at a time,
 * and no more than SPARES_MOST.
 *
 *	(none)	-> spare	the maker has started it
 *	spare	-> carrier	it adopts
 *	carrier	-> spare	it was adopted, and is back
 *	spare	-> (none)	all carriers end: rest.h
 */
#ifndef FLEXSC_THREADS_SPARE_H
#define FLEXSC_THREADS_SPARE_H

#include <flexsc/loop.h>
#include <stdbool.h>
#include <stddef.h>

#define SPARES_MOST	64U	/* that are ever made */

/*
 * Make the first spare, and start the thread that makes others; the carriers have
 * started, and have these options. 0, or -errno and "why" says the reason: there is no
 * spare so far, and a stuck carrier is adopted by another that isn't, if there is one.
 */
int flexsc__spares_start(const struct flexsc_options *options, char *why,
			 size_t size);

/* Carriers only: one spare less is ready. */
void flexsc__spare_used(void);

/* Before the carriers end: no more spares are made. */
void flexsc__spares_end(void);

/*
 * The same, before the carriers retire. The thread that makes spares runs the function
 * before it ends, because the calling thread may have a filter: it makes no calls but
 * futex(2). False, without effect, if there is no such thread.
 */
bool flexsc__spares_end_by(void (*run)(void *arg), void *arg);

/* There are no carriers any more, and no spares. */
void flexsc__spares_forget(void);

#endif /* FLEXSC_THREADS_SPARE_H */
