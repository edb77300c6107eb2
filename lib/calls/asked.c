/* SPDX-License-Identifier: MIT */
#include "asked.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static uint64_t asked_sum(const struct iovec *iov, uint64_t count)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}

uint64_t flexsc__asked(const struct flexsc_entry *entry)
{
	const __u64 *args = entry->args;
	const void *pointer = (const void *)(uintptr_t)args[1];
	const struct msghdr *message = pointer;

	switch (entry->nr) {
	case SYS_read:
	case SYS_write:
	case SYS_pread64:
	case SYS_pwrite64:
	case SYS_recvfrom:
	case SYS_sendto:
	case SYS_tee:
		return args[2];
	case SYS_readv:
	case SYS_writev:
	case SYS_preadv:
	case SYS_pwritev:
	case SYS_preadv2:
	case SYS_pwritev2:
	case SYS_vmsplice:
		return asked_sum(pointer, args[2]);
	case SYS_recvmsg:
	case SYS_sendmsg:
		return asked_sum(message->msg_iov, message->msg_iovlen);
	case SYS_sendfile:
		return args[3];
	case SYS_splice:
	case SYS_copy_file_range:
		return args[4];
	default:
		return 0;
	}
}
