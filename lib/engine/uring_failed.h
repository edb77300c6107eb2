/* SPDX-License-Identifier: MIT */
/*
 * io_uring_enter() fails for good: a seccomp filter that the program installed
 * later forbids it, for instance. The loop goes on with syscall threads, as if
 * its engine were "threads". Owner only.
 *
 * A request of the ring is then
 *
 *	complete	its result is in the ring, and is taken as ever
 *	unseen		the kernel hasn't taken it: a thread makes the call
 *	taken back	the kernel has cancelled it, by io_uring_register(). It
 *			touches no memory from then on, as its ring executes
 *			requests only where the owner enters: -ERESTART
 *	living		the ring doesn't depend on the owner's entering: the
 *			result comes late. uring->living counts
 *	lost		its call stays pending, because the kernel may still use
 *			its memory. loop->lost counts
 *
 * A wait returns the error once when calls are lost, and each time when there is
 * nothing but these to wait for. A loop that is destroyed leaves them behind.
 */
#ifndef FLEXSC_URING_FAILED_H
#define FLEXSC_URING_FAILED_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;

/*
 * The ring has failed: its requests find another way, and so do calls that are
 * posted from now on. Called as often as requests were filled since.
 */
void flexsc__uring_fail(struct flexsc_loop *loop);

/* Give the requests that the kernel hasn't taken to threads: there is room. */
void flexsc__uring_rescue(struct flexsc_loop *loop);

/* Once more, take back what is lost. */
void flexsc__uring_take_back(struct flexsc_loop *loop);

#endif /* FLEXSC_URING_FAILED_H */
