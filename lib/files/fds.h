/* SPDX-License-Identifier: MIT */
/*
 * Facts about the process's descriptors. They decide whether io_uring may make a call.
 *
 * io_uring differs from a plain call on some descriptors:
 *
 *	O_NONBLOCK	io_uring waits; the plain call returns -EAGAIN
 *	SO_RCVTIMEO	io_uring ignores it
 *	SO_SNDTIMEO	the same
 *	SO_RCVLOWAT	the same
 *	a local socket	io_uring sends an empty datagram if the queue was full at first
 *	a pipe		io_uring reads it, but pread() returns -ESPIPE
 *	a position	io_uring moves it without the lock that keeps two plain calls
 *			from using one position, so written data would be lost
 *	a terminal	the result depends on the calling thread, and on a time limit
 *			that poll(2) doesn't consider
 *	other files	many don't wait for what poll(2) reports (kinds.h)
 *
 * Calls on such descriptors are made plainly. A query for each call would cost the mode
 * switch that io_uring saves. So the kernel is queried once for each descriptor, and
 * not at all for descriptors that a loop's calls made.
 *
 * A fact is dropped when a call closes the descriptor or changes its flags. The library
 * notices calls that are posted to a loop of the process or reported by
 * flexsc__fds_note(). Flags and options belong to the file, so a change drops these
 * facts for all descriptors without FD_ALONE, which may refer to the same file. The
 * library doesn't notice plain calls, nor calls on another descriptor of the file,
 * perhaps in another process. Therefore flexsc__fds_find_nonblock() queries the kernel
 * each time, except for descriptors with FD_ALONE. It also notices options that a
 * forked child has set, but not those that other processes have set.
 *
 * Any thread. The facts of one descriptor are a single word, and words are not ordered
 * with one another: a program that changes a descriptor while other threads use it
 * already has a race.
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
	FD_WAITS = 1 << 0,	/* O_NONBLOCK isn't set */
	FD_SEEKS = 1 << 1,	/* it has file offsets */
	FD_POLLS_IN = 1 << 2,	/* its reads wait until poll(2) reports POLLIN:
				 * files/kinds.h */
	/* The opposites of FD_WAITS and FD_SEEKS. */
	FD_NEVER_WAITS = 1 << 3,
	FD_NEVER_SEEKS = 1 << 4,
	FD_POLLS_OUT = 1 << 5,	/* its writes wait until poll(2) reports POLLOUT */
	/* Bits 6 and 7 never stand for facts, because enum plan_effect uses them. */
	FD_ALONE = 1 << 8,	/* no other descriptor refers to the file */
	/*
	 * A signalfd, or an epoll set with one: a read's or wait's result depends
	 * on the calling thread.
	 */
	FD_SIGNALS = 1 << 9,
	/*
	 * A call may be waiting for the descriptor: a thread that closes it has to
	 * call files/closing.h.
	 */
	FD_MARKED = 1 << 10,
	FD_OWN = 1 << 11,	/* one of the library's own descriptors */
	FD_PLACED = 1 << 12,	/* calls on it use and move a file position */
	FD_TERMINAL = 1 << 13,
	FD_LOWAT = 1 << 14,	/* SO_RCVLOWAT was set: a receive may wait for
				 * more than one byte */
	FD_NO_LOWAT = 1 << 15,	/* SO_RCVLOWAT wasn't set */
	FD_POLLED = 1 << 16,	/* polled by a call, and not closed since */
	FD_COPY = 1 << 17,	/* the library's duplicate, held for waiting calls */
	FD_LOCAL = 1 << 18,	/* its attributes are in this kernel, not on a file
				 * server */
	/*
	 * io_uring differs: SO_RCVTIMEO, SO_SNDTIMEO or SO_RCVLOWAT was set, or
	 * io_uring may lose datagrams (flexsc__kind_loses()).
	 */
	FD_TIMEOUT = 1 << 19,
	FD_RETURNS_IN = 1 << 20,	/* its reads never wait */
	FD_RETURNS_OUT = 1 << 21,	/* its writes never wait */
	FD_UNKNOWN = 1 << 22,	/* kinds.h doesn't list its kind */
	FD_BYTES = 1 << 23,	/* a socket that is a byte stream */
	FD_RECORDS = 1 << 24,	/* another kind of socket, or no socket */
	/*
	 * A posted open has made the descriptor, for reading. The kind of its file is
	 * unknown, and no call has used the file's position yet: see
	 * engine/uring_eager.h.
	 */
	FD_OPENED = 1 << 25,
	FD_READING = 1 << 26,	/* like FD_OPENED, while one eager read of it is
				 * pending */
	/*
	 * Once poll(2) has reported the file ready, io_uring executes the call on a
	 * worker thread, not on the thread that posted it, because the file
	 * supports no attempt without waiting. A worker's read can't be undone, and
	 * the posting thread must enter the kernel to get its result.
	 */
	FD_WORKER = 1 << 27,
	FD_OLD_WORKER = 1 << 28,	/* like FD_WORKER, but only before Linux 6.12 */
	FD_NO_LIMITS = 1 << 29,	/* queried: none of FD_TIMEOUT's reasons applies */
	FD_PIPE = 1 << 30,	/* queried: a pipe */
};

/* Groups of facts. */
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

/* Raise *end above fd, before fd gets a fact. */
static inline void fds_raise_end(_Atomic uint32_t *end, uint32_t fd)
{
	uint32_t old = atomic_load_explicit(end, memory_order_relaxed);

	while (old <= fd && !atomic_compare_exchange_weak(end, &old, fd + 1))
		;
}

/*
 * Descriptors from this number on have no facts. The number is raised before a fact is
 * recorded, so that a scan up to this number misses none.
 */
extern _Atomic uint32_t flexsc__fds_end;
/* The same limit for FD_ALONE, and for facts about flags and options. */
extern _Atomic uint32_t flexsc__fds_asked_end;

/*
 * Counts the options that the process and its forked children have set on descriptors
 * without FD_ALONE. The counter is in memory that they share; NULL: there was no
 * memory.
 */
extern _Atomic uint32_t *flexsc__fds_options;
/* Must be called before any descriptor gets a fact. */
void flexsc__fds_init(void);

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
 * Returns the first descriptor of a range that has a fact; last + 1 if none has. It
 * doesn't visit numbers that never had a fact, because a range may end at UINT32_MAX.
 */
uint64_t flexsc__fds_next(uint64_t first, uint64_t last);

/*
 * Drop the facts of a descriptor that is about to be closed. False: calls may be
 * waiting for the descriptor, and need a duplicate first (files/closing.h).
 */
static inline bool fds_forget_closed(uint32_t fd)
{
	/* Keep FD_MARKED, which another thread may be setting. */
	return !fds_known(fd) ||
	       !(atomic_fetch_and_explicit(&flexsc__fds_facts[fd], FD_MARKED,
					   memory_order_relaxed) & FD_MARKED);
}

/*
 * Called when a call begins that may use the file positions of the entry's descriptors:
 * no read of them may be eager any more.
 */
void flexsc__fds_use_position(const struct flexsc_entry *entry);

static inline bool fds_is_opened(uint32_t fd)
{
	return (fds_known(fd) & (FD_OPENED | FD_ALONE | FD_WAITS)) ==
	       (FD_OPENED | FD_ALONE | FD_WAITS);
}

/*
 * Replace the fact "from" with others. False: the descriptor doesn't have that fact
 * (any more): another thread was first, or the descriptor was closed.
 */
bool flexsc__fds_exchange(uint32_t fd, uint32_t from, uint32_t to);

/* Does a plain call on the descriptor wait in the same cases as io_uring? */
bool flexsc__fds_find_waits(uint32_t fd);

/* Does the descriptor have file offsets? */
bool flexsc__fds_find_seeks(uint32_t fd);

/* Does FD_TIMEOUT apply to the socket? Queries the kernel if that is unknown. */
bool flexsc__fds_find_limits(uint32_t fd);

/* Is the descriptor a socket that is a byte stream? */
bool flexsc__fds_find_bytes(uint32_t fd);

/*
 * Returns the facts that follow from the kind of the descriptor's file; 0: no such
 * descriptor.
 */
uint32_t flexsc__fds_kind(uint32_t fd);

/* Has any descriptor ever had FD_SIGNALS? */
extern atomic_bool flexsc__fds_any_signals;

/*
 * Counts calls that set flags (effects.h): in the upper half those that have begun, in
 * the lower half those in progress. If two such calls overlap, the order in which the
 * kernel executes them is unknown. So neither these calls nor a query during such a
 * call record a fact.
 */
extern _Atomic uint64_t flexsc__fds_setters;

static inline bool fds_has_signals(uint32_t fd)
{
	return fds_known(fd) & FD_SIGNALS;
}

/*
 * As fds_has_signals(), but queries the kernel if the descriptor's kind is unknown, for
 * example because it was received over a socket.
 */
static inline bool fds_find_signals(uint32_t fd)
{
	return flexsc__fds_kind(fd) && fds_has_signals(fd);
}

/*
 * Drop FD_ALONE everywhere. Called before creating a process that shares this process's
 * files.
 */
void flexsc__fds_share(void);

/*
 * Record that a call polls the descriptor. fds_is_polled() returns false again once the
 * descriptor has been closed.
 */
void flexsc__fds_poll(uint32_t fd);

static inline bool fds_is_polled(uint32_t fd)
{
	return fds_known(fd) & FD_POLLED;
}

/*
 * Set FD_MARKED for the descriptor, or for all descriptors of the entry: from here on a
 * call may wait for them.
 */
void flexsc__fds_mark(uint32_t fd);
void flexsc__fds_mark_all(const struct flexsc_entry *entry);
/*
 * Clear FD_MARKED: the descriptor is about to be closed, and the calls that wait for it
 * use a duplicate.
 */
void flexsc__fds_unmark(uint32_t fd);

static inline bool fds_is_marked(uint32_t fd)
{
	return fds_known(fd) & FD_MARKED;
}

/* Do receives on the socket wait for more than one byte? */
bool flexsc__fds_find_lowat(uint32_t fd);

/* Does the descriptor have O_NONBLOCK? */
bool flexsc__fds_find_nonblock(uint32_t fd);

#endif /* FLEXSC_FDS_H */
