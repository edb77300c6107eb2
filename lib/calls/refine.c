/* SPDX-License-Identifier: MIT */
#include "refine.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

static enum call_class fast_if(bool fast)
{
	return fast ? CLASS_FAST : CLASS_WAIT;
}

static enum call_class futex_class(int op)
{
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_UNLOCK_PI:
	case FUTEX_TRYLOCK_PI:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_CMP_REQUEUE_PI:
		/*
		 * A PI futex's owner would be the thread that makes the call.
		 */
		return CLASS_NEVER;
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		return CLASS_WAIT;
	default:
		return CLASS_FAST;
	}
}

static enum call_class ioctl_class(unsigned int request)
{
	switch (request) {
	case FIONREAD:
	case FIONBIO:
	case FIOASYNC:
	case FIOCLEX:
	case FIONCLEX:
	case SIOCOUTQ:
	case TIOCGWINSZ:
	case TCGETS:
		return CLASS_FAST;
	default:
		return CLASS_WAIT;
	}
}

enum call_class flexsc__refine(const struct table_row *row,
			       const struct flexsc_entry *entry)
{
	const __u64 *args = entry->args;

	if (row->class != CLASS_WAIT)
		return row->class;
	switch (entry->nr) {
	case SYS_fcntl:
		return fast_if(args[1] != F_SETLKW && args[1] != F_OFD_SETLKW);
	case SYS_flock:
		return fast_if(args[1] & LOCK_NB);
	case SYS_futex:
		return futex_class((int)args[1]);
	case SYS_ioctl:
		return ioctl_class((unsigned int)args[1]);
	case SYS_wait4:
		return fast_if(args[2] & WNOHANG);
	case SYS_waitid:
		return fast_if(args[3] & WNOHANG);
	case SYS_recvfrom:
	case SYS_sendto:
		return fast_if(args[3] & MSG_DONTWAIT);
	case SYS_recvmsg:
	case SYS_sendmsg:
		return fast_if(args[2] & MSG_DONTWAIT);
	case SYS_recvmmsg:
	case SYS_sendmmsg:
		return fast_if(args[3] & MSG_DONTWAIT);
	case SYS_preadv2:
	case SYS_pwritev2:
		return fast_if(args[5] & RWF_NOWAIT);
	case SYS_msgsnd:
		return fast_if(args[3] & IPC_NOWAIT);
	case SYS_msgrcv:
		return fast_if(args[4] & IPC_NOWAIT);
	case SYS_epoll_pwait:
		return fast_if(!args[3]);
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
		return fast_if(!args[3]);
#endif
#ifdef SYS_poll
	case SYS_poll:
		return fast_if(!args[2]);
#endif
	default:
		return CLASS_WAIT;
	}
}

bool flexsc__unpolled(unsigned int nr, const __u64 *args)
{
	const __u64 all = MSG_PEEK | MSG_WAITALL;
	__u64 flags;

	switch (nr) {
	case SYS_recvfrom:
		flags = args[3];
		break;
	case SYS_recvmsg:
		flags = args[2];
		break;
	default:
		return false;
	}
	return flags & (MSG_ERRQUEUE | MSG_OOB) || (flags & all) == all;
}
