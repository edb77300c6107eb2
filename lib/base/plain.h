/* SPDX-License-Identifier: MIT */
/*
 * The few calls of its own that the library makes on its own descriptors.
 *
 * The runtime of flexsc run stands in front of libc's functions, and this
 * library is part of it: a call by libc's name would come back to the runtime
 * as if the program had made it. There these functions are system calls.
 * tests/lint/imports.py keeps to that: it says which names no file of the runtime
 * may use, and why a few may be used.
 *
 * Elsewhere they are libc's, because sanitizers know descriptors by those.
 */
#ifndef FLEXSC_PLAIN_H
#define FLEXSC_PLAIN_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "syscall.h"

#ifdef FLEXSC_IN_RUNTIME

static inline void plain_close(int fd)
{
	raw_syscall(SYS_close, (uint32_t)fd, 0, 0, 0, 0, 0);
}

/*
 * Copies a descriptor to a number of at least "floor". Returns it, or negative.
 */
static inline int plain_copy(int fd, int floor)
{
	return (int)raw_syscall(SYS_fcntl, (uint32_t)fd, F_DUPFD_CLOEXEC,
				(uint32_t)floor, 0, 0, 0);
}

/* Returns how many bytes were read, or negative. */
static inline long plain_read(int fd, void *to, size_t size)
{
	return raw_syscall(SYS_read, (uint32_t)fd, PTR(to), size, 0, 0, 0);
}

#else

static inline void plain_close(int fd)
{
	close(fd);
}

static inline int plain_copy(int fd, int floor)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, floor);
}

static inline long plain_read(int fd, void *to, size_t size)
{
	return read(fd, to, size);
}

#endif

#endif /* FLEXSC_PLAIN_H */
