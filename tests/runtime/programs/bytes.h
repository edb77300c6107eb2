/* SPDX-License-Identifier: MIT */
/* For tests of event loops: pass single bytes between two sockets. */
#ifndef FLEXSC_TESTS_BYTES_H
#define FLEXSC_TESTS_BYTES_H

#include <errno.h>
#include <sys/socket.h>

#include "threads.h"

static inline void send_byte(int fd)
{
	CHECK_EQ(send(fd, "x", 1, 0), 1);
}

/* Receive a byte. Waits if the socket is blocking. */
static inline void receive_byte(int fd)
{
	char byte = 0;

	CHECK_EQ(recv(fd, &byte, 1, 0), 1);
	CHECK_EQ(byte, 'x');
}

/* Receive from a non-blocking socket, which must have no byte. */
static inline void receive_nothing(int fd)
{
	char byte;

	CHECK_EQ(recv(fd, &byte, 1, 0), -1);
	CHECK_EQ(errno, EAGAIN);
}

#endif /* FLEXSC_TESTS_BYTES_H */
