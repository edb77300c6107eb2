/* SPDX-License-Identifier: MIT */
/*
 * For an owner that closes descriptors by plain calls, and frees memory of calls that are
 * still pending: the nginx module.
 */
#ifndef FLEXSC_BEGUN_H
#define FLEXSC_BEGUN_H

struct flexsc_loop;

/*
 * Submit, and return when the kernel has begun all requests: it uses their descriptors'
 * numbers no more, and calls that don't wait (MSG_DONTWAIT) are over. Without a poller
 * that is so when flexsc_loop_submit() returns. Owner only.
 */
void flexsc__loop_begun(struct flexsc_loop *loop);

#endif /* FLEXSC_BEGUN_H */
