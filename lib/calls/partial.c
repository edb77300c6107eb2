/* SPDX-License-Identifier: MIT */
#include "partial.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "../base/syscall.h"

struct partial {
	int64_t total;		/* transferred so far */
	struct iovec iov[];	/* of a vector: a copy, to be cut down */
};

enum kind {
	WHOLE,		/* not done in parts */
	BUFFER,		/* args[1] is data, args[2] its length */
	VECTOR,		/* args[1] is an array of args[2] */
	COUNT,		/* args[3] is a number of bytes; places move along */
};

static enum kind kind_of(const struct flexsc_entry *entry)
{
	switch (entry->nr) {
	case SYS_write:
	case SYS_sendto:
		return BUFFER;
	case SYS_writev:
		return VECTOR;
	case SYS_pwritev2:
		/* At the current position it's a writev() with flags. */
		return entry->args[3] == (__u64)-1 ? VECTOR : WHOLE;
	case SYS_sendfile:
		return COUNT;
	default:
		return WHOLE;
	}
}

bool flexsc__partial(const struct flexsc_entry *entry)
{
	return kind_of(entry) != WHOLE;
}

static uint64_t length(const struct flexsc_entry *entry)
{
	const struct iovec *iov = (const void *)(uintptr_t)entry->args[1];
	uint64_t n = 0;

	switch (kind_of(entry)) {
	case WHOLE:
		break;
	case BUFFER:
		return entry->args[2];
	case VECTOR:
		for (uint64_t i = 0; i < entry->args[2]; i++)
			n += iov[i].iov_len;
		break;
	case COUNT:
		return entry->args[3];
	}
	return n;
}

static struct partial *begin(struct flexsc_entry *entry)
{
	bool vector = kind_of(entry) == VECTOR;
	size_t size = vector ? entry->args[2] * sizeof(struct iovec) : 0;
	struct partial *partial = malloc(sizeof(*partial) + size);

	if (!partial)
		return NULL;
	partial->total = 0;
	if (vector) {
		memcpy(partial->iov, (void *)(uintptr_t)entry->args[1], size);
		entry->args[1] = PTR(partial->iov);
	}
	return partial;
}

static void cut_vector(struct flexsc_entry *entry, uint64_t n)
{
	struct iovec *iov = (void *)(uintptr_t)entry->args[1];

	while (n && n >= iov->iov_len) {
		n -= iov->iov_len;
		iov++;
		entry->args[2]--;
	}
	iov->iov_base = (char *)iov->iov_base + n;
	iov->iov_len -= n;
	entry->args[1] = PTR(iov);
}

/* Cut n bytes off the front. */
static void cut(struct flexsc_entry *entry, uint64_t n)
{
	switch (kind_of(entry)) {
	case WHOLE:
		break;
	case BUFFER:
		entry->args[1] += n;
		entry->args[2] -= n;
		break;
	case VECTOR:
		cut_vector(entry, n);
		break;
	case COUNT:
		entry->args[3] -= n;
		break;
	}
}

/* The owner looks at it while others may change it. */
static void set(struct partial **partial, struct partial *to)
{
	__atomic_store_n(partial, to, __ATOMIC_RELAXED);
}

bool flexsc__partial_begun(struct partial *const *partial)
{
	return __atomic_load_n(partial, __ATOMIC_RELAXED);
}

bool flexsc__partial_rest(struct flexsc_entry *entry, struct partial **partial,
			  int64_t res)
{
	if (res <= 0 || (uint64_t)res >= length(entry))
		return false;
	if (!*partial)
		set(partial, begin(entry));
	/* Without memory the call is a short one, as it may always be. */
	if (!*partial)
		return false;
	(*partial)->total += res;
	cut(entry, (uint64_t)res);
	return true;
}

int64_t flexsc__partial_result(struct partial **partial, int64_t res)
{
	int64_t total;

	if (!*partial)
		return res;
	total = (*partial)->total + (res > 0 ? res : 0);
	free(*partial);
	set(partial, NULL);
	return total;
}
