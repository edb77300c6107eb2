/* SPDX-License-Identifier: MIT */
/*
 * A ring where io_uring_enter() fails for good, for example because the program has
 * installed a seccomp filter that forbids it. The loop goes on with syscall threads, as
 * if its engine were "threads". Owner only.
 *
 * Each request of the ring is then one of these:
 *
 *	complete	its result is in the ring, and is collected as before
 *	unseen		the kernel hasn't taken it: a thread makes the call
 *	taken back	the kernel has cancelled it, by io_uring_register(). The call
 *			ends with -ERESTART, because its ring executes requests
 *			only when the owner enters, so it touches no memory
 *	living		its ring executes it without the owner; the result
 *			comes late. uring->living is their number
 *	lost		its call stays pending, because the kernel may still use its
 *			memory. loop->lost is their number
 *
 * A wait returns the error once if calls are lost, and each time if nothing but lost
 * calls is pending. Destroying the loop leaves lost calls behind.
 */
#ifndef FLEXSC_URING_FAILED_H
#define FLEXSC_URING_FAILED_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;

/*
 * The ring has failed: have its requests and all later calls go another way. To be
 * called again if requests were filled since.
 */
void flexsc__uring_fail(struct flexsc_loop *loop);

/* Give the requests that the kernel hasn't taken to threads, which empties the ring. */
void flexsc__uring_rescue(struct flexsc_loop *loop);

/* Collect late results, and try again to take back lost requests. */
void flexsc__uring_take_back(struct flexsc_loop *loop);

#endif /* FLEXSC_URING_FAILED_H */
