/* SPDX-License-Identifier: MIT */
#include "call_info.h"

#include <sys/uio.h>

enum call_class flexsc__call_class(const struct call_info *row,
			       const struct flexsc_entry *entry)
{
	const __u64 *args = entry->args;

	if (row->class != CLASS_WAIT)
		return row->class;
	row = call_variant_of(row, args);
	if (args[row->flags_arg] & row->nowait ||
	    (row->limit == LIMIT_MS && !args[row->limit_arg]))
		return CLASS_FAST;
	return row->class;
}

bool flexsc__call_is_unpolled(const struct call_info *row, const __u64 *args)
{
	const __u64 flags = args[row->flags_arg], all = row->all | MSG_PEEK;

	return flags & row->unpolled || (row->all && (flags & all) == all);
}

static uint64_t sum(const struct iovec *iov, uint64_t count)
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
		return sum(pointer, args[1]);
	case LENGTH_MESSAGE:
		return sum(message->msg_iov, message->msg_iovlen);
	case LENGTH_NONE:
		break;
	}
	return 0;
}
