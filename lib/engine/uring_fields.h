/* SPDX-License-Identifier: MIT */
/*
 * Which SQE field holds which argument, for the shapes of calls that are posted both
 * with an entry (uring_ops.c) and directly (uring_direct.c). "a" is the array of
 * arguments.
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

#define CURRENT		((uint64_t)-1)	/* as an offset: the file's position */

/*
 * io_uring makes a call only if "fits" holds. A count must fit an int. It mustn't be 0
 * for read() and write(), because on some files the plain call then fails or waits. An
 * offset mustn't be negative, because io_uring's error differs from the plain call's.
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
/*
 * A statx() with AT_EMPTY_PATH is excluded: it is made inline, by files/local_stat.h.
 */
#define FIELDS_STATX	a[1] && !(a[2] & AT_EMPTY_PATH), \
						a[0],	a[1],	a[3],	a[4], a[2]
/* A sendto() with an address is excluded: it is posted with an entry. */
#define FIELDS_SEND	!a[4] && a[2] <= RW_MAX, \
						a[0],	a[1],	a[2],	0, \
						sqe_send_flags(a[3])

/*
 * All members of the SQE's union of flags are the same 32 bits: rw_flags stands for
 * them.
 */
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
 * Does a receive with these flags wait until poll(2) reports the socket ready?
 * flexsc__call_is_unpolled() explains the exceptions. uring_ops.c decides for
 * MSG_WAITALL.
 */
static inline bool sqe_is_polled(uint64_t flags)
{
	return !(flags & (MSG_ERRQUEUE | MSG_OOB | MSG_WAITALL));
}

/* Add MSG_WAITALL, because a plain blocking send transfers all bytes. */
static inline uint64_t sqe_send_flags(uint64_t flags)
{
	return OWNER_GOES_ON || flags & MSG_DONTWAIT ? flags :
						       flags | MSG_WAITALL;
}

#endif /* FLEXSC_URING_FIELDS_H */
