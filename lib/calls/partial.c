/* SPDX-License-Identifier: MIT */
#include "partial.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "lib/base/syscall.h"
#include "call_info.h"

struct partial {
	int64_t total;		/* bytes transferred so far */
	__u64 args[3];		/* arguments 1 to 3 as they were posted */
	struct msghdr message;	/* a copy of the message, without control data */
	struct iovec iov[];	/* a copy of the vector, which is shortened */
};

enum kind {
	WHOLE,		/* not transferred in parts */
	BUFFER,		/* args[1] is the address of the data, args[2] the length */
	VECTOR,		/* args[1] is an array of args[2] struct iovec */
	MESSAGE,	/* args[1] is a struct msghdr */
	COUNT,		/* args[3] is the length; the kernel advances the offsets */
};

static enum kind partial_kind(const struct flexsc_entry *entry)
{
	const struct call_info *row = flexsc__call_info(entry->nr);

	/*
	 * Of the calls with an optional offset, such as pwritev2(), only those at the
	 * file's position (offset -1) continue: the kernel has moved the position, so
	 * the remainder needs no new offset.
	 */
	if (!(row->traits & CALL_PARTS) ||
	    (row->position == POSITION_IF_NEGATIVE &&
	     entry->args[row->position_arg] != (__u64)-1))
		return WHOLE;
	switch ((enum call_length)row->length) {
	case LENGTH_BYTES:
		return row->length_arg == 2 ? BUFFER : COUNT;
	case LENGTH_VECTOR:
		return VECTOR;
	case LENGTH_MESSAGE:
		return MESSAGE;
	case LENGTH_NONE:
		break;
	}
	return WHOLE;
}

bool flexsc__partial(const struct flexsc_entry *entry)
{
	return partial_kind(entry) != WHOLE;
}

static void *partial_pointer(const struct flexsc_entry *entry)
{
	return (void *)(uintptr_t)entry->args[1];
}

/*
 * Returns a copy of the vector, limited to what the plain call would transfer at most:
 * partial_most().
 */
static struct partial *partial_copy(const struct iovec *iov, uint64_t count)
{
	struct partial *partial = malloc(sizeof(*partial) + count * sizeof(*iov));
	uint64_t left = RW_MAX;

	for (uint64_t i = 0; partial && i < count; i++) {
		partial->iov[i] = iov[i];
		if (partial->iov[i].iov_len > left)
			partial->iov[i].iov_len = left;
		left -= partial->iov[i].iov_len;
	}
	return partial;
}

static void partial_limit(__u64 *length)
{
	if (*length > RW_MAX)
		*length = RW_MAX;
}

/*
 * Limit the entry to what the plain call would transfer at most, and save its
 * arguments. The copy of a message is for the parts after the first. The copy has no
 * control data, because the first part has sent that data.
 */
static struct partial *partial_begin(struct flexsc_entry *entry)
{
	const struct msghdr *message = partial_pointer(entry);
	struct partial *partial;
	__u64 args[3];

	memcpy(args, &entry->args[1], sizeof(args));
	switch (partial_kind(entry)) {
	case VECTOR:
		partial = partial_copy(partial_pointer(entry), entry->args[2]);
		if (partial)
			entry->args[1] = PTR(partial->iov);
		break;
	case MESSAGE:
		partial = partial_copy(message->msg_iov, message->msg_iovlen);
		if (!partial)
			break;
		partial->message = *message;
		partial->message.msg_iov = partial->iov;
		partial->message.msg_control = NULL;
		partial->message.msg_controllen = 0;
		entry->args[1] = PTR(&partial->message);
		break;
	case COUNT:
		partial = malloc(sizeof(*partial));
		if (partial)
			partial_limit(&entry->args[3]);
		break;
	default:
		partial = malloc(sizeof(*partial));
		if (partial)
			partial_limit(&entry->args[2]);
		break;
	}
	if (!partial)
		return NULL;
	memcpy(partial->args, args, sizeof(args));
	partial->total = 0;
	return partial;
}

static void partial_cut_iov(struct iovec **first, uint64_t *count, uint64_t n)
{
	struct iovec *iov = *first;

	for (; n && n >= iov->iov_len; iov++) {
		n -= iov->iov_len;
		--*count;
	}
	iov->iov_base = (char *)iov->iov_base + n;
	iov->iov_len -= n;
	*first = iov;
}

static void partial_cut_vector(struct flexsc_entry *entry, uint64_t n)
{
	struct iovec *iov = partial_pointer(entry);
	uint64_t count = entry->args[2];

	partial_cut_iov(&iov, &count, n);
	entry->args[1] = PTR(iov);
	entry->args[2] = count;
}

static void partial_cut_message(struct flexsc_entry *entry, uint64_t n)
{
	struct msghdr *message = partial_pointer(entry);
	uint64_t count = message->msg_iovlen;

	partial_cut_iov(&message->msg_iov, &count, n);
	message->msg_iovlen = count;
}

/* Remove the first n bytes from the entry's arguments. */
static void partial_cut(struct flexsc_entry *entry, uint64_t n)
{
	switch (partial_kind(entry)) {
	case WHOLE:
		break;
	case BUFFER:
		entry->args[1] += n;
		entry->args[2] -= n;
		break;
	case VECTOR:
		partial_cut_vector(entry, n);
		break;
	case MESSAGE:
		partial_cut_message(entry, n);
		break;
	case COUNT:
		entry->args[3] -= n;
		break;
	}
}

/* Atomic, because the owner may read "partial" while another thread changes it. */
static void partial_set(struct partial **partial, struct partial *to)
{
	__atomic_store_n(partial, to, __ATOMIC_RELAXED);
}

bool flexsc__partial_begun(struct partial *const *partial)
{
	return __atomic_load_n(partial, __ATOMIC_RELAXED);
}

/* False: no memory. The call then ends with a short count, which is always allowed. */
static bool partial_add(struct flexsc_entry *entry, struct partial **partial,
			int64_t res)
{
	if (!*partial)
		partial_set(partial, partial_begin(entry));
	if (!*partial)
		return false;
	(*partial)->total += res;
	return true;
}

bool flexsc__partial_rest(struct flexsc_entry *entry, struct partial **partial,
			  int64_t res)
{
	if (res <= 0 || !flexsc__partial(entry) ||
	    (uint64_t)res >= partial_most(entry) ||
	    !partial_add(entry, partial, res))
		return false;
	partial_cut(entry, (uint64_t)res);
	return true;
}

bool flexsc__partial_read(struct flexsc_entry *entry, struct partial **partial,
			  int64_t res)
{
	if (!partial_add(entry, partial, res))
		return false;
	entry->args[1] += (uint64_t)res;
	entry->args[2] -= (uint64_t)res;
	return true;
}

static void partial_restore(struct flexsc_entry *entry,
			    const struct partial *partial)
{
	/*
	 * Restore argument 3 only. Argument 1 of these calls is a descriptor, which
	 * other threads may read meanwhile.
	 */
	if (partial_kind(entry) == COUNT)
		entry->args[3] = partial->args[2];
	else
		memcpy(&entry->args[1], partial->args, sizeof(partial->args));
}

int64_t flexsc__partial_result(struct flexsc_entry *entry,
			       struct partial **partial, int64_t res)
{
	int64_t total;

	if (!*partial)
		return res;
	total = (*partial)->total + (res > 0 ? res : 0);
	partial_restore(entry, *partial);
	free(*partial);
	partial_set(partial, NULL);
	return total;
}
