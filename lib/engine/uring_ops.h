/* SPDX-License-Identifier: MIT */
/*
 * Between the files of the uring engine. Owner only.
 */
#ifndef FLEXSC_ENGINE_URING_H
#define FLEXSC_ENGINE_URING_H

#include <liburing.h>
#include <linux/flexsc.h>
#include <stdbool.h>

/* Operations newer than the headers that are built against. */
enum {
	OP_WAITID = 50,
	OP_FTRUNCATE = 55,
	OP_BIND = 56,
	OP_LISTEN = 57,
	OP_EPOLL_WAIT = 59,
	OP_PIPE = 62,
};

/* uring_ops.c */

/*
 * Describe the entry's system call to io_uring. False: io_uring can't do this
 * very call, with these arguments; it has to be made as a plain one.
 * send_address: the kernel's send operation takes an address.
 */
bool flexsc__uring_prepare(const struct flexsc_entry *entry,
			   struct io_uring_sqe *sqe, bool send_address);

/* What the plain call would have returned where io_uring returned res. */
int64_t flexsc__uring_result(const struct flexsc_entry *entry, int32_t res);

/* uring_why.c: why io_uring_setup() failed with err, in one line. */
void flexsc__uring_why(int err, char *why, size_t size);

#endif /* FLEXSC_ENGINE_URING_H */
