/* SPDX-License-Identifier: MIT */
#include "fds.h"

#include <flexsc/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/ask.h"
#include "kinds.h"
#include "probe.h"

_Atomic uint32_t flexsc__fds_facts[FDS_MAX];
_Atomic uint32_t flexsc__fds_end;
atomic_bool flexsc__fds_any_signals;
_Atomic uint64_t flexsc__fds_setters;

_Atomic uint32_t flexsc__fds_asked_end;
_Atomic uint32_t *flexsc__fds_options;
static _Atomic uint32_t options_seen;

void flexsc__fds_init(void)
{
	void *page;

	/*
	 * The mapping is shared: a forked child counts the options that it sets in the
	 * same counter.
	 */
	if (flexsc__fds_options)
		return;
	page = mmap(NULL, sizeof(*flexsc__fds_options), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED)
		flexsc__fds_options = page;
}

/*
 * Returns a descriptor's facts. If none of the facts "which" is recorded, queries the
 * kernel first. If another thread records one during the query, that fact wins, because
 * it is newer than the kernel's answer.
 */
static uint32_t fds_find_out(uint32_t fd, uint32_t which,
			     uint32_t (*ask)(uint32_t))
{
	uint32_t facts = fds_known(fd), more;
	uint64_t setters;

	if (facts & which)
		return facts;
	setters = atomic_load(&flexsc__fds_setters);
	more = ask(fd);
	if (fd >= FDS_MAX)
		return more;
	fds_raise_end(&flexsc__fds_asked_end, fd);
	fds_raise_end(&flexsc__fds_end, fd);
	facts = fds_known(fd);
	do
		if (facts & which)
			return facts;
	while (!atomic_compare_exchange_weak_explicit(
		&flexsc__fds_facts[fd], &facts, facts | more,
		memory_order_relaxed, memory_order_relaxed));
	/* A call may have set flags after the query: drop the result. */
	if (which & FLAGS && atomic_load(&flexsc__fds_setters) != setters)
		fds_keep(fd, ~(uint32_t)FLAGS);
	return facts | more;
}

static uint32_t ask_lowat(uint32_t fd)
{
	uint32_t bytes = 1, size = sizeof(bytes);

	ask(SYS_getsockopt, fd, SOL_SOCKET, SO_RCVLOWAT, PTR(&bytes),
	    PTR(&size), 0);
	return bytes > 1 ? FD_LOWAT : FD_NO_LOWAT;
}

bool flexsc__fds_find_lowat(uint32_t fd)
{
	return fds_find_out(fd, LOWATS, ask_lowat) & FD_LOWAT;
}

static uint32_t ask_type(uint32_t fd)
{
	return flexsc__probe_option(fd, SO_TYPE) == SOCK_STREAM ? FD_BYTES :
								  FD_RECORDS;
}

bool flexsc__fds_find_bytes(uint32_t fd)
{
	return fds_find_out(fd, TYPES, ask_type) & FD_BYTES;
}

static bool loses(uint32_t fd)
{
	const uint32_t domain = flexsc__probe_option(fd, SO_DOMAIN);

	return domain == AF_UNIX &&
	       flexsc__kind_loses(domain, flexsc__probe_option(fd, SO_TYPE));
}

static uint32_t ask_limits(uint32_t fd)
{
	return flexsc__probe_time_limit(fd, POLL_READ) ||
	       flexsc__probe_time_limit(fd, POLL_WRITE) ||
	       flexsc__fds_find_lowat(fd) || loses(fd) ?
		       FD_TIMEOUT : FD_NO_LIMITS;
}

bool flexsc__fds_find_limits(uint32_t fd)
{
	return fds_find_out(fd, LIMITS, ask_limits) & FD_TIMEOUT;
}

static uint32_t ask_waits(uint32_t fd)
{
	long flags = ask(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);

	/*
	 * A bad descriptor has none of these facts: the plain call and io_uring both
	 * fail.
	 */
	if (flags < 0)
		return 0;
	if (flags & O_NONBLOCK)
		return FD_NEVER_WAITS;
	return flexsc__fds_find_limits(fd) ? FD_TIMEOUT : FD_WAITS;
}

static uint32_t ask_kind(uint32_t fd)
{
	const uint32_t facts = flexsc__kind(fd);

	if (facts & FD_SIGNALS)
		atomic_store(&flexsc__fds_any_signals, true);
	return facts;
}

bool flexsc__fds_find_waits(uint32_t fd)
{
	return !(fds_find_out(fd, FD_WAITS | FD_NEVER_WAITS | FD_TIMEOUT,
			      ask_waits) & (FD_NEVER_WAITS | FD_TIMEOUT));
}

bool flexsc__fds_find_seeks(uint32_t fd)
{
	return !(fds_find_out(fd, FD_SEEKS | FD_NEVER_SEEKS, ask_kind) &
		 FD_NEVER_SEEKS);
}

uint32_t flexsc__fds_kind(uint32_t fd)
{
	return fds_find_out(fd, KINDS, ask_kind) & KINDS;
}

/*
 * If a process has set an option since the last check, drop all facts that depend on
 * options, except of descriptors with FD_ALONE. The counter is read first, so a change
 * during the check is noticed next time.
 */
static void fds_look_at_options(void)
{
	const uint32_t end = atomic_load(&flexsc__fds_asked_end);
	uint32_t set;

	if (!flexsc__fds_options)
		return;
	set = atomic_load_explicit(flexsc__fds_options, memory_order_relaxed);
	if (set == atomic_load_explicit(&options_seen, memory_order_relaxed))
		return;
	for (uint32_t fd = 0; fd < end; fd++)
		if (fds_known(fd) & (LIMITS | LOWATS) && !(fds_known(fd) & FD_ALONE))
			fds_keep(fd, ~(uint32_t)(FLAGS | LIMITS | LOWATS));
	atomic_store(&options_seen, set);
}

/*
 * Drop the fact about O_NONBLOCK if it is out of date, because the flag was changed
 * through another descriptor of the file.
 */
static void fds_look_again(uint32_t fd)
{
	uint32_t facts = fds_known(fd);
	long flags;

	if (facts & FD_ALONE)
		return;
	fds_look_at_options();
	facts = fds_known(fd);
	if (!(facts & (FD_WAITS | FD_NEVER_WAITS)))
		return;
	flags = ask(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
	if (flags >= 0 && !!(flags & O_NONBLOCK) != !!(facts & FD_NEVER_WAITS))
		fds_keep(fd, ~(uint32_t)(FD_WAITS | FD_NEVER_WAITS));
}

bool flexsc__fds_find_nonblock(uint32_t fd)
{
	fds_look_again(fd);
	return fds_find_out(fd, FD_WAITS | FD_NEVER_WAITS | FD_TIMEOUT,
			    ask_waits) & FD_NEVER_WAITS;
}

uint64_t flexsc__fds_next(uint64_t first, uint64_t last)
{
	const uint64_t end = atomic_load_explicit(&flexsc__fds_end,
						  memory_order_relaxed);

	for (uint64_t fd = first; fd < end && fd <= last; fd++)
		if (fds_known((uint32_t)fd))
			return fd;
	return last + 1;
}

void flexsc_fd_forget(int fd)
{
	fds_keep((uint32_t)fd, FD_OWN | FD_COPY | FD_MARKED);
}

int flexsc_fd_hint(int fd, unsigned int flags)
{
	const unsigned int kinds = FLEXSC_FD_REGULAR | FLEXSC_FD_STREAM;
	const unsigned int waits = FLEXSC_FD_BLOCKING | FLEXSC_FD_NONBLOCK;
	uint32_t facts = 0;

	if (flags & ~(kinds | waits) || (flags & kinds) == kinds ||
	    (flags & waits) == waits || fds_known((uint32_t)fd) & FD_OWN)
		return -EINVAL;
	if (flags & FLEXSC_FD_REGULAR)
		facts |= FD_PLACED | FD_SEEKS;
	if (flags & FLEXSC_FD_STREAM)
		facts |= STREAMS | FD_NEVER_SEEKS;
	if (flags & FLEXSC_FD_BLOCKING)
		facts |= FD_WAITS | FD_NO_LOWAT;
	if (flags & FLEXSC_FD_NONBLOCK)
		facts |= FD_NEVER_WAITS;
	flexsc_fd_forget(fd);
	if ((uint32_t)fd < FDS_MAX)
		fds_raise_end(&flexsc__fds_asked_end, (uint32_t)fd);
	fds_learn((uint32_t)fd, facts);
	return 0;
}

void flexsc__fds_poll(uint32_t fd)
{
	if (!fds_is_polled(fd))
		fds_learn(fd, FD_POLLED);
}

/* G4 in guard.h: the accesses are sequentially consistent. */
void flexsc__fds_mark(uint32_t fd)
{
	if (fd < FDS_MAX && !(atomic_load(&flexsc__fds_facts[fd]) & FD_MARKED)) {
		fds_raise_end(&flexsc__fds_end, fd);
		atomic_fetch_or(&flexsc__fds_facts[fd], FD_MARKED);
	}
}

void flexsc__fds_mark_all(const struct flexsc_entry *entry)
{
	unsigned int fds = flexsc__call_info(entry->nr)->fds;

	for (; fds; fds &= fds - 1)
		flexsc__fds_mark((uint32_t)entry->args[__builtin_ctz(fds)]);
}

void flexsc__fds_unmark(uint32_t fd)
{
	fds_keep(fd, ~(uint32_t)FD_MARKED);
}

bool flexsc__fds_exchange(uint32_t fd, uint32_t from, uint32_t to)
{
	uint32_t facts = fds_known(fd);

	while (facts & from)
		if (atomic_compare_exchange_weak_explicit(
			    &flexsc__fds_facts[fd], &facts,
			    (facts & ~from) | to, memory_order_relaxed,
			    memory_order_relaxed))
			return true;
	return false;
}

static void fds_drop(uint32_t fd, uint32_t facts)
{
	if (fds_known(fd) & facts)
		fds_keep(fd, ~facts);
}

void flexsc__fds_use_position(const struct flexsc_entry *entry)
{
	unsigned int fds = flexsc__call_info(entry->nr)->fds;

	for (; fds; fds &= fds - 1)
		fds_drop((uint32_t)entry->args[__builtin_ctz(fds)],
			 FD_OPENED | FD_READING);
}

void flexsc__fds_share(void)
{
	uint32_t end = atomic_load(&flexsc__fds_asked_end);

	for (uint32_t fd = 0; fd < end; fd++)
		if (fds_known(fd) & FD_ALONE)
			fds_keep(fd, ~(uint32_t)FD_ALONE);
}
