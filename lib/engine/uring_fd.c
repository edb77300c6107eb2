/* SPDX-License-Identifier: MIT */
#include "uring_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "../nowait.h"
#include "../syscall.h"

#define FDS_MAX		(1U << 24)
#define CURRENT		((__u64)-1)	/* an offset: the file's position */

/* Where the facts about a descriptor are; NULL: nowhere, or not one. */
static uint8_t *facts_of(struct fd_facts *facts, uint64_t fd)
{
	size_t size = facts->size ? facts->size : 256;
	uint8_t *grown;

	fd = (uint32_t)fd;
	if (fd < facts->size)
		return &facts->facts[fd];
	if (fd >= FDS_MAX)
		return NULL;
	while (size <= fd)
		size *= 2;
	grown = realloc(facts->facts, size);
	if (!grown)
		return NULL;
	memset(grown + facts->size, 0, size - facts->size);
	facts->facts = grown;
	facts->size = size;
	return &grown[fd];
}

static void forget(struct fd_facts *facts, uint64_t fd, uint8_t keep)
{
	if ((uint32_t)fd < facts->size)
		facts->facts[(uint32_t)fd] &= keep;
}

static uint8_t ask_waits(struct fd_facts *facts, uint64_t fd)
{
	long flags = raw_syscall(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);

	facts->asked++;
	/* A bad one blocks nobody, and io_uring says so too. */
	if (flags < 0)
		return 0;
	if (flags & O_NONBLOCK)
		return FD_NEVER_WAITS;
	facts->asked += 2;
	if (flexsc__has_time_limit(fd, POLL_READ) ||
	    flexsc__has_time_limit(fd, POLL_WRITE))
		return FD_TIMEOUT;
	return FD_WAITS;
}

static uint8_t ask_seeks(struct fd_facts *facts, uint64_t fd)
{
	facts->asked++;
	if (raw_syscall(SYS_lseek, fd, 0, SEEK_CUR, 0, 0, 0) == -ESPIPE)
		return FD_NEVER_SEEKS;
	return FD_SEEKS;
}

/* Does this kind of call on this descriptor wait as io_uring would? */
static bool waits(struct fd_facts *facts, uint64_t fd)
{
	uint8_t none = 0, *fact = facts_of(facts, fd);

	if (!fact)
		fact = &none;
	if (*fact & FD_TIMEOUT)
		return false;
	if (!(*fact & (FD_WAITS | FD_NEVER_WAITS)))
		*fact |= ask_waits(facts, fd);
	return !(*fact & (FD_NEVER_WAITS | FD_TIMEOUT));
}

static bool seeks(struct fd_facts *facts, uint64_t fd)
{
	uint8_t none = 0, *fact = facts_of(facts, fd);

	if (!fact)
		fact = &none;
	if (!(*fact & (FD_SEEKS | FD_NEVER_SEEKS)))
		*fact |= ask_seeks(facts, fd);
	return !(*fact & FD_NEVER_SEEKS);
}

static bool sets_timeout(const struct flexsc_entry *entry)
{
	return entry->args[1] == SOL_SOCKET &&
	       (entry->args[2] == SO_RCVTIMEO || entry->args[2] == SO_SNDTIMEO);
}

/* Calls that change what is known. */
static void note(struct fd_facts *facts, const struct flexsc_entry *entry)
{
	uint8_t *fact;

	switch (entry->nr) {
	case SYS_fcntl:
		if (entry->args[1] == F_SETFL)
			forget(facts, entry->args[0], FD_TIMEOUT);
		break;
	case SYS_ioctl:
		if (entry->args[1] == FIONBIO)
			forget(facts, entry->args[0], FD_TIMEOUT);
		break;
#ifdef SYS_dup2
	case SYS_dup2:
#endif
	case SYS_dup3:
		forget(facts, entry->args[1], 0);
		break;
	case SYS_close_range:
		if (facts->size)
			memset(facts->facts, 0, facts->size);
		break;
	case SYS_setsockopt:
		fact = facts_of(facts, entry->args[0]);
		if (fact && sets_timeout(entry))
			*fact = (*fact & ~FD_WAITS) | FD_TIMEOUT;
		break;
	default:
		break;
	}
}

/* What has to be so before a call goes to io_uring. */
static uint8_t need_of(unsigned int nr, const struct table_row *row)
{
	switch (nr) {
	case SYS_connect:
		return FD_WAITS;
	case SYS_pread64:
	case SYS_preadv:
	case SYS_pwrite64:
	case SYS_pwritev:
		return FD_SEEKS;
	case SYS_preadv2:
	case SYS_pwritev2:
		return FD_WAITS | FD_SEEKS;
	case SYS_close:
		return FD_CLOSES;
	case SYS_fcntl:
	case SYS_ioctl:
#ifdef SYS_dup2
	case SYS_dup2:
#endif
	case SYS_dup3:
	case SYS_close_range:
	case SYS_setsockopt:
		return FD_CHANGES;
	default:
		return row->poll != POLL_NONE ? FD_WAITS : 0;
	}
}

int flexsc__fd_init(struct fd_facts *facts)
{
	facts->needs = calloc(flexsc__table_size, 1);
	if (!facts->needs)
		return -ENOMEM;
	for (unsigned int nr = 0; nr < flexsc__table_size; nr++)
		facts->needs[nr] = need_of(nr, &flexsc__table[nr]);
	return 0;
}

bool flexsc__fd_ask(struct fd_facts *facts, const struct flexsc_entry *entry,
		    uint8_t need)
{
	switch (need) {
	case FD_WAITS:
		return waits(facts, entry->args[0]);
	case FD_SEEKS:
		return seeks(facts, entry->args[0]);
	case FD_WAITS | FD_SEEKS:
		return waits(facts, entry->args[0]) &&
		       (entry->args[3] == CURRENT ||
			seeks(facts, entry->args[0]));
	default:
		note(facts, entry);
		return true;
	}
}

/* The flags that a call which makes a descriptor gives it; -1: it makes none. */
static int64_t flags_given(const struct flexsc_entry *entry)
{
	switch (entry->nr) {
	case SYS_openat:
		return (int)entry->args[2];
	case SYS_openat2:
		/* The structure is the caller's, and was valid: it worked. */
		return (int)((const struct open_how *)(uintptr_t)
				     entry->args[2])->flags;
#ifdef SYS_open
	case SYS_open:
		return (int)entry->args[1];
#endif
	case SYS_accept4:
		return (int)entry->args[3];
	case SYS_accept:
		return 0;
	case SYS_socket:
		return (int)entry->args[1];
	default:
		return -1;
	}
}

void flexsc__fd_made(struct fd_facts *facts, const struct flexsc_entry *entry,
		     int64_t ret)
{
	int64_t flags = ret < 0 ? -1 : flags_given(entry);
	uint8_t *fact;

	if (flags < 0)
		return;
	fact = facts_of(facts, (uint64_t)ret);
	/* No time limit: io_uring's accept was on a listener without one. */
	if (fact)
		*fact = flags & O_NONBLOCK ? FD_NEVER_WAITS : FD_WAITS;
}

void flexsc__fd_fini(struct fd_facts *facts)
{
	free(facts->needs);
	free(facts->facts);
}
