/* SPDX-License-Identifier: MIT */
/*
 * What the library knows of the process's descriptors. It asks the kernel once
 * for each that calls of a loop didn't make, and forgets when a call of a loop
 * closes the descriptor or changes its flags. What other code does behind its
 * back it has to be told: another library that closes a socket, after which the
 * number is a different descriptor's.
 *
 * flexsc_fd_forget() and flexsc_fd_hint() are for any thread, with or without a
 * loop, and make no mode switch. Fixed descriptors are the loop's owner's.
 */
#ifndef FLEXSC_FD_H
#define FLEXSC_FD_H

#ifdef __cplusplus
extern "C" {
#endif

struct flexsc_loop;

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

/*
 * fd is a descriptor that many calls of this loop will name: an engine that can
 * keeps hold of the file, so that a call needn't look it up (io_uring's fixed
 * files: some 50 nanoseconds of each read, write, receive or send). Calls name
 * fd as before. Fixing costs a mode switch, the loop's first two, and unfixing
 * one. Other engines do nothing, nor does "uring" if a kernel thread polls.
 *
 * A close() of fd that is posted to this loop unfixes fd. Before fd is closed or
 * replaced in another way, as by dup2(), flexsc_loop_unfix_fd() has to be
 * called: otherwise calls may go on with the old file, which stays open.
 *
 * 0, also if fd was fixed before; -EBADF: fd is negative or, where the engine
 * keeps hold of files, not open; -ENOSPC: the loop has 1024 fixed descriptors;
 * -ENOMEM, -ENXIO (no loop), -ESTALE.
 */
int flexsc_loop_fix_fd(struct flexsc_loop *loop, int fd);

/* End what fix did. 0, also if fd isn't fixed; -ENXIO (no loop), -ESTALE. */
int flexsc_loop_unfix_fd(struct flexsc_loop *loop, int fd);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_FD_H */
