/* SPDX-License-Identifier: MIT */
#include "asked.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include "call_info.h"

static uint64_t asked_sum(const struct iovec *iov, uint64_t count)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}

uint64_t flexsc__requested_length(const struct flexsc_entry *entry)
{
	const struct call_info *row = flexsc__call_info(entry->nr);
	const __u64 *args = &entry->args[row->length_arg];
	const void *pointer = (const void *)(uintptr_t)args[0];
	const struct msghdr *message = pointer;

	switch ((enum call_length)row->length) {
	case LENGTH_BYTES:
		return args[0];
	case LENGTH_VECTOR:
		return asked_sum(pointer, args[1]);
	case LENGTH_MESSAGE:
		return asked_sum(message->msg_iov, message->msg_iovlen);
	case LENGTH_NONE:
		break;
	}
	return 0;
}
