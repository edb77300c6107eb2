/* SPDX-License-Identifier: MIT */
/*
 * How reads and writes wait, by the kind of their file.
 *
 * io_uring, and an epoll set, wait until poll(2) reports a descriptor ready. For many
 * files that is unrelated to when a plain call returns. A write to /dev/kmsg or to a
 * fanotify group never waits, and neither file ever reports POLLOUT. A read of an epoll
 * set fails at once. A POSIX message queue reports POLLIN when it has messages, but a
 * read of it returns a line of text at any time. If such a call waited for poll(2), it
 * would wait forever.
 *
 * The kernel doesn't list these kinds. The table in kinds.c has a row for each known
 * kind: either poll(2) reports its files ready when their calls return, or their calls
 * don't wait. No other code decides by the kind of a file. A call on a file of an
 * unknown kind needs a thread of its own while it waits. If /proc isn't mounted, every
 * file without a path is of an unknown kind.
 *
 * Any thread. Each function makes system calls; fds.h caches the results.
 */
#ifndef FLEXSC_KINDS_H
#define FLEXSC_KINDS_H

#include <stdbool.h>
#include <stdint.h>

struct statx;

/*
 * Do these attributes show a file on a disk? False also for an empty file on
 * filesystems where it has the same attributes as a generated file (/proc).
 */
bool flexsc__kind_on_disk(const struct statx *file);

/*
 * Returns the facts (enum fd_fact) that follow from the kind of the descriptor's file.
 * 0: no such descriptor.
 */
uint32_t flexsc__kind(uint32_t fd);

/*
 * Does the socket have an error queue? If so, a receive with MSG_ERRQUEUE fails while
 * the queue is empty. Other sockets ignore the flag, and the receive waits for data.
 */
bool flexsc__kind_has_errors(uint32_t fd);

/*
 * May a connect() in this domain wait for something that poll(2) doesn't report? With
 * AF_UNIX it waits while the listening socket's queue is full.
 */
bool flexsc__kind_waits_to_connect(uint64_t domain);

/* Can io_uring lose datagrams on such a socket? See kinds.c. */
bool flexsc__kind_loses(uint64_t domain, uint64_t type);

#endif /* FLEXSC_KINDS_H */
