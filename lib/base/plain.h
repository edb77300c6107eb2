/* SPDX-License-Identifier: MIT */
/*
 * The few calls that the library makes on its own descriptors.
 *
 * In the runtime of flexsc run they are raw system calls. The runtime interposes libc's
 * functions and contains this library, so a call of libc's function would enter the
 * runtime as if the program had made it. tests/lint/imports.py lists the names that no
 * file of the runtime may use, and the exceptions with their reasons.
 *
 * Elsewhere they are libc's functions, which sanitizers intercept to track descriptors.
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
 * Duplicates a descriptor to a number of at least "floor". Returns the number, or a
 * negative value.
 */
static inline int plain_copy(int fd, int floor)
{
	return (int)raw_syscall(SYS_fcntl, (uint32_t)fd, F_DUPFD_CLOEXEC,
				(uint32_t)floor, 0, 0, 0);
}

/* Returns the number of bytes read, or a negative value. */
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
