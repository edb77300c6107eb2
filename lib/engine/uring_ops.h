/* SPDX-License-Identifier: MIT */
/* System calls as operations of io_uring. Owner only. */
#ifndef FLEXSC_URING_OPS_H
#define FLEXSC_URING_OPS_H

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

/*
 * Describe the entry's system call to io_uring. False: io_uring can't do this
 * very call, with these arguments; it has to be made as a plain one.
 * send_address: the kernel's send operation takes an address.
 */
bool flexsc__uring_prepare(const struct flexsc_entry *entry,
			   struct io_uring_sqe *sqe, bool send_address);

/* What the plain call would have returned where io_uring returned res. */
int64_t flexsc__uring_result(const struct flexsc_entry *entry, int32_t res);

#endif /* FLEXSC_URING_OPS_H */
