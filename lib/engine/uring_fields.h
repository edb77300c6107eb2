/* SPDX-License-Identifier: MIT */
/*
 * Which field of an io_uring request takes which argument, for the shapes of calls that
 * are posted both with an entry (uring_ops.c) and directly (uring_direct.c). "a" is the
 * array of arguments.
 */
#ifndef FLEXSC_URING_FIELDS_H
#define FLEXSC_URING_FIELDS_H

#include <fcntl.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/calls/partial.h"

#define CURRENT		((uint64_t)-1)	/* as an offset: the file's own position */

/*
 * A count that doesn't fit an int is left to the plain call. So is a count of 0, with
 * which a call fails or waits on some files. For a negative offset io_uring lacks the
 * plain call's error.
 *
 *			fits			fd	addr	len	off flags
 */
#define FIELDS_RW	a[2] - 1 < RW_MAX,	a[0],	a[1],	a[2],	CURRENT, 0
#define FIELDS_RW_AT	a[2] <= RW_MAX && (int64_t)a[3] >= 0, \
						a[0],	a[1],	a[2],	a[3], 0
#define FIELDS_FD	true,			a[0],	0,	0,	0, 0
#define FIELDS_DATASYNC	true,			a[0],	0,	0,	0, \
						IORING_FSYNC_DATASYNC
#define FIELDS_RECVFROM	!a[4] && a[2] <= RW_MAX && sqe_is_polled(a[3]), \
						a[0],	a[1],	a[2],	0, a[3]
#define FIELDS_SENDMSG	a[1],			a[0],	a[1],	1,	0, \
						sqe_send_flags(a[2])
#define FIELDS_RECVMSG	a[1] && sqe_is_polled(a[2]), \
						a[0],	a[1],	1,	0, a[2]
/* A statx() of an open file is made inline: files/local_stat.h. */
#define FIELDS_STATX	a[1] && !(a[2] & AT_EMPTY_PATH), \
						a[0],	a[1],	a[3],	a[4], a[2]
/* For a sendto() without an address. */
#define FIELDS_SEND	!a[4] && a[2] <= RW_MAX, \
						a[0],	a[1],	a[2],	0, \
						sqe_send_flags(a[3])

/* The union of flags has many names, but is a single word. */
static inline bool sqe_fill(struct io_uring_sqe *sqe, uint8_t op, uint64_t fd,
			    uint64_t addr, uint64_t len, uint64_t off,
			    uint64_t flags)
{
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = op;
	sqe->fd = (int32_t)fd;
	sqe->addr = addr;
	sqe->len = (uint32_t)len;
	sqe->off = off;
	sqe->rw_flags = (int)flags;
	return true;
}

/*
 * Does a receive wait until poll(2) reports the socket ready?
 * flexsc__call_is_unpolled() explains the exceptions. uring_ops.c decides for receives
 * that wait for all bytes.
 */
static inline bool sqe_is_polled(uint64_t flags)
{
	return !(flags & (MSG_ERRQUEUE | MSG_OOB | MSG_WAITALL));
}

/* A plain send waits until all is sent. With this flag the operation does so, too. */
static inline uint64_t sqe_send_flags(uint64_t flags)
{
	return OWNER_GOES_ON || flags & MSG_DONTWAIT ? flags :
						       flags | MSG_WAITALL;
}

#endif /* FLEXSC_URING_FIELDS_H */
