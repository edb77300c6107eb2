/* SPDX-License-Identifier: MIT */
/*
 * System calls as io_uring operations: which SQE field holds which argument, and which
 * arguments the operation doesn't support. calls/syscalls.tbl lists each call's
 * operation and shape; this file has a function per shape. Owner only.
 */
#include "uring_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "lib/base/ask.h"
#include "lib/base/poll.h"
#include "lib/files/fds.h"
#include "lib/loop/await.h"
#include "lib/loop/multishot.h"
#include "uring_fields.h"

#define HERE		((uint64_t)AT_FDCWD)	/* as fd: the working directory */

typedef const __u64 *args_t;

/* Argument n; 0 if the call has fewer arguments than others of its shape. */
static inline uint64_t sqe_optional(const struct flexsc_entry *entry,
				    unsigned int n)
{
	return n < (entry->nargs & FLEXSC_NARGS_MASK) ? entry->args[n] : 0;
}

/*
 * Defines the shape "name". If "fits" holds, the operation is equivalent to the call,
 * and the SQE has these fields. Otherwise the call is made without io_uring.
 */
#define SHAPE(name, ...)	SHAPE_OF(name, __VA_ARGS__)
#define SHAPE_OF(name, fits, fd, addr, len, off, flags)			\
static bool prepare_##name(struct io_uring_sqe *sqe, uint8_t op,	\
			   const struct flexsc_entry *entry,		\
			   unsigned int known)				\
{									\
	args_t a = entry->args;						\
									\
	return (fits) && sqe_fill(sqe, op, fd, addr, len, off, flags);	\
}

/*
 * Is the operation equivalent to preadv2() or pwritev2() with this offset and these
 * RWF_ flags? On many files the call fails with any flag, while the operation ignores
 * the flag.
 */
static inline bool rw_does_the_same(uint8_t op, int64_t place, uint64_t flags)
{
	const uint64_t known = RWF_DSYNC | RWF_SYNC | RWF_APPEND;

	if (flags)
		return op == IORING_OP_WRITEV && place >= 0 &&
		       !(flags & ~known);
	return place >= -1;
}

/*
 * Reads and writes. A call whose count doesn't fit an int is made without io_uring. An
 * offset of -1 means the file's position, for preadv2() and pwritev2().
 *
 *    name	fits			fd	addr	len	off	flags
 */
SHAPE(rw,	FIELDS_RW)
SHAPE(rw_at,	FIELDS_RW_AT)
SHAPE(rw_v2,	a[2] <= RW_MAX && rw_does_the_same(op, (int64_t)a[3], a[5]),
					a[0],	a[1],	a[2],	a[3],	a[5])
SHAPE(range,	a[2] <= UINT32_MAX,	a[0],	0,	a[2],	a[1],	a[3])
SHAPE(madvise,	a[1] <= UINT32_MAX,	-1ULL,	a[0],	a[1],	0,	a[2])

/* Calls with a descriptor and few other arguments. */
SHAPE(fd,	FIELDS_FD)
SHAPE(datasync,	FIELDS_DATASYNC)
SHAPE(number,	true,			a[0],	0,	a[1],	0,	0)
SHAPE(fallocate, true,			a[0],	a[3],	a[1],	a[2],	0)
SHAPE(ftruncate, true,			a[0],	0,	0,	a[1],	0)

/*
 * Does a receive with these flags only wait until poll(2) reports the socket ready?
 * With MSG_WAITALL the operation waits for all bytes on any socket, but the call does
 * so on byte streams only: on other sockets it receives one record.
 */
static bool receive_is_polled(uint64_t fd, uint64_t flags)
{
	if (sqe_is_polled(flags))
		return true;
	return !(flags & (MSG_ERRQUEUE | MSG_OOB | MSG_PEEK)) &&
	       flexsc__fds_find_bytes((uint32_t)fd);
}

/* Sockets and pipes. */
SHAPE(socket,	true,			a[0],	0,	a[2],	a[1],	0)
SHAPE(address,	true,			a[0],	a[1],	0, (uint32_t)a[2], 0)
SHAPE(accept,	true,			a[0],	a[1],	0,	a[2],
							sqe_optional(entry, 3))
SHAPE(recvfrom, !a[4] && a[2] <= RW_MAX && receive_is_polled(a[0], a[3]),
					a[0],	a[1],	a[2],	0,	a[3])
SHAPE(sendmsg,	FIELDS_SENDMSG)
SHAPE(recvmsg,	a[1] && receive_is_polled(a[0], a[2]),
					a[0],	a[1],	1,	0,	a[2])
SHAPE(pipe,	true,			0,	a[0],	0,	0,
							sqe_optional(entry, 1))

/* Epoll sets. A wait with a time limit or a signal mask is made without io_uring. */
SHAPE(epoll_ctl, true,			a[0],	a[3],	a[1], (uint32_t)a[2], 0)
SHAPE(epoll_wait, (int)a[3] < 0 && !sqe_optional(entry, 4),
					a[0],	a[1],	a[2],	0,	0)

/* Calls that take a path and the descriptor of its directory. */
SHAPE(openat,	true,			a[0],	a[1],	a[3],	0,	a[2])
SHAPE(openat2,	a[3] <= UINT32_MAX,	a[0],	a[1],	a[3],	a[2],	0)
SHAPE(statx,	FIELDS_STATX)
SHAPE(two_at,	true,			a[0],	a[1],	a[2],	a[3],
							sqe_optional(entry, 4))
SHAPE(unlinkat,	true,			a[0],	a[1],	0,	0,	a[2])
SHAPE(mkdirat,	true,			a[0],	a[1],	a[2],	0,	0)
SHAPE(symlinkat, true,			a[1],	a[0],	0,	a[2],	0)

/* Calls that take a path only. They exist on x86-64 only. */
SHAPE(open,	true,			HERE,	a[0],	a[2],	0,	a[1])
SHAPE(creat,	true,			HERE,	a[0],	a[1],	0,
						O_CREAT | O_WRONLY | O_TRUNC)
SHAPE(two,	true,			HERE,	a[0],	HERE,	a[1],	0)
SHAPE(unlink,	true,			HERE,	a[0],	0,	0,	0)
SHAPE(rmdir,	true,			HERE,	a[0],	0,	0, AT_REMOVEDIR)
SHAPE(mkdir,	true,			HERE,	a[0],	a[1],	0,	0)
SHAPE(symlink,	true,			HERE,	a[0],	0,	a[1],	0)

static bool prepare_sendto(struct io_uring_sqe *sqe, uint8_t op,
			   const struct flexsc_entry *entry, unsigned int known)
{
	args_t a = entry->args;

	if (a[2] > RW_MAX || (a[4] && !(known & URING_SENDS_TO)) ||
	    a[5] > UINT16_MAX)
		return false;
	sqe_fill(sqe, op, a[0], a[1], a[2], a[4], sqe_send_flags(a[3]));
	/*
	 * Store addr_len by its offset, because some versions of the header lack
	 * its name.
	 */
	if (a[4])
		memcpy((char *)sqe + offsetof(struct io_uring_sqe,
					      splice_fd_in),
		       &(uint16_t){ (uint16_t)a[5] }, sizeof(uint16_t));
	return true;
}

/*
 * splice() updates the offsets in the program's memory, but the operation doesn't: a
 * splice() with offsets is made without io_uring.
 */
static bool prepare_splice(struct io_uring_sqe *sqe, uint8_t op,
			   const struct flexsc_entry *entry, unsigned int known)
{
	args_t a = entry->args;

	if (a[1] || a[3] || !a[4] || a[4] > RW_MAX)
		return false;
	sqe_fill(sqe, op, a[2], 0, a[4], CURRENT, a[5]);
	sqe->splice_off_in = CURRENT;
	sqe->splice_fd_in = (int)a[0];
	return true;
}

static bool prepare_tee(struct io_uring_sqe *sqe, uint8_t op,
			const struct flexsc_entry *entry, unsigned int known)
{
	args_t a = entry->args;

	if (!a[2] || a[2] > RW_MAX)
		return false;
	sqe_fill(sqe, op, a[1], 0, a[2], 0, a[3]);
	sqe->splice_fd_in = (int)a[0];
	return true;
}

/* Arguments: path, name, value, size, flags. */
static bool prepare_xattr(struct io_uring_sqe *sqe, uint8_t op,
			  const struct flexsc_entry *entry, unsigned int known)
{
	args_t a = entry->args;

	if (a[3] > UINT32_MAX)
		return false;
	sqe_fill(sqe, op, 0, a[1], a[3], a[2], sqe_optional(entry, 4));
	sqe->addr3 = a[0];
	return true;
}

SHAPE(fxattr,	a[3] <= UINT32_MAX,	a[0],	a[1],	a[3],	a[2],
							sqe_optional(entry, 4))

/*
 * A poll() or ppoll() of one descriptor without a time limit. Query the kernel first: if
 * the descriptor is ready, or the struct pollfd isn't readable memory, the plain call is
 * made. A call that flexsc__call_poll() has posted (URING_POLL_WAITS) needs no query.
 */
static bool prepare_one(struct io_uring_sqe *sqe, uint8_t op, args_t a,
			unsigned int known)
{
	const struct pollfd *one = (const struct pollfd *)(uintptr_t)a[0];

	if (!(known & URING_POLL_WAITS) && poll_now(a[0]) != 0)
		return false;
	if (one->fd < 0)
		return false;
	sqe_fill(sqe, op, (uint64_t)one->fd, 0, 0, 0, 0);
	sqe->poll32_events = (uint16_t)one->events;
	return true;
}

static bool prepare_poll(struct io_uring_sqe *sqe, uint8_t op,
			 const struct flexsc_entry *entry, unsigned int known)
{
	args_t a = entry->args;

	return a[1] == 1 && (int)a[2] < 0 && prepare_one(sqe, op, a, known);
}

/* A ppoll() with a signal mask is made without io_uring. */
static bool prepare_ppoll(struct io_uring_sqe *sqe, uint8_t op,
			  const struct flexsc_entry *entry, unsigned int known)
{
	args_t a = entry->args;

	return a[1] == 1 && !a[2] && !a[3] && prepare_one(sqe, op, a, known);
}

/* Returns the result of poll() or ppoll() if the operation returned res. */
static int64_t result_poll(args_t a, int32_t res)
{
	struct pollfd *one = (struct pollfd *)(uintptr_t)a[0];

	if (res < 0 && res != -EBADF)
		return res;
	one->revents = res < 0 ? POLLNVAL : (short)res;
	return 1;
}

/*
 * Is this the address of a valid time limit in readable memory? To check, wait on a
 * futex word with a wrong expected value. The kernel checks the time limit before it
 * compares the word, so -EAGAIN means that the time limit is valid. The check costs a
 * mode switch, which is little for a call that sleeps.
 */
static bool sqe_check_time(uint64_t when)
{
	_Atomic uint32_t word = 0;

	return ask(SYS_futex, PTR(&word), FUTEX_WAIT_PRIVATE, 1, when,
		   0, 0) == -EAGAIN;
}

/*
 * Make the plain call if the time is invalid, because the operation doesn't reject it.
 */
static bool sqe_sleep(struct io_uring_sqe *sqe, uint8_t op, uint64_t when,
		      uint64_t rest, unsigned int flags)
{
	return when && !rest && sqe_check_time(when) &&
	       sqe_fill(sqe, op, -1ULL, when, 1, 0, flags);
}

static bool prepare_nanosleep(struct io_uring_sqe *sqe, uint8_t op,
			      const struct flexsc_entry *entry, unsigned int known)
{
	args_t a = entry->args;

	return sqe_sleep(sqe, op, a[0], a[1], 0);
}

static bool prepare_clock_sleep(struct io_uring_sqe *sqe, uint8_t op,
				const struct flexsc_entry *entry, unsigned int known)
{
	args_t a = entry->args;
	unsigned int flags = 0;

	if (a[0] == CLOCK_REALTIME)
		flags |= IORING_TIMEOUT_REALTIME;
	else if (a[0] != CLOCK_MONOTONIC)
		return false;
	if (a[1] == TIMER_ABSTIME)
		flags |= IORING_TIMEOUT_ABS;
	else if (a[1])
		return false;
	return sqe_sleep(sqe, op, a[2], flags & IORING_TIMEOUT_ABS ? 0 : a[3],
			 flags);
}

/* When a sleep has completed, the operation returns -ETIME, but the call returns 0. */
static int64_t result_sleep(args_t a, int32_t res)
{
	return res == -ETIME ? 0 : res;
}

static bool prepare_waitid(struct io_uring_sqe *sqe, uint8_t op,
			   const struct flexsc_entry *entry, unsigned int known)
{
	args_t a = entry->args;

	if (a[4])
		return false;
	sqe_fill(sqe, op, a[1], 0, a[0], a[2], 0);
	sqe->file_index = (uint32_t)a[3];
	return true;
}

static bool prepare_await(struct io_uring_sqe *sqe, uint8_t op,
			  const struct flexsc_entry *entry, unsigned int known)
{
	sqe_fill(sqe, op, entry->args[AWAIT_FD], 0, 0, 0, 0);
	sqe->poll32_events = POLLIN;
	return true;
}

static int64_t result_await(args_t a, int32_t res)
{
	if (res < 0)
		return res;
	((struct pollfd *)(uintptr_t)a[AWAIT_RECORD])->revents = (short)res;
	return 1;
}

/* Multishot requests; loop/multishot.h defines their arguments. */
static bool prepare_multishot_accept(struct io_uring_sqe *sqe, uint8_t op,
				     const struct flexsc_entry *entry,
				     unsigned int known)
{
	args_t a = entry->args;

	sqe_fill(sqe, op, a[0], 0, 0, 0, a[3]);
	sqe->ioprio = IORING_ACCEPT_MULTISHOT;
	return true;
}

static bool prepare_multishot_recv(struct io_uring_sqe *sqe, uint8_t op,
				   const struct flexsc_entry *entry,
				   unsigned int known)
{
	args_t a = entry->args;

	sqe_fill(sqe, op, a[0], 0, 0, 0, a[RECV_FLAGS]);
	sqe->flags = IOSQE_BUFFER_SELECT;
	sqe->buf_group = (uint16_t)a[RECV_GROUP];
	if (!a[RECV_ONCE])
		sqe->ioprio = IORING_RECV_MULTISHOT;
	return true;
}

/* The shape of calls that have no operation. */
static bool prepare_none(struct io_uring_sqe *sqe, uint8_t op,
			 const struct flexsc_entry *entry, unsigned int known)
{
	return false;
}

unsigned int flexsc__uring_known(uint64_t operations)
{
	unsigned int known = 0;

	/*
	 * A kernel with IORING_OP_SEND_ZC (Linux 6.0) also has addresses for sends, and
	 * multishot requests.
	 */
	if (operations >> IORING_OP_SEND_ZC & 1)
		known |= URING_SENDS_TO | URING_MULTISHOT;
	/*
	 * A kernel with IORING_OP_SOCKET (Linux 5.19) also has MSG_WAITALL for sends.
	 */
	if (operations >> IORING_OP_SOCKET & 1)
		known |= URING_SENDS_WHOLE;
	return known;
}

bool flexsc__uring_in_parts(unsigned int op, unsigned int known)
{
	if (OWNER_GOES_ON)
		return false;
	switch (op) {
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
		return true;
	case IORING_OP_SEND:
	case IORING_OP_SENDMSG:
		return !(known & URING_SENDS_WHOLE);
	default:
		return false;
	}
}

const uring_prepare_fn flexsc__uring_prepare[SHAPES] = {
	[SHAPE_NONE] = prepare_none,
	[SHAPE_RW] = prepare_rw,
	[SHAPE_RW_AT] = prepare_rw_at,
	[SHAPE_RW_V2] = prepare_rw_v2,
	[SHAPE_RANGE] = prepare_range,
	[SHAPE_MADVISE] = prepare_madvise,
	[SHAPE_FD] = prepare_fd,
	[SHAPE_DATASYNC] = prepare_datasync,
	[SHAPE_NUMBER] = prepare_number,
	[SHAPE_FALLOCATE] = prepare_fallocate,
	[SHAPE_FTRUNCATE] = prepare_ftruncate,
	[SHAPE_SOCKET] = prepare_socket,
	[SHAPE_ADDRESS] = prepare_address,
	[SHAPE_ACCEPT] = prepare_accept,
	[SHAPE_SENDTO] = prepare_sendto,
	[SHAPE_RECVFROM] = prepare_recvfrom,
	[SHAPE_SENDMSG] = prepare_sendmsg,
	[SHAPE_RECVMSG] = prepare_recvmsg,
	[SHAPE_PIPE] = prepare_pipe,
	[SHAPE_SPLICE] = prepare_splice,
	[SHAPE_TEE] = prepare_tee,
	[SHAPE_POLL] = prepare_poll,
	[SHAPE_PPOLL] = prepare_ppoll,
	[SHAPE_EPOLL_CTL] = prepare_epoll_ctl,
	[SHAPE_EPOLL_WAIT] = prepare_epoll_wait,
	[SHAPE_NANOSLEEP] = prepare_nanosleep,
	[SHAPE_CLOCK_SLEEP] = prepare_clock_sleep,
	[SHAPE_WAITID] = prepare_waitid,
	[SHAPE_OPENAT] = prepare_openat,
	[SHAPE_OPENAT2] = prepare_openat2,
	[SHAPE_STATX] = prepare_statx,
	[SHAPE_TWO_AT] = prepare_two_at,
	[SHAPE_UNLINKAT] = prepare_unlinkat,
	[SHAPE_MKDIRAT] = prepare_mkdirat,
	[SHAPE_SYMLINKAT] = prepare_symlinkat,
	[SHAPE_OPEN] = prepare_open,
	[SHAPE_CREAT] = prepare_creat,
	[SHAPE_TWO] = prepare_two,
	[SHAPE_UNLINK] = prepare_unlink,
	[SHAPE_RMDIR] = prepare_rmdir,
	[SHAPE_MKDIR] = prepare_mkdir,
	[SHAPE_SYMLINK] = prepare_symlink,
	[SHAPE_XATTR] = prepare_xattr,
	[SHAPE_FXATTR] = prepare_fxattr,
	[SHAPE_AWAIT] = prepare_await,
	[SHAPE_MULTISHOT_ACCEPT] = prepare_multishot_accept,
	[SHAPE_MULTISHOT_RECV] = prepare_multishot_recv,
};

static int64_t (*const result[SHAPES])(args_t a, int32_t res) = {
	[SHAPE_POLL] = result_poll,
	[SHAPE_PPOLL] = result_poll,
	[SHAPE_AWAIT] = result_await,
	[SHAPE_NANOSLEEP] = result_sleep,
	[SHAPE_CLOCK_SLEEP] = result_sleep,
};

int64_t flexsc__uring_result(const struct flexsc_entry *entry, int32_t res)
{
	unsigned int shape = flexsc__call_info(entry->nr)->shape;

	return result[shape] ? result[shape](entry->args, res) : res;
}
