/* SPDX-License-Identifier: MIT */
/* The library's cached facts about the process's descriptors: flexsc-fd(3). */
#ifndef FLEXSC_FD_H
#define FLEXSC_FD_H

#ifdef __cplusplus
extern "C" {
#endif

struct flexsc_loop;

#pragma GCC visibility push(default)

/* Report that other code has closed fd, or changed its flags or time limits. */
void flexsc_fd_forget(int fd);

/* Flags of flexsc_fd_hint(); at most one of each pair. */
#define FLEXSC_FD_REGULAR	0x1U	/* a file on a filesystem */
#define FLEXSC_FD_STREAM	0x2U	/* a socket or a pipe */
#define FLEXSC_FD_BLOCKING	0x4U	/* no O_NONBLOCK, no time limits */
#define FLEXSC_FD_NONBLOCK	0x8U	/* O_NONBLOCK */

/* Describe a descriptor, so that the library needn't query the kernel. */
int flexsc_fd_hint(int fd, unsigned int flags);

/*
 * Announce that many calls of this loop will use fd, so that the engine may hold its
 * file.
 */
int flexsc_loop_fix_fd(struct flexsc_loop *loop, int fd);

/*
 * Undo flexsc_loop_fix_fd(). Required before fd is closed, unless a call of this loop
 * closes it.
 */
int flexsc_loop_unfix_fd(struct flexsc_loop *loop, int fd);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_FD_H */
