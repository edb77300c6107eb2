/* SPDX-License-Identifier: MIT */
/*
 * Calls that wait. Calls of the table that are missing here never wait for others
 * (copy_file_range, getdents64: files on a disk), or wait for nothing that a test
 * can withhold (syslog, io_destroy).
 */
#define _GNU_SOURCE
#include "pair.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define CURRENT	(-1)	/* an offset: the file's position */

const struct call calls[] = {
	/* Reading. */
	{ "read-pipe", PIPE_IN, 0, SYS_read, { FD, BUF, FEW }, FEW },
	{ "read-socket", UNIX_IN, 0, SYS_read, { FD, BUF, FEW }, FEW },
	{ "read-tcp", TCP_IN, 0, SYS_read, { FD, BUF, FEW }, FEW },
	{ "readv-pipe", PIPE_IN, 0, SYS_readv, { FD, VECTOR, 2 }, FEW },
	{ "readv-socket", UNIX_IN, 0, SYS_readv, { FD, VECTOR, 2 }, FEW },
	{ "preadv2-pipe", PIPE_IN, 0, SYS_preadv2,
	  { FD, VECTOR, 2, CURRENT }, FEW },
	{ "recv-socket", UNIX_IN, 0, SYS_recvfrom, { FD, BUF, FEW }, FEW },
	{ "recv-all", UNIX_IN, 0, SYS_recvfrom,
	  { FD, BUF, FEW, MSG_WAITALL }, FEW },
	{ "recv-tcp", TCP_IN, 0, SYS_recvfrom, { FD, BUF, FEW }, FEW },
	{ "recvfrom-datagram", DATAGRAM_IN, 0, SYS_recvfrom,
	  { FD, BUF, FEW, 0, ADDRESS, ADDRESS_SIZE }, FEW },
	{ "recvmsg-socket", UNIX_IN, 0, SYS_recvmsg, { FD, MESSAGE }, FEW },
	{ "recvmsg-all", UNIX_IN, 0, SYS_recvmsg,
	  { FD, MESSAGE, MSG_WAITALL }, FEW },
	{ "recvmmsg-socket", UNIX_IN, 0, SYS_recvmmsg,
	  { FD, MESSAGES_OF, 1 }, 1 },
	{ "read-eventfd", EVENT_IN, 0, SYS_read, { FD, PLACE, 8 }, 8 },
	{ "read-timerfd", TIMER, 0, SYS_read, { FD, PLACE, 8 }, 8 },
	{ "read-signalfd", SIGNALS, 0, SYS_read, { FD, EVENTS, 128 }, 128 },
	{ "read-inotify", CHANGES, 0, SYS_read, { FD, EVENTS, 128 }, 32 },
	{ "read-terminal", TERMINAL, 0, SYS_read, { FD, BUF, FEW }, FEW },
	{ "read-master", MASTER, 0, SYS_read, { FD, BUF, FEW }, FEW },
	{ "mq_timedreceive", QUEUE_IN, 0, SYS_mq_timedreceive,
	  { FD, BUF, FEW }, FEW },
	{ "accept", LISTENER, 0, SYS_accept, { FD }, 0 },
	{ "accept4", LISTENER, 0, SYS_accept4,
	  { FD, 0, 0, SOCK_CLOEXEC }, 0 },

	/* Writing. */
	{ "write-pipe", PIPE_OUT, 0, SYS_write,
	  { FD, BUF, MANY_BYTES }, MANY_BYTES },
	{ "write-socket", UNIX_OUT, 0, SYS_write,
	  { FD, BUF, MANY_BYTES }, MANY_BYTES },
	{ "write-tcp", TCP_OUT, 0, SYS_write,
	  { FD, BUF, MANY_BYTES }, MANY_BYTES },
	{ "writev-pipe", PIPE_OUT, 0, SYS_writev,
	  { FD, VECTOR, 2 }, MANY_BYTES },
	{ "writev-socket", UNIX_OUT, 0, SYS_writev,
	  { FD, VECTOR, 2 }, MANY_BYTES },
	{ "pwritev2-pipe", PIPE_OUT, 0, SYS_pwritev2,
	  { FD, VECTOR, 2, CURRENT }, MANY_BYTES },
	{ "send-socket", UNIX_OUT, 0, SYS_sendto,
	  { FD, BUF, MANY_BYTES }, MANY_BYTES },
	{ "send-tcp", TCP_OUT, 0, SYS_sendto,
	  { FD, BUF, MANY_BYTES }, MANY_BYTES },
	{ "sendmsg-socket", UNIX_OUT, 0, SYS_sendmsg,
	  { FD, MESSAGE }, MANY_BYTES },
	{ "sendmmsg-socket", UNIX_OUT, 0, SYS_sendmmsg,
	  { FD, MESSAGES_OF, 1 }, 1 },
	{ "sendfile-socket", UNIX_OUT, CONTENT, SYS_sendfile,
	  { FD, SECOND, PLACE, MANY_BYTES }, MANY_BYTES },
	{ "sendfile-tcp", TCP_OUT, CONTENT, SYS_sendfile,
	  { FD, SECOND, 0, MANY_BYTES }, MANY_BYTES },
	{ "sendfile-pipe", PIPE_OUT, CONTENT, SYS_sendfile,
	  { FD, SECOND, PLACE, MANY_BYTES }, MANY_BYTES },
	{ "write-eventfd", EVENT_OUT, 0, SYS_write, { FD, ONE, 8 }, 8 },
	{ "mq_timedsend", QUEUE_OUT, 0, SYS_mq_timedsend,
	  { FD, BUF, FEW, 0 }, 0 },
	{ "vmsplice-pipe", PIPE_OUT, 0, SYS_vmsplice,
	  { FD, VECTOR, 2 }, MANY_BYTES },

	/* From one descriptor to another. */
	{ "splice-in", PIPE_IN, PIPE_OUT, SYS_splice,
	  { FD, 0, SECOND, 0, FEW }, FEW },
	{ "tee-in", PIPE_IN, PIPE_OUT, SYS_tee, { FD, SECOND, FEW }, FEW },

	/* Polling. */
#ifdef SYS_poll
	{ "poll", PIPE_IN, 0, SYS_poll, { POLL_SET, 1, -1 }, 1 },
#endif
	{ "ppoll", PIPE_IN, 0, SYS_ppoll, { POLL_SET, 1 }, 1 },
#ifdef SYS_select
	{ "select", PIPE_IN, 0, SYS_select, { MAX_FD, FD_SET }, 1 },
#endif
	{ "pselect6", PIPE_IN, 0, SYS_pselect6, { MAX_FD, FD_SET }, 1 },
#ifdef SYS_epoll_wait
	{ "epoll_wait", POLLED, 0, SYS_epoll_wait, { FD, EVENTS, 1, -1 }, 1 },
#endif
	{ "epoll_pwait", POLLED, 0, SYS_epoll_pwait,
	  { FD, EVENTS, 1, -1 }, 1 },
	{ "epoll_pwait2", POLLED, 0, SYS_epoll_pwait2, { FD, EVENTS, 1 }, 1 },

	/* Locks. */
	{ "flock", LOCKED, 0, SYS_flock, { FD, LOCK_EX }, 0 },
	{ "fcntl-lock", LOCKED, 0, SYS_fcntl, { FD, F_OFD_SETLKW, LOCK }, 0 },

	/* Opening. */
	{ "open-fifo", NAMED_IN, 0, SYS_openat,
	  { AT_FDCWD, PATH, O_RDONLY | O_CLOEXEC }, 0 },
	{ "connect", BACKLOG, 0, SYS_connect, { FD, ADDRESS, 110 }, 0 },

	/* Without a descriptor. */
	{ "msgrcv", MESSAGES, 0, SYS_msgrcv, { ID, TEXT, FEW }, FEW },
	{ "semop", SEMAPHORE, 0, SYS_semop, { ID, OPERATION, 1 }, 0 },
	{ "semtimedop", SEMAPHORE, 0, SYS_semtimedop, { ID, OPERATION, 1 }, 0 },
	{ "wait4", CHILD, 0, SYS_wait4, { PID }, 0 },
	{ "waitid", CHILD, 0, SYS_waitid, { P_PID, PID, EVENTS, WEXITED }, 0 },
	{ "futex", WORD, 0, SYS_futex, { THE_WORD, FUTEX_WAIT, 0 }, 0 },
	{ "futex-private", WORD, 0, SYS_futex,
	  { THE_WORD, FUTEX_WAIT_PRIVATE, 0 }, 0 },
	{ "nanosleep", NOTHING, 0, SYS_nanosleep, { SHORT_TIME }, 0 },
	{ "clock_nanosleep", NOTHING, 0, SYS_clock_nanosleep,
	  { CLOCK_MONOTONIC, 0, SHORT_TIME }, 0 },
	{ 0 },
};

unsigned int call_has(const struct call *call)
{
	unsigned int has = ENDS_PROCESS | (call->second ? ON_SECOND : 0);

	switch (call->kind) {
	case UNIX_IN:
	case UNIX_OUT:
	case TCP_IN:
	case TCP_OUT:
	case DATAGRAM_IN:
		return has | ON_FD | ON_SOCKET | ON_PEER;
	case LISTENER:
	case BACKLOG:
		return has | ON_FD | ON_SOCKET;
	case PIPE_IN:
	case PIPE_OUT:
	case TERMINAL:
	case MASTER:
		return has | ON_FD | ON_PEER;
	case MESSAGES:
	case SEMAPHORE:
		return has | ON_ID;
	case NOTHING:
	case NAMED_IN:
	case CHILD:
	case WORD:
		return has;
	default:
		return has | ON_FD;
	}
}
