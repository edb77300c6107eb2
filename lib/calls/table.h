/* SPDX-License-Identifier: MIT */
/*
 * The system-call table: what is known about each call, by number. Generated
 * from syscalls.tbl for the machine compiled for; read-only.
 */
#ifndef FLEXSC_TABLE_H
#define FLEXSC_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Where a call may run; "class" in syscalls.tbl. */
enum call_class {
	CLASS_NONE = 0,	/* no such call: a hole in the numbers */
	CLASS_FAST,	/* never sleeps for long: inline at flush time */
	CLASS_DISK,	/* may sleep for a device, a while */
	CLASS_WAIT,	/* may sleep until somebody else acts */
	CLASS_SELF,	/* acts on the calling thread: inline, always */
	CLASS_ADMIN,	/* as WAIT, and never by the kernel module */
	CLASS_NEVER,	/* refused */
	CLASS_WORK,	/* no system call: see loop/work.h, loop/await.h */
	CLASS_RING,	/* of io_uring alone: see loop/multishot.h */
};

/* The meaning of poll(2) on argument 0 of a CLASS_WAIT call. */
enum call_poll {
	POLL_NONE = 0,	/* nothing */
	POLL_READ,	/* POLLIN: it can start without waiting */
	POLL_WRITE,	/* POLLOUT: likewise; a large one may still wait */
};

/*
 * Which field of an io_uring request takes which argument; "shape" in
 * syscalls.tbl. lib/engine/uring_ops.c has a function for each.
 */
enum call_shape {
	SHAPE_NONE = 0,	/* a call without an operation */
	/* Reads and writes. */
	SHAPE_RW, SHAPE_RW_AT, SHAPE_RW_V2, SHAPE_RANGE, SHAPE_MADVISE,
	/* A descriptor and little else. */
	SHAPE_FD, SHAPE_DATASYNC, SHAPE_NUMBER, SHAPE_FALLOCATE,
	SHAPE_FTRUNCATE,
	/* Sockets and pipes. */
	SHAPE_SOCKET, SHAPE_ADDRESS, SHAPE_ACCEPT, SHAPE_SENDTO,
	SHAPE_RECVFROM, SHAPE_SENDMSG, SHAPE_RECVMSG, SHAPE_PIPE,
	SHAPE_SPLICE, SHAPE_TEE,
	/* Calls that wait. */
	SHAPE_POLL, SHAPE_EPOLL_CTL, SHAPE_EPOLL_WAIT, SHAPE_NANOSLEEP,
	SHAPE_CLOCK_SLEEP, SHAPE_WAITID,
	/* Paths with their directories. */
	SHAPE_OPENAT, SHAPE_OPENAT2, SHAPE_STATX, SHAPE_TWO_AT,
	SHAPE_UNLINKAT, SHAPE_MKDIRAT, SHAPE_SYMLINKAT,
	/* Paths alone. */
	SHAPE_OPEN, SHAPE_CREAT, SHAPE_TWO, SHAPE_UNLINK, SHAPE_RMDIR,
	SHAPE_MKDIR, SHAPE_SYMLINK,
	/* Extended attributes, of a path and of a descriptor. */
	SHAPE_XATTR, SHAPE_FXATTR,
	/* What no system call is: loop/await.h, loop/multishot.h. */
	SHAPE_AWAIT, SHAPE_MULTISHOT_ACCEPT, SHAPE_MULTISHOT_RECV,
	SHAPES
};

struct table_row {
	const char *name;
	uint8_t nargs;
	uint8_t class;	/* enum call_class */
	uint8_t poll;	/* enum call_poll */
	uint8_t fds;	/* bit n: argument n is a descriptor */
	uint8_t op;	/* IORING_OP_*, or 0 for none */
	uint8_t shape;	/* enum call_shape */
};

extern const struct table_row flexsc__table[];
extern const unsigned int flexsc__table_size;

/* The last rows, which are no system call's. */
#define NR_WORK		(flexsc__table_size - 4)
#define NR_AWAIT	(flexsc__table_size - 3)
#define NR_ACCEPT	(flexsc__table_size - 2)
#define NR_RECV		(flexsc__table_size - 1)

/* All numbers of the table are below, and have room for new ones. */
#define TABLE_ROOM	512U

/* May a system call of this row be posted? */
static inline bool table_accepts(const struct table_row *row)
{
	/* One comparison: the classes between NONE and NEVER. */
	return (uint8_t)(row->class - CLASS_FAST) < CLASS_NEVER - CLASS_FAST;
}

/* The row of call nr; a row of CLASS_NONE for any number that isn't a call. */
const struct table_row *flexsc__table_row(unsigned int nr);

#endif /* FLEXSC_TABLE_H */
