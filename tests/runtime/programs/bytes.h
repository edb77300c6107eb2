/* SPDX-License-Identifier: MIT */
/* For tests of event loops: one byte at a time between two sockets. */
#ifndef FLEXSC_TESTS_BYTES_H
#define FLEXSC_TESTS_BYTES_H

#include <errno.h>
#include <sys/socket.h>

#include "threads.h"

/* Send one byte. */
static inline void say(int fd)
{
	CHECK_EQ(send(fd, "x", 1, 0), 1);
}

/* Receive the byte, waiting if the socket does. */
static inline void hear(int fd)
{
	char byte = 0;

	CHECK_EQ(recv(fd, &byte, 1, 0), 1);
	CHECK_EQ(byte, 'x');
}

/* A receive from a non-blocking socket that has no byte. */
static inline void hear_nothing(int fd)
{
	char byte;

	CHECK_EQ(recv(fd, &byte, 1, 0), -1);
	CHECK_EQ(errno, EAGAIN);
}

#endif /* FLEXSC_TESTS_BYTES_H */
