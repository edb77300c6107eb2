/* SPDX-License-Identifier: MIT */
/*
 * How reads and writes wait, by the kind of their file.
 *
 * io_uring, and an epoll set, wait until poll(2) reports a descriptor ready. For many
 * files that has nothing to do with when a plain call returns. A write to /dev/kmsg or
 * to a fanotify group never waits, and neither ever reports POLLOUT. A read of an epoll
 * set fails at once. A POSIX message queue reports messages, but a read of it returns a
 * line of text. If such a call waited for poll(2), it would wait forever.
 *
 * The kernel doesn't list these kinds. So kinds.c lists the files that poll(2) reports
 * ready when their calls return, and the files whose calls don't wait. A call on any
 * other file needs a thread of its own while it waits. Where /proc isn't mounted, that
 * is true of all files without a path.
 *
 * Any thread. Each look costs system calls; fds.h keeps the results.
 */
#ifndef FLEXSC_KINDS_H
#define FLEXSC_KINDS_H

#include <stdbool.h>
#include <stdint.h>

/* How the reads, or the writes, of a file wait. */
enum waits {
	WAITS_POLLED,	/* until poll(2) reports the descriptor ready */
	WAITS_NEVER,	/* except for a device */
	WAITS_UNKNOWN,	/* a thread has to wait */
};

/*
 * Which thread executes a call for io_uring when poll(2) has reported the file ready. It
 * is a worker of io_uring's if the file has no way to make the call without waiting.
 * What a worker has read can't be put back, although the thread that posted the call
 * must enter the kernel to get the result.
 */
enum maker {
	MADE_BY_OWNER = 0,
	MADE_BY_OLD_WORKER,	/* a worker before Linux 6.12, else the owner */
	MADE_BY_WORKER,
};

struct kind {
	uint8_t in, out;	/* enum waits */
	bool has_place;		/* it has a position, which all its calls share */
	bool has_offsets;	/* pread() and pwrite() work */
	bool is_terminal;
	bool has_signals;	/* a signalfd: the reading thread matters */
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
 * Is the descriptor a socket with a queue of errors? A receive with MSG_ERRQUEUE fails
 * there if the queue is empty. Other sockets ignore the flag, and wait for data.
 */
bool flexsc__kind_has_errors(uint32_t fd);

#endif /* FLEXSC_KINDS_H */
