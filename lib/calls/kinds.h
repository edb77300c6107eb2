/* SPDX-License-Identifier: MIT */
/*
 * How reads and writes wait, by the kind of their file.
 *
 * io_uring, and an epoll set, wait until poll(2) reports a descriptor ready. For
 * many files that isn't when a plain call returns: a write to /dev/kmsg or to a
 * fanotify group never waits, and neither ever reports POLLOUT. An epoll set has
 * no read, which fails at once; a POSIX message queue reports messages, and its
 * read returns a line of text. Such a call must not be left to what polls: it
 * would wait forever.
 *
 * The kernel doesn't list these kinds, so this is a list of files that poll(2)
 * reports ready when their calls return, and of files whose calls don't wait. A
 * call on any other file needs a thread of its own while it waits. Where /proc
 * isn't mounted, files without a path are such other files.
 *
 * Any thread. The kernel is asked each time; fds.h keeps the answers.
 */
#ifndef FLEXSC_KINDS_H
#define FLEXSC_KINDS_H

#include <stdbool.h>
#include <stdint.h>

/* How the reads, or the writes, of a file wait. */
enum waits {
	WAITS_POLLED,	/* until poll(2) reports the descriptor ready */
	WAITS_NEVER,	/* for a device at most */
	WAITS_UNKNOWN,
};

/*
 * Who makes a call on a file for io_uring when poll(2) has reported it ready? A worker
 * where the file has no call that doesn't wait. What the worker has read or written
 * can't be undone, and the thread that posted the call has to enter for the result.
 */
enum maker {
	MADE_BY_OWNER = 0,
	MADE_BY_OLD_WORKER,	/* before Linux 6.12 a worker */
	MADE_BY_WORKER,
};

struct kind {
	uint8_t in, out;	/* enum waits */
	bool has_place;		/* calls at the file's position share it */
	bool has_offsets;	/* pread() and pwrite() work */
	bool is_terminal;
	bool has_signals;	/* a signalfd: the calling thread's */
	uint8_t maker;		/* enum maker */
};

struct statx;

/*
 * Is it a file on a disk, as these attributes show? They don't show it of an empty
 * file on some filesystems, as generated files (/proc) have the same.
 */
bool flexsc__kind_on_disk(const struct statx *file);

/* The kind of a descriptor's file. NULL: there is no such descriptor. */
const struct kind *flexsc__kind(uint32_t fd);

/*
 * Is the descriptor a socket with a queue of errors? Receiving from an empty one
 * fails. Other sockets take MSG_ERRQUEUE for no flag at all, and wait for data.
 */
bool flexsc__kind_has_errors(uint32_t fd);

#endif /* FLEXSC_KINDS_H */
