/* SPDX-License-Identifier: MIT */
/* Calls that transfer data, or may wait for a descriptor. */
#define _GNU_SOURCE
#include "waits.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define CURRENT		(-1)

/* Calls with flags: the first one also with O_NONBLOCK, and all of them on sockets. */
#define WITH_FLAG(name, nr, flag, ...)	\
	{ name "+" #flag, nr, { __VA_ARGS__ }, true, false }

/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define RECEIVES(name, nr, ...)						\
	{ name, nr, { __VA_ARGS__, 0 }, false, true },			\
	WITH_FLAG(name, nr, DONTWAIT, __VA_ARGS__, MSG_DONTWAIT),	\
	WITH_FLAG(name, nr, ERRQUEUE, __VA_ARGS__, MSG_ERRQUEUE),	\
	WITH_FLAG(name, nr, OOB, __VA_ARGS__, MSG_OOB),			\
	WITH_FLAG(name, nr, PEEK, __VA_ARGS__, MSG_PEEK),		\
	WITH_FLAG(name, nr, WAITALL, __VA_ARGS__, MSG_WAITALL),		\
	WITH_FLAG(name, nr, WAITALL_PEEK, __VA_ARGS__,			\
		  MSG_WAITALL | MSG_PEEK),				\
	WITH_FLAG(name, nr, ERRQUEUE_WAITALL, __VA_ARGS__,		\
		  MSG_ERRQUEUE | MSG_WAITALL),				\
	WITH_FLAG(name, nr, TRUNC, __VA_ARGS__, MSG_TRUNC)

#define SENDS(name, nr, ...)						\
	{ name, nr, { __VA_ARGS__, 0 }, false, true },			\
	WITH_FLAG(name, nr, DONTWAIT, __VA_ARGS__, MSG_DONTWAIT),	\
	WITH_FLAG(name, nr, OOB, __VA_ARGS__, MSG_OOB),			\
	WITH_FLAG(name, nr, EOR, __VA_ARGS__, MSG_EOR),			\
	WITH_FLAG(name, nr, CONFIRM, __VA_ARGS__, MSG_CONFIRM)

/* Calls with vectors at an offset: argument 5 holds the flags. */
#define VECTORS(name, nr, vector, place)				\
	{ name, nr, { SUBJECT, vector, 2, place, 0, 0 }, false, true },	\
	{ name "+NOWAIT", nr, { SUBJECT, vector, 2, place, 0,		\
	  RWF_NOWAIT }, false, false },					\
	{ name "+HIPRI", nr, { SUBJECT, vector, 2, place, 0,		\
	  RWF_HIPRI }, false, false },					\
	{ name "+SYNC", nr, { SUBJECT, vector, 2, place, 0,		\
	  RWF_SYNC }, false, false }
/* NOLINTEND(bugprone-macro-parentheses) */

const struct transfer transfers[] = {
	{ "read", SYS_read, { SUBJECT, BYTES, ROOM }, false, true },
	{ "read-little", SYS_read, { SUBJECT, BYTES, 2 }, false, false },
	{ "read-nothing", SYS_read, { SUBJECT, BYTES, 0 }, false, false },
	{ "readv-nothing", SYS_readv, { SUBJECT, VECTOR_NONE, 2 },
	  false, false },
	{ "readv-many", SYS_readv, { SUBJECT, VECTOR_IN, -1 }, false, false },
	{ "readv", SYS_readv, { SUBJECT, VECTOR_IN, 2 }, false, true },
	{ "pread", SYS_pread64, { SUBJECT, BYTES, ROOM, 0 }, false, true },
	{ "preadv", SYS_preadv, { SUBJECT, VECTOR_IN, 2, 0 }, false, true },
	VECTORS("preadv2", SYS_preadv2, VECTOR_IN, CURRENT),
	{ "preadv2-wrong", SYS_preadv2,
	  { SUBJECT, VECTOR_IN, 2, CURRENT, 0, 1 << 30 }, false, false },
	VECTORS("preadv2-at", SYS_preadv2, VECTOR_IN, 0),
	{ "write", SYS_write, { SUBJECT, BYTES, OUT_BYTES }, false, true },
	{ "write-little", SYS_write, { SUBJECT, BYTES, 2 }, false, false },
	{ "write-nothing", SYS_write, { SUBJECT, BYTES, 0 }, false, false },
	{ "write-nowhere", SYS_write, { SUBJECT, NOWHERE, OUT_BYTES },
	  false, false },
	{ "writev", SYS_writev, { SUBJECT, VECTOR_OUT, 2 }, false, true },
	{ "pwrite", SYS_pwrite64, { SUBJECT, BYTES, OUT_BYTES, 0 },
	  false, true },
	{ "pwritev", SYS_pwritev, { SUBJECT, VECTOR_OUT, 2, 0 }, false, true },
	VECTORS("pwritev2", SYS_pwritev2, VECTOR_OUT, CURRENT),
	VECTORS("pwritev2-at", SYS_pwritev2, VECTOR_OUT, 0),

	RECEIVES("recv", SYS_recvfrom, SUBJECT, BYTES, ROOM),
	RECEIVES("recvmsg", SYS_recvmsg, SUBJECT, MESSAGE_IN),
	RECEIVES("recvmmsg", SYS_recvmmsg, SUBJECT, MESSAGES_IN, 1),
	SENDS("send", SYS_sendto, SUBJECT, BYTES, OUT_BYTES),
	SENDS("sendmsg", SYS_sendmsg, SUBJECT, MESSAGE_OUT),
	SENDS("sendmmsg", SYS_sendmmsg, SUBJECT, MESSAGES_OUT, 1),
	{ "accept", SYS_accept, { SUBJECT }, false, true },
	{ "accept4", SYS_accept4, { SUBJECT, 0, 0, SOCK_CLOEXEC },
	  false, true },
	{ "accept4-wrong", SYS_accept4, { SUBJECT, 0, 0, 1 }, true, false },
	{ "connect-unspec", SYS_connect, { SUBJECT, NO_ADDRESS, 16 },
	  false, true },
	{ "connect-path", SYS_connect, { SUBJECT, NO_PATH, 110 },
	  false, true },

	{ "splice-from", SYS_splice, { SUBJECT, 0, PIPE_TO, 0, 8 },
	  false, true },
	{ "splice-from+NONBLOCK", SYS_splice,
	  { SUBJECT, 0, PIPE_TO, 0, 8, SPLICE_F_NONBLOCK }, false, false },
	{ "splice-to", SYS_splice, { PIPE_FROM, 0, SUBJECT, 0, 8 },
	  false, true },
	{ "splice-to+NONBLOCK", SYS_splice,
	  { PIPE_FROM, 0, SUBJECT, 0, 8, SPLICE_F_NONBLOCK }, false, false },
	{ "tee-from", SYS_tee, { SUBJECT, PIPE_TO, 8 }, false, true },
	{ "tee-to", SYS_tee, { PIPE_FROM, SUBJECT, 8 }, false, true },
	{ "vmsplice", SYS_vmsplice, { SUBJECT, VECTOR_OUT, 2 }, false, true },
	{ "vmsplice+NONBLOCK", SYS_vmsplice,
	  { SUBJECT, VECTOR_OUT, 2, SPLICE_F_NONBLOCK }, false, false },
	{ "sendfile-to", SYS_sendfile, { SUBJECT, REGULAR, 0, 8 },
	  false, true },
	{ "sendfile-from", SYS_sendfile, { PIPE_TO, SUBJECT, 0, 8 },
	  false, true },
	{ "copy_file_range-from", SYS_copy_file_range,
	  { SUBJECT, 0, REGULAR, 0, 8 }, false, true },
	{ "copy_file_range-to", SYS_copy_file_range,
	  { REGULAR, 0, SUBJECT, 0, 8 }, false, true },
	{ "mq_timedreceive", SYS_mq_timedreceive, { SUBJECT, BYTES, ROOM },
	  false, true },
	{ "mq_timedsend", SYS_mq_timedsend, { SUBJECT, BYTES, OUT_BYTES },
	  false, true },
	{ "epoll_pwait", SYS_epoll_pwait, { SUBJECT, BYTES, 1, -1 },
	  false, true },
	{ "getdents64", SYS_getdents64, { SUBJECT, BYTES, ROOM },
	  false, false },
	{ "fsync", SYS_fsync, { SUBJECT }, false, false },
	{ 0 },
};
