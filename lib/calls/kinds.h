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

struct kind {
	uint8_t in, out;	/* enum waits */
	bool has_place;		/* calls at the file's position share it */
	bool has_offsets;	/* pread() and pwrite() work */
	bool is_terminal;
	bool has_signals;	/* a signalfd: the calling thread's */
};

/* The kind of a descriptor's file. NULL: there is no such descriptor. */
const struct kind *flexsc__kind(uint32_t fd);

/*
 * Is the descriptor a socket with a queue of errors? Receiving from an empty one
 * fails. Other sockets take MSG_ERRQUEUE for no flag at all, and wait for data.
 */
bool flexsc__kind_has_errors(uint32_t fd);

#endif /* FLEXSC_KINDS_H */
