/* SPDX-License-Identifier: MIT */
#include "effects.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/socket.h>

#include "fds.h"
#include "kinds.h"

/* musl lacks these. */
#ifndef SO_RCVTIMEO_NEW
#define SO_RCVTIMEO_NEW	66
#define SO_SNDTIMEO_NEW	67
#endif

/* Facts that stay valid when a descriptor's flags change. */
#define FLAGS_KEEP \
	(LIMITS | FD_ALONE | FD_SIGNALS | FD_MARKED | FD_POLLED | KINDS | \
	 LOWATS | FD_SEEKS | FD_LOCAL | TYPES)

/*
 * Drop these facts of other descriptors that may refer to fd's file: the file's flags
 * or options have changed.
 */
static void fds_change_file(uint32_t fd, uint32_t facts)
{
	uint32_t end = atomic_load(&flexsc__fds_asked_end);

	if (fds_known(fd) & FD_ALONE)
		return;
	for (uint32_t i = 0; i < end; i++)
		if (i != fd && fds_known(i) & facts &&
		    !(fds_known(i) & FD_ALONE))
			fds_keep(i, ~facts);
}

static void fds_note_flags(uint32_t fd)
{
	fds_keep(fd, FLAGS_KEEP);
	fds_change_file(fd, FLAGS);
}

/* One begun call that sets flags, in the upper half of flexsc__fds_setters. */
#define BEGUN		(1ULL << 32)

uint64_t flexsc__fds_set_begin(void)
{
	return atomic_fetch_add(&flexsc__fds_setters, BEGUN + 1) + BEGUN + 1;
}

void flexsc__fds_set_end(uint32_t fd, uint64_t flags, uint64_t begun, int64_t ret)
{
	if (ret || (uint32_t)begun != 1)
		;	/* record no fact: the call failed or overlaps another setter */
	else if (flags & O_NONBLOCK)
		fds_learn(fd, FD_NEVER_WAITS);
	else if (fds_known(fd) & FD_NO_LIMITS)
		fds_learn(fd, FD_WAITS);
	/*
	 * Subtract this call after recording the fact. If another call that sets flags
	 * has begun since this one, the counter differs from "begun": drop the fact
	 * here. A call that begins after the subtraction drops the fact itself.
	 */
	if (atomic_fetch_sub(&flexsc__fds_setters, 1) != begun)
		fds_keep(fd, ~(uint32_t)FLAGS);
}

static void fds_note_option(uint32_t fd, uint64_t option)
{
	switch (option) {
	case SO_RCVLOWAT:
		fds_learn(fd, FD_LOWAT);
		fds_keep(fd, ~(uint32_t)FD_NO_LOWAT);
		/* fall through */
	case SO_RCVTIMEO:
	case SO_RCVTIMEO_NEW:
	case SO_SNDTIMEO:
	case SO_SNDTIMEO_NEW:
		fds_learn(fd, FD_TIMEOUT);
		fds_keep(fd, ~(uint32_t)(FD_WAITS | FD_NO_LIMITS));
		fds_change_file(fd, FLAGS | LIMITS | LOWATS);
		if (flexsc__fds_options && !(fds_known(fd) & FD_ALONE))
			atomic_fetch_add(flexsc__fds_options, 1);
		break;
	default:
		break;
	}
}

static void fds_forget_range(uint32_t first, uint32_t last)
{
	for (uint64_t fd = flexsc__fds_next(first, last); fd <= last;
	     fd = flexsc__fds_next(fd + 1, last))
		fds_keep((uint32_t)fd, FD_OWN | FD_COPY | FD_MARKED);
}

static void note_closes(const struct flexsc_entry *entry, unsigned int closes)
{
	const uint32_t first = (uint32_t)entry->args[0];
	const uint32_t second = (uint32_t)entry->args[1];

	switch ((enum call_closes)closes) {
	case CLOSES_ONE:
		fds_keep(first, FD_MARKED);
		break;
	case CLOSES_OTHER:
		if (first != second)
			fds_keep(second, FD_MARKED);
		break;
	case CLOSES_RANGE:
		if (!(entry->args[2] & CLOSE_RANGE_CLOEXEC))
			fds_forget_range(first, second);
		break;
	case CLOSES_SHUT:
	case CLOSES_NOTHING:
		break;
	}
}

void flexsc__fds_note(const struct flexsc_entry *entry)
{
	const struct call_info *row = call_info_of(entry->nr, entry->args);
	const uint32_t fd = (uint32_t)entry->args[0];

	if (row->changes == CHANGES_FLAGS)
		fds_note_flags(fd);
	else if (row->changes == CHANGES_OPTION)
		fds_note_option(fd, entry->args[2]);
	if (row->makes == MAKES_DUP)
		fds_keep((uint32_t)entry->args[row->made_arg], ~(uint32_t)FD_ALONE);
	note_closes(entry, row->closes);
}

/*
 * Returns the flags that an entry gives to the descriptor it makes; -1: it makes no
 * descriptor.
 */
static int64_t flags_given(const struct call_info *row,
			   const struct flexsc_entry *entry)
{
	const __u64 flags = entry->args[row->made_flags_arg];

	switch ((enum call_made_flags)row->made_flags) {
	case MADE_FLAGS_ARG:
		return (int)flags;
	case MADE_FLAGS_AT_ARG:
		/*
		 * The call has succeeded, so the kernel has read the structure at this
		 * address.
		 */
		return (int)*(const uint64_t *)(uintptr_t)flags;
	case MADE_FLAGS_NONE:
		break;
	}
	return row->makes == MAKES_ACCEPTED ? 0 : -1;
}

/*
 * Returns the facts that show when calls on the new descriptor wait, and whether
 * io_uring waits in the same cases.
 */
static uint32_t waits_given(const struct call_info *row,
			    const struct flexsc_entry *entry, bool nonblock)
{
	const uint64_t flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
	uint32_t facts = nonblock ? FD_NEVER_WAITS : 0;

	if (row->makes == MAKES_SOCKET &&
	    flexsc__kind_loses(entry->args[0], entry->args[1] & ~flags))
		return facts | FD_TIMEOUT;
	return facts | FD_NO_LIMITS | (nonblock ? 0 : FD_WAITS);
}

static void fds_set_made(uint32_t fd, uint32_t facts)
{
	if (fd >= FDS_MAX)
		return;
	fds_raise_end(&flexsc__fds_asked_end, fd);
	fds_raise_end(&flexsc__fds_end, fd);
	atomic_store_explicit(&flexsc__fds_facts[fd],
			      FD_ALONE | FD_NO_LOWAT | facts,
			      memory_order_relaxed);
}

void flexsc__fds_note_signals(const struct flexsc_entry *entry, int64_t ret)
{
	const struct call_info *row = call_info_of(entry->nr, entry->args);
	uint32_t first = (uint32_t)entry->args[0];

	if (ret < 0)
		return;
	if (row->makes == MAKES_SIGNALS) {
		fds_learn((uint32_t)ret, FD_SIGNALS);
		atomic_store(&flexsc__fds_any_signals, true);
	} else if (row->makes == MAKES_DUP &&
		   fds_has_signals((uint32_t)entry->args[row->made_arg])) {
		fds_learn((uint32_t)ret, FD_SIGNALS);
	} else if (row->joins && fds_find_signals((uint32_t)entry->args[2])) {
		fds_learn(first, FD_SIGNALS);
	} else if (row->closes == CLOSES_ONE) {
		fds_keep(first, ~(uint32_t)FD_SIGNALS);
	}
}

void flexsc__fds_note_regular(uint32_t fd, const struct statx *file)
{
	if (flexsc__kind_on_disk(file))
		fds_learn(fd, FD_PLACED | FD_SEEKS);
}

void flexsc__fds_note_accepted(uint32_t listener, uint32_t fd)
{
	fds_keep(fd, ~(uint32_t)LOWATS);
	fds_learn(fd, fds_known(listener) & LOWATS);
}

/*
 * Drop FD_ALONE of the descriptors in the message, because the receiver's descriptors
 * refer to the same files. The records are valid: the kernel has accepted the message.
 */
static void note_passed(const struct msghdr *message)
{
	struct cmsghdr *c;

	if (!message->msg_controllen)
		return;
	for (c = CMSG_FIRSTHDR(message); c;
	     c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)message, c)) {
		const int *fds = (const int *)CMSG_DATA(c);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(*fds)) <= c->cmsg_len;
		     i++)
			fds_keep((uint32_t)fds[i], ~(uint32_t)FD_ALONE);
	}
}

void flexsc__fds_note_sent(unsigned int passes, uint64_t sent, int64_t ret)
{
	const void *first = (const void *)(uintptr_t)sent;
	const struct mmsghdr *messages = first;

	if (passes == PASSES_ONE && ret >= 0)
		note_passed(first);
	for (int64_t i = 0; passes == PASSES_MANY && i < ret; i++)
		note_passed(&messages[i].msg_hdr);
}

void flexsc__fds_note_made(const struct flexsc_entry *entry, int64_t ret)
{
	const struct call_info *row = flexsc__call_info(entry->nr);
	int64_t flags = ret < 0 ? -1 : flags_given(row, entry);
	uint32_t facts = row->makes == MAKES_FILE ? 0 : STREAMS;
	const int *two;

	flexsc__fds_note_signals(entry, ret);
	if (flags < 0)
		return;
	/* An accepted connection inherits the time limits of its listening socket. */
	if (row->makes == MAKES_ACCEPTED &&
	    flexsc__fds_find_limits((uint32_t)entry->args[0])) {
		fds_forget((uint32_t)ret);
		return;
	}
	facts |= waits_given(row, entry, flags & O_NONBLOCK);
	if (row->made_at == MADE_IS_RESULT) {
		fds_set_made((uint32_t)ret, facts);
		return;
	}
	two = (const int *)(uintptr_t)entry->args[row->made_arg];
	for (unsigned int i = 0; i < 2; i++)
		fds_set_made((uint32_t)two[i], facts);
}

void flexsc__fds_note_opened(const struct flexsc_entry *entry, int64_t ret)
{
	const int64_t others = O_ACCMODE | O_NONBLOCK | O_DIRECT | O_PATH;
	const struct call_info *row = flexsc__call_info(entry->nr);

	if (ret >= 0 && row->makes == MAKES_FILE &&
	    (flags_given(row, entry) & others) == O_RDONLY)
		fds_learn((uint32_t)ret, FD_OPENED);
}
