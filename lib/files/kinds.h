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
 * The kernel doesn't list these kinds. So the table in kinds.c has a row for each kind
 * whose files poll(2) reports ready when their calls return, or whose calls don't wait. It
 * is the only place that decides by the kind of a file. A call on any other file needs a
 * thread of its own while it waits. Where /proc isn't mounted, that is true of all files
 * without a path.
 *
 * Any thread. Each look costs system calls; fds.h keeps the results.
 */
#ifndef FLEXSC_KINDS_H
#define FLEXSC_KINDS_H

#include <stdbool.h>
#include <stdint.h>

struct statx;

/*
 * Is it a file on a disk, as these attributes show? They don't show it of an empty
 * file on some filesystems, as generated files (/proc) have the same.
 */
bool flexsc__kind_on_disk(const struct statx *file);

/*
 * The facts of a descriptor (enum fd_fact) that follow from its file's kind. 0: there is
 * no such descriptor.
 */
uint32_t flexsc__kind(uint32_t fd);

/*
 * Is the descriptor a socket with a queue of errors? A receive with MSG_ERRQUEUE fails
 * there if the queue is empty. Other sockets ignore the flag, and wait for data.
 */
bool flexsc__kind_has_errors(uint32_t fd);

/*
 * May a connect() to such an address wait for something that poll(2) doesn't report? On
 * local sockets it waits while the listener's queue is full.
 */
bool flexsc__kind_waits_to_connect(uint64_t domain);

/* Does io_uring lose datagrams of such a socket? */
bool flexsc__kind_loses(uint64_t domain, uint64_t type);

#endif /* FLEXSC_KINDS_H */
