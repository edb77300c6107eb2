/* SPDX-License-Identifier: MIT */
/*
 * What the library knows of the process's descriptors. It asks the kernel once
 * for each that calls of a loop didn't make, and forgets when a call of a loop
 * closes the descriptor or changes its flags. What other code does behind its
 * back it has to be told: another library that closes a socket, after which the
 * number is a different descriptor's.
 *
 * Any thread, with or without a loop. Nothing here costs a mode switch.
 */
#ifndef FLEXSC_FD_H
#define FLEXSC_FD_H

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * fd was closed, or its O_NONBLOCK or time limits were changed, by no call of a
 * loop: ask again when it is used next. Before the next call with that number
 * is posted. Other values of fd than descriptors are fine.
 */
void flexsc_fd_forget(int fd);

/* Flags of flexsc_fd_hint(); one of each pair. */
#define FLEXSC_FD_REGULAR	0x1U	/* a file on a filesystem */
#define FLEXSC_FD_STREAM	0x2U	/* a socket or a pipe */
#define FLEXSC_FD_BLOCKING	0x4U	/* no O_NONBLOCK, no time limits */
#define FLEXSC_FD_NONBLOCK	0x8U	/* O_NONBLOCK */

/*
 * Say what a descriptor is that no call of a loop made, so that the library
 * needn't ask (one to five system calls at its first use). Replaces what was
 * known. A wrong hint makes calls wait or fail as if it were true: a read of a
 * nonblocking socket said to be blocking waits, instead of -EAGAIN.
 *
 * 0; -EINVAL: unknown flags, both of a pair, or a descriptor of the library's.
 */
int flexsc_fd_hint(int fd, unsigned int flags);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_FD_H */
