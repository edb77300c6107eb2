/* SPDX-License-Identifier: MIT */
/*
 * Facts of the process's descriptors. They decide whether io_uring may make a call.
 *
 * io_uring differs from a plain call on some descriptors:
 *
 *	O_NONBLOCK	io_uring waits; the plain call returns -EAGAIN
 *	SO_RCVTIMEO	io_uring ignores it
 *	SO_SNDTIMEO	the same
 *	SO_RCVLOWAT	the same
 *	a local socket	io_uring sends an empty datagram if the queue was full at first
 *	a pipe		io_uring reads it where pread() returns -ESPIPE
 *	a position	io_uring moves it without the lock that keeps two plain calls
 *			from using one position, so written data would be lost
 *	a terminal	the result depends on the calling thread, and on a time limit
 *			that poll(2) doesn't consider
 *	other files	many don't wait for what poll(2) reports (kinds.h)
 *
 * Calls on such descriptors are made plainly. A query for each call would cost the mode
 * switch that io_uring saves. So the kernel is queried once for each descriptor, and
 * not at all for descriptors that calls of a loop made.
 *
 * A fact is dropped when a call closes the descriptor or changes its flags. The call
 * has to be posted to a loop of the process, or reported by flexsc__fds_note(). Flags
 * and options belong to the file. So a change drops those facts of all descriptors that
 * may have the same file, which are those without FD_ALONE. Other changes go unnoticed:
 * plain calls, and calls on another descriptor of the file, perhaps in another process.
 * So flexsc__fds_find_nonblock() queries the kernel each time, but for descriptors with
 * FD_ALONE.
 *
 * Any thread. Facts are single words without order among them: a thread that
 * changes a descriptor that others are using has a race already.
 */
#ifndef FLEXSC_FDS_H
#define FLEXSC_FDS_H

#include <linux/flexsc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/calls/call_info.h"

/* Descriptors from this number on have no facts. */
#define FDS_MAX		(1U << 20)

/* Facts of a descriptor, one word for each descriptor. */
enum fd_fact {
	FD_WAITS = 1 << 0,	/* a call that would wait does: no O_NONBLOCK */
	FD_SEEKS = 1 << 1,	/* it has offsets */
	FD_POLLS_IN = 1 << 2,	/* its reads wait for POLLIN: files/kinds.h */
	/* The opposites of the above, found by a query. */
	FD_NEVER_WAITS = 1 << 3,
	FD_NEVER_SEEKS = 1 << 4,
	FD_POLLS_OUT = 1 << 5,	/* its writes wait for POLLOUT */
	/* No descriptor has bits 6 and 7: see enum plan_effect. */
	FD_ALONE = 1 << 8,	/* no other descriptor means the same file */
	/*
	 * A signalfd, or an epoll set with one: the calling thread matters.
	 */
	FD_SIGNALS = 1 << 9,
	/* A call may wait for what closing would take away: files/closing.h. */
	FD_MARKED = 1 << 10,
	FD_OWN = 1 << 11,	/* it is the library's own */
	FD_PLACED = 1 << 12,	/* its calls share a file position */
	FD_TERMINAL = 1 << 13,
	FD_LOWAT = 1 << 14,	/* SO_RCVLOWAT was set: one byte isn't enough */
	FD_NO_LOWAT = 1 << 15,	/* SO_RCVLOWAT wasn't set */
	FD_POLLED = 1 << 16,	/* it hasn't been closed since it was polled */
	FD_COPY = 1 << 17,	/* it holds a file that calls wait for */
	FD_LOCAL = 1 << 18,	/* no server has its attributes */
	/* SO_{RCVTIMEO,SNDTIMEO,RCVLOWAT} was set; or it loses datagrams. */
	FD_TIMEOUT = 1 << 19,
	FD_RETURNS_IN = 1 << 20,	/* its reads never wait */
	FD_RETURNS_OUT = 1 << 21,	/* its writes never wait */
	FD_UNKNOWN = 1 << 22,	/* of another kind than kinds.h has */
	FD_BYTES = 1 << 23,	/* a socket that is a stream of bytes */
	FD_RECORDS = 1 << 24,	/* another socket, or none */
	/*
	 * A posted open made it, for reading. The kind of file is unknown, and no
	 * call uses its position: see engine/uring_eager.h.
	 */
	FD_OPENED = 1 << 25,
	FD_READING = 1 << 26,	/* ... but for one eager read */
	/*
	 * Which thread executes a call for io_uring when poll(2) has reported the file
	 * ready: the one that posted it, or a worker if the file has no way to make the
	 * call without waiting. What a worker has read can't be put back, although the
	 * thread that posted the call must enter the kernel to get the result.
	 */
	FD_WORKER = 1 << 27,
	FD_OLD_WORKER = 1 << 28,	/* a worker before Linux 6.12 */
	FD_NO_LIMITS = 1 << 29,	/* nothing that FD_TIMEOUT means */
	FD_PIPE = 1 << 30,	/* found by a query: it is a pipe */
};

/* Facts that belong together. */
#define STREAMS		(FD_POLLS_IN | FD_POLLS_OUT)
#define KINDS \
	(STREAMS | FD_PLACED | FD_TERMINAL | FD_RETURNS_IN | FD_RETURNS_OUT | \
	 FD_UNKNOWN | FD_WORKER | FD_OLD_WORKER)
#define LOWATS		(FD_LOWAT | FD_NO_LOWAT)
#define TYPES		(FD_BYTES | FD_RECORDS)
#define LIMITS		(FD_TIMEOUT | FD_NO_LIMITS)
#define FLAGS		(FD_WAITS | FD_NEVER_WAITS)

extern _Atomic uint32_t flexsc__fds_facts[FDS_MAX];

static inline uint32_t fds_known(uint32_t fd)
{
	if (fd >= FDS_MAX)
		return 0;
	return atomic_load_explicit(&flexsc__fds_facts[fd],
				    memory_order_relaxed);
}

/* Before fd gets a fact: raise the end of the descriptors that have it. */
static inline void fds_raise_end(_Atomic uint32_t *end, uint32_t fd)
{
	uint32_t old = atomic_load_explicit(end, memory_order_relaxed);

	while (old <= fd && !atomic_compare_exchange_weak(end, &old, fd + 1))
		;
}

/*
 * No descriptor from this number on has a fact. Each function that notes a fact raises
 * the number first.
 */
extern _Atomic uint32_t flexsc__fds_end;
/* ... is FD_ALONE, or has facts of its flags and options. */
extern _Atomic uint32_t flexsc__fds_asked_end;

static inline void fds_learn(uint32_t fd, uint32_t fact)
{
	if (fd >= FDS_MAX)
		return;
	fds_raise_end(&flexsc__fds_end, fd);
	atomic_fetch_or_explicit(&flexsc__fds_facts[fd], fact,
				 memory_order_relaxed);
}

static inline void fds_keep(uint32_t fd, uint32_t keep)
{
	if (fd < FDS_MAX)
		atomic_fetch_and_explicit(&flexsc__fds_facts[fd], keep,
					  memory_order_relaxed);
}

static inline void fds_forget(uint32_t fd)
{
	if (fd < FDS_MAX)
		atomic_store_explicit(&flexsc__fds_facts[fd], 0,
				      memory_order_relaxed);
}

/*
 * The first descriptor of a range that has a fact; last + 1 if none has. Looks at none
 * above the highest that ever had one: a range may end at the highest number.
 */
uint64_t flexsc__fds_next(uint64_t first, uint64_t last);

/*
 * A descriptor is about to be closed. False: calls may wait for it, and need a copy
 * first (files/closing.h).
 */
static inline bool fds_forget_closed(uint32_t fd)
{
	/* A mark that another thread sets meanwhile stays. */
	return !fds_known(fd) ||
	       !(atomic_fetch_and_explicit(&flexsc__fds_facts[fd], FD_MARKED,
					   memory_order_relaxed) & FD_MARKED);
}

/* A call of the entry's descriptors begins that may use their positions. */
void flexsc__fds_use_position(const struct flexsc_entry *entry);

static inline bool fds_is_opened(uint32_t fd)
{
	return (fds_known(fd) & (FD_OPENED | FD_ALONE | FD_WAITS)) ==
	       (FD_OPENED | FD_ALONE | FD_WAITS);
}

/*
 * Exchange the fact "from" for others. False: the descriptor doesn't have it, so
 * another thread was first, or the descriptor was closed.
 */
bool flexsc__fds_exchange(uint32_t fd, uint32_t from, uint32_t to);

/* Does a call on the descriptor wait as io_uring would? */
bool flexsc__fds_find_waits(uint32_t fd);

/* Has the descriptor offsets? */
bool flexsc__fds_find_seeks(uint32_t fd);

/* Does a socket have what FD_TIMEOUT means? */
bool flexsc__fds_find_limits(uint32_t fd);

/* Is the descriptor a socket that is a stream of bytes? */
bool flexsc__fds_find_bytes(uint32_t fd);

/*
 * The facts that follow from the kind of the descriptor's file; 0 if there is no
 * such descriptor.
 */
uint32_t flexsc__fds_kind(uint32_t fd);

/* Has there been a descriptor with FD_SIGNALS? */
extern atomic_bool flexsc__fds_any_signals;

/*
 * Calls that set flags (effects.h): how many have begun, in the upper half, and how many
 * are in progress. The kernel's order of calls that overlap is unknown, so none of them
 * leaves a fact; nor does a query meanwhile.
 */
extern _Atomic uint64_t flexsc__fds_setters;

static inline bool fds_has_signals(uint32_t fd)
{
	return fds_known(fd) & FD_SIGNALS;
}

/* The same; queries the kernel if no fact is known, as of a received descriptor. */
static inline bool fds_find_signals(uint32_t fd)
{
	return flexsc__fds_kind(fd) && fds_has_signals(fd);
}

/* A process is about to be made that shares this process's descriptors. */
void flexsc__fds_share(void);

/*
 * A descriptor is polled; fds_is_polled() says later whether it was closed
 * since.
 */
void flexsc__fds_poll(uint32_t fd);

static inline bool fds_is_polled(uint32_t fd)
{
	return fds_known(fd) & FD_POLLED;
}

/* A call may wait for the descriptor from here on; for all that the entry names. */
void flexsc__fds_mark(uint32_t fd);
void flexsc__fds_mark_all(const struct flexsc_entry *entry);
/* The descriptor is about to be closed, and calls that wait for it have got a copy. */
void flexsc__fds_unmark(uint32_t fd);

static inline bool fds_is_marked(uint32_t fd)
{
	return fds_known(fd) & FD_MARKED;
}

/* Is the descriptor a socket on which receives wait for more than a byte? */
bool flexsc__fds_find_lowat(uint32_t fd);

/* Does the descriptor have O_NONBLOCK? */
bool flexsc__fds_find_nonblock(uint32_t fd);

#endif /* FLEXSC_FDS_H */
