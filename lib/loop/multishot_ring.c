/* SPDX-License-Identifier: MIT */
/*
 * Multishot calls that are requests of the engine: one entry with many results. The
 * kernel holds the file as long as the request is pending. Owner only.
 */
#include <sys/syscall.h>

#include "lib/files/effects.h"
#include "lib/files/fds.h"
#include "buffers.h"
#include "loop.h"
#include "multishot.h"

static int ring_try(struct multishot *multishot)
{
	uint64_t args[FLEXSC_ARGS_MAX] = { [0] = (uint64_t)multishot->fd };
	unsigned int nr = NR_ACCEPT;

	multishot->waits = false;
	if (multishot->buffers) {
		nr = NR_RECV;
		args[RECV_GROUP] = multishot->buffers->group;
	} else {
		args[3] = (uint64_t)multishot->flags;
	}
	return multishot_post_own(multishot, nr, args);
}

static int ring_next(struct multishot *multishot, int64_t ret)
{
	return ring_try(multishot);
}

/* A multishot request waits in the kernel, so -EAGAIN is a final result. */
static int ring_again(struct multishot *multishot)
{
	return -EAGAIN;
}

/* Record the connection's facts here, because the kernel accepted it without a call. */
static void ring_accepted(const struct multishot *multishot, int64_t ret)
{
	const struct flexsc_entry entry = {
		.nr = SYS_accept4,
		.args = { [0] = (uint64_t)multishot->fd,
			  [3] = (uint64_t)multishot->flags },
	};

	flexsc__fds_note_made(&entry, ret);
}

/* Nothing to release: the request has ended. */
static void ring_end(struct multishot *multishot)
{
}

const struct multishot_how flexsc__multishot_ring = {
	.begin = ring_try,
	.try = ring_try,
	.next = ring_next,
	.again = ring_again,
	.accepted = ring_accepted,
	.end = ring_end,
};
