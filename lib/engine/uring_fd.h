/* SPDX-License-Identifier: MIT */
/*
 * What the uring engine knows about descriptors.
 *
 * io_uring waits where a plain call on a descriptor with O_NONBLOCK returns
 * -EAGAIN, ignores SO_RCVTIMEO and SO_SNDTIMEO, and reads a pipe where pread()
 * returns -ESPIPE. Calls on such descriptors have to be plain ones. Asking the
 * kernel each time would cost the mode switch that is to be saved, so it is
 * asked once for each descriptor, and not at all for those that calls of this
 * loop made. A fact is dropped when a call of this loop closes the descriptor
 * or changes its flags; changes made behind its back go unnoticed until then.
 */
#ifndef FLEXSC_ENGINE_URING_FD_H
#define FLEXSC_ENGINE_URING_FD_H

#include <linux/flexsc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../table.h"

enum fd_fact {
	FD_WAITS = 1,	/* a call that would wait does: it has no O_NONBLOCK */
	FD_SEEKS = 2,	/* it has offsets */
	/* What was asked and found not to be so, as far as that is kept. */
	FD_NEVER_WAITS = 4,
	FD_NEVER_SEEKS = 8,
	FD_TIMEOUT = 16,	/* SO_RCVTIMEO or SO_SNDTIMEO was set */
	/* Of a call, never of a descriptor. */
	FD_CHANGES = 32,
	FD_CLOSES = 64,
};

struct fd_facts {
	uint8_t *facts;		/* by descriptor */
	size_t size;
	uint64_t asked;		/* system calls made to learn facts */
	/* By system call: what has to be so of argument 0 for io_uring. */
	uint8_t *needs;
};

int flexsc__fd_init(struct fd_facts *facts);

/*
 * An entry is about to be executed: does io_uring do what the plain call
 * would? Takes note of what the call does to descriptors.
 */
bool flexsc__fd_ask(struct fd_facts *facts,
			 const struct flexsc_entry *entry, uint8_t need);

static inline bool fd_check(struct fd_facts *facts,
			    const struct flexsc_entry *entry)
{
	uint8_t need = facts->needs[entry->nr];
	uint32_t fd = (uint32_t)entry->args[0];

	if (need == FD_CLOSES) {
		if (fd < facts->size)
			facts->facts[fd] = 0;
		return true;
	}
	if (!need || (fd < facts->size && (facts->facts[fd] & need) == need))
		return true;
	return flexsc__fd_ask(facts, entry, need);
}

/* An entry has returned: if that is a new descriptor, its flags are known. */
void flexsc__fd_made(struct fd_facts *facts, const struct flexsc_entry *entry,
		     int64_t ret);

void flexsc__fd_fini(struct fd_facts *facts);

#endif /* FLEXSC_ENGINE_URING_FD_H */
