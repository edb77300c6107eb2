/* SPDX-License-Identifier: MIT */
/*
 * System calls as io_uring operations: which field takes which argument, and
 * which arguments have no operation. syscalls.tbl says which operation; here
 * is a function for each shape that operations have. Owner only.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#include "../loop/entry.h"
#include "../base/syscall.h"
#include "uring_ops.h"

/* The most that one read or write transfers; the kernel's MAX_RW_COUNT. */
#define RW_MAX		0x7ffff000ULL
#define CURRENT		((uint64_t)-1)	/* offset: the file's own position */

typedef const __u64 *args_t;

static bool fill(struct io_uring_sqe *sqe, uint8_t op, uint64_t fd,
		 uint64_t addr, uint64_t len, uint64_t off)
{
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = op;
	sqe->fd = (int32_t)fd;
	sqe->addr = addr;
	sqe->len = (uint32_t)len;
	sqe->off = off;
	return true;
}

/* The same with the flags word, whatever the operation calls it. */
static bool fill_flags(struct io_uring_sqe *sqe, uint8_t op, uint64_t fd,
		       uint64_t addr, uint64_t len, uint64_t off,
		       uint64_t flags)
{
	fill(sqe, op, fd, addr, len, off);
	sqe->rw_flags = (int)flags;
	return true;
}

/* (fd, buf, count, offset): a count that is no int is the plain call's. */
static bool rw(struct io_uring_sqe *sqe, uint8_t op, args_t a, uint64_t off)
{
	return a[2] <= RW_MAX && fill(sqe, op, a[0], a[1], a[2], off);
}

/* The same at a place; a negative one is an error that io_uring lacks. */
static bool rw_at(struct io_uring_sqe *sqe, uint8_t op, args_t a)
{
	return (int64_t)a[3] >= 0 && rw(sqe, op, a, a[3]);
}

/* p{read,write}v2: offset -1 is the current position, and there are flags. */
static bool rw_v2(struct io_uring_sqe *sqe, uint8_t op, args_t a)
{
	if ((int64_t)a[3] < -1 || !rw(sqe, op, a, a[3]))
		return false;
	sqe->rw_flags = (int)a[5];
	return true;
}

/* A plain send waits until all is sent; the operation has to be told to. */
static uint64_t whole(uint64_t flags)
{
	return flags & MSG_DONTWAIT ? flags : flags | MSG_WAITALL;
}

static bool send_op(struct io_uring_sqe *sqe, args_t a, bool send_address)
{
	if (a[2] > RW_MAX || (a[4] && !send_address) || a[5] > UINT16_MAX)
		return false;
	fill_flags(sqe, IORING_OP_SEND, a[0], a[1], a[2], a[4], whole(a[3]));
	/* addr_len: its name is younger than some headers. */
	if (a[4])
		memcpy((char *)sqe + offsetof(struct io_uring_sqe,
					      splice_fd_in),
		       &(uint16_t){ (uint16_t)a[5] }, sizeof(uint16_t));
	return true;
}

/* splice() moves its offsets where they're stored; the operation doesn't. */
static bool splice_op(struct io_uring_sqe *sqe, args_t a)
{
	if (a[1] || a[3] || !a[4] || a[4] > RW_MAX)
		return false;
	fill_flags(sqe, IORING_OP_SPLICE, a[2], 0, a[4], CURRENT, a[5]);
	sqe->splice_off_in = CURRENT;
	sqe->splice_fd_in = (int)a[0];
	return true;
}

static bool tee_op(struct io_uring_sqe *sqe, args_t a)
{
	if (!a[2] || a[2] > RW_MAX)
		return false;
	fill_flags(sqe, IORING_OP_TEE, a[1], 0, a[2], 0, a[3]);
	sqe->splice_fd_in = (int)a[0];
	return true;
}

/* ({path or fd}, name, value, size, flags) */
static bool xattr(struct io_uring_sqe *sqe, uint8_t op, args_t a, bool is_fd,
		  uint64_t flags)
{
	if (a[3] > UINT32_MAX)
		return false;
	fill_flags(sqe, op, is_fd ? a[0] : 0, a[1], a[3], a[2], flags);
	sqe->addr3 = is_fd ? 0 : a[0];
	return true;
}

#ifdef SYS_poll
/*
 * One descriptor without a time limit. The kernel looks at it first: what is
 * ready, or isn't memory, is the plain call's.
 */
static bool poll_op(struct io_uring_sqe *sqe, args_t a)
{
	const struct pollfd *one = (const struct pollfd *)(uintptr_t)a[0];

	if (a[1] != 1 || (int)a[2] >= 0)
		return false;
	if (a[3] != POLL_WAITS &&
	    raw_syscall(SYS_poll, a[0], 1, 0, 0, 0, 0) != 0)
		return false;
	if (one->fd < 0)
		return false;
	fill(sqe, IORING_OP_POLL_ADD, (uint64_t)one->fd, 0, 0, 0);
	sqe->poll32_events = (uint16_t)one->events;
	return true;
}

/* What poll() returns where the operation returned res. */
static int64_t poll_result(args_t a, int32_t res)
{
	struct pollfd *one = (struct pollfd *)(uintptr_t)a[0];

	if (res < 0 && res != -EBADF)
		return res;
	one->revents = res < 0 ? POLLNVAL : (short)res;
	return 1;
}
#endif

/*
 * Is it a time, and in memory that can be read? The kernel looks at a futex's
 * time limit before it finds that there is nothing to wait for. This costs a
 * mode switch, which a call that sleeps can afford.
 */
static bool valid_time(uint64_t when)
{
	_Atomic uint32_t word = 0;

	return raw_syscall(SYS_futex, PTR(&word), FUTEX_WAIT_PRIVATE, 1, when,
			   0, 0) == -EAGAIN;
}

/* Invalid times are an error that the operation doesn't see. */
static bool sleep_op(struct io_uring_sqe *sqe, uint64_t when, uint64_t rest,
		     unsigned int flags)
{
	if (!when || rest || !valid_time(when))
		return false;
	return fill_flags(sqe, IORING_OP_TIMEOUT, -1ULL, when, 1, 0, flags);
}

static bool clock_sleep(struct io_uring_sqe *sqe, args_t a)
{
	unsigned int flags = 0;

	if (a[0] == CLOCK_REALTIME)
		flags |= IORING_TIMEOUT_REALTIME;
	else if (a[0] != CLOCK_MONOTONIC)
		return false;
	if (a[1] == TIMER_ABSTIME)
		flags |= IORING_TIMEOUT_ABS;
	else if (a[1])
		return false;
	return sleep_op(sqe, a[2], flags & IORING_TIMEOUT_ABS ? 0 : a[3],
			flags);
}

static bool waitid_op(struct io_uring_sqe *sqe, args_t a)
{
	if (a[4])
		return false;
	fill(sqe, OP_WAITID, a[1], 0, a[0], a[2]);
	sqe->file_index = (uint32_t)a[3];
	return true;
}

/* Calls on sockets and pipes. */
static bool prepare_socket(const struct flexsc_entry *entry,
			   struct io_uring_sqe *sqe, bool send_address)
{
	args_t a = entry->args;

	switch (entry->nr) {
	case SYS_accept:
		return fill(sqe, IORING_OP_ACCEPT, a[0], a[1], 0, a[2]);
	case SYS_accept4:
		return fill_flags(sqe, IORING_OP_ACCEPT, a[0], a[1], 0, a[2],
				  a[3]);
	case SYS_connect:
		return fill(sqe, IORING_OP_CONNECT, a[0], a[1], 0,
			    (uint32_t)a[2]);
	case SYS_sendto:
		return send_op(sqe, a, send_address);
	case SYS_recvfrom:
		return !a[4] && a[2] <= RW_MAX &&
		       fill_flags(sqe, IORING_OP_RECV, a[0], a[1], a[2], 0,
				  a[3]);
	case SYS_sendmsg:
		return a[1] && fill_flags(sqe, IORING_OP_SENDMSG, a[0], a[1], 1,
					  0, whole(a[2]));
	case SYS_recvmsg:
		return a[1] && fill_flags(sqe, IORING_OP_RECVMSG, a[0], a[1], 1, 0,
				  a[2]);
	case SYS_shutdown:
		return fill(sqe, IORING_OP_SHUTDOWN, a[0], 0, a[1], 0);
	case SYS_socket:
		return fill(sqe, IORING_OP_SOCKET, a[0], 0, a[2], a[1]);
	case SYS_bind:
		return fill(sqe, OP_BIND, a[0], a[1], 0, (uint32_t)a[2]);
	case SYS_listen:
		return fill(sqe, OP_LISTEN, a[0], 0, a[1], 0);
	case SYS_splice:
		return splice_op(sqe, a);
	case SYS_tee:
		return tee_op(sqe, a);
#ifdef SYS_pipe
	case SYS_pipe:
		return fill(sqe, OP_PIPE, 0, a[0], 0, 0);
#endif
	case SYS_pipe2:
		return fill_flags(sqe, OP_PIPE, 0, a[0], 0, 0, a[1]);
	case SYS_epoll_ctl:
		return fill(sqe, IORING_OP_EPOLL_CTL, a[0], a[3], a[1],
			    (uint32_t)a[2]);
#ifdef SYS_poll
	case SYS_poll:
		return poll_op(sqe, a);
#endif
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
		return (int)a[3] < 0 &&
		       fill(sqe, OP_EPOLL_WAIT, a[0], a[1], a[2], 0);
#endif
	case SYS_epoll_pwait:
		return (int)a[3] < 0 && !a[4] &&
		       fill(sqe, OP_EPOLL_WAIT, a[0], a[1], a[2], 0);
	case SYS_nanosleep:
		return sleep_op(sqe, a[0], a[1], 0);
	case SYS_clock_nanosleep:
		return clock_sleep(sqe, a);
	case SYS_waitid:
		return waitid_op(sqe, a);
	default:
		return false;
	}
}

/* x86-64 has calls on paths that don't name a directory too. */
static bool prepare_here(const struct flexsc_entry *entry,
			 struct io_uring_sqe *sqe)
{
#ifdef SYS_open
	const uint64_t here = (uint64_t)AT_FDCWD;
	args_t a = entry->args;

	switch (entry->nr) {
	case SYS_open:
		return fill_flags(sqe, IORING_OP_OPENAT, here, a[0], a[2], 0,
				  a[1]);
	case SYS_creat:
		return fill_flags(sqe, IORING_OP_OPENAT, here, a[0], a[1], 0,
				  O_CREAT | O_WRONLY | O_TRUNC);
	case SYS_rename:
		return fill(sqe, IORING_OP_RENAMEAT, here, a[0], here, a[1]);
	case SYS_unlink:
		return fill(sqe, IORING_OP_UNLINKAT, here, a[0], 0, 0);
	case SYS_rmdir:
		return fill_flags(sqe, IORING_OP_UNLINKAT, here, a[0], 0, 0,
				  AT_REMOVEDIR);
	case SYS_mkdir:
		return fill(sqe, IORING_OP_MKDIRAT, here, a[0], a[1], 0);
	case SYS_symlink:
		return fill(sqe, IORING_OP_SYMLINKAT, here, a[0], 0, a[1]);
	case SYS_link:
		return fill(sqe, IORING_OP_LINKAT, here, a[0], here, a[1]);
	default:
		break;
	}
#endif
	return prepare_socket(entry, sqe, false);
}

/* Calls on paths and on extended attributes. */
static __attribute__((noinline)) bool
prepare_path(const struct flexsc_entry *entry, struct io_uring_sqe *sqe)
{
	args_t a = entry->args;

	switch (entry->nr) {
	case SYS_openat:
		return fill_flags(sqe, IORING_OP_OPENAT, a[0], a[1], a[3], 0,
				  a[2]);
	case SYS_openat2:
		return a[3] <= UINT32_MAX &&
		       fill(sqe, IORING_OP_OPENAT2, a[0], a[1], a[3], a[2]);
	case SYS_statx:
		return a[1] && fill_flags(sqe, IORING_OP_STATX, a[0], a[1],
					  a[3], a[4], a[2]);
#ifdef SYS_renameat
	case SYS_renameat:
		return fill(sqe, IORING_OP_RENAMEAT, a[0], a[1], a[2], a[3]);
#endif
	case SYS_renameat2:
		return fill_flags(sqe, IORING_OP_RENAMEAT, a[0], a[1], a[2],
				  a[3], a[4]);
	case SYS_unlinkat:
		return fill_flags(sqe, IORING_OP_UNLINKAT, a[0], a[1], 0, 0,
				  a[2]);
	case SYS_mkdirat:
		return fill(sqe, IORING_OP_MKDIRAT, a[0], a[1], a[2], 0);
	case SYS_symlinkat:
		return fill(sqe, IORING_OP_SYMLINKAT, a[1], a[0], 0, a[2]);
	case SYS_linkat:
		return fill_flags(sqe, IORING_OP_LINKAT, a[0], a[1], a[2],
				  a[3], a[4]);
	case SYS_setxattr:
		return xattr(sqe, IORING_OP_SETXATTR, a, false, a[4]);
	case SYS_getxattr:
		return xattr(sqe, IORING_OP_GETXATTR, a, false, 0);
	default:
		return prepare_here(entry, sqe);
	}
}

bool flexsc__uring_prepare(const struct flexsc_entry *entry,
			   struct io_uring_sqe *sqe, bool send_address)
{
	args_t a = entry->args;

	switch (entry->nr) {
	case SYS_read:
		return rw(sqe, IORING_OP_READ, a, CURRENT);
	case SYS_write:
		return rw(sqe, IORING_OP_WRITE, a, CURRENT);
	case SYS_pread64:
		return rw_at(sqe, IORING_OP_READ, a);
	case SYS_pwrite64:
		return rw_at(sqe, IORING_OP_WRITE, a);
	case SYS_readv:
		return rw(sqe, IORING_OP_READV, a, CURRENT);
	case SYS_writev:
		return rw(sqe, IORING_OP_WRITEV, a, CURRENT);
	case SYS_preadv:
		return rw_at(sqe, IORING_OP_READV, a);
	case SYS_pwritev:
		return rw_at(sqe, IORING_OP_WRITEV, a);
	case SYS_preadv2:
		return rw_v2(sqe, IORING_OP_READV, a);
	case SYS_pwritev2:
		return rw_v2(sqe, IORING_OP_WRITEV, a);
	case SYS_close:
		return fill(sqe, IORING_OP_CLOSE, a[0], 0, 0, 0);
	case SYS_fsync:
		return fill(sqe, IORING_OP_FSYNC, a[0], 0, 0, 0);
	case SYS_fdatasync:
		return fill_flags(sqe, IORING_OP_FSYNC, a[0], 0, 0, 0,
				  IORING_FSYNC_DATASYNC);
	case SYS_sync_file_range:
		return a[2] <= UINT32_MAX &&
		       fill_flags(sqe, IORING_OP_SYNC_FILE_RANGE, a[0], 0,
				  a[2], a[1], a[3]);
	case SYS_fallocate:
		return fill(sqe, IORING_OP_FALLOCATE, a[0], a[3], a[1], a[2]);
	case SYS_ftruncate:
		return fill(sqe, OP_FTRUNCATE, a[0], 0, 0, a[1]);
	case SYS_fadvise64:
		return a[2] <= UINT32_MAX &&
		       fill_flags(sqe, IORING_OP_FADVISE, a[0], 0, a[2], a[1],
				  a[3]);
	case SYS_madvise:
		return a[1] <= UINT32_MAX &&
		       fill_flags(sqe, IORING_OP_MADVISE, -1ULL, a[0], a[1], 0,
				  a[2]);
	case SYS_fsetxattr:
		return xattr(sqe, IORING_OP_FSETXATTR, a, true, a[4]);
	case SYS_fgetxattr:
		return xattr(sqe, IORING_OP_FGETXATTR, a, true, 0);
	case SYS_sendto:
		return send_op(sqe, a, send_address);
	default:
		return prepare_path(entry, sqe);
	}
}

int64_t flexsc__uring_result(const struct flexsc_entry *entry, int32_t res)
{
	/* A sleep that ends is a success to nanosleep(), a timeout here. */
	if (res == -ETIME && (entry->nr == SYS_nanosleep ||
			      entry->nr == SYS_clock_nanosleep))
		return 0;
#ifdef SYS_poll
	if (entry->nr == SYS_poll && res > -512)
		return poll_result(entry->args, res);
#endif
	/* The kernel's own codes for "interrupted, to be restarted". */
	return res <= -512 && res >= -516 ? -EINTR : res;
}
