/* SPDX-License-Identifier: MIT */
/* Properties of a descriptor, asked of the kernel each time. Any thread. */
#ifndef FLEXSC_PROBE_H
#define FLEXSC_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Does a socket's own time limit end the call? poll is an enum call_poll. */
bool flexsc__probe_time_limit(uint64_t fd, unsigned int poll);

/* Is the descriptor a terminal, or was it one before it hung up? */
bool flexsc__probe_terminal(uint64_t fd);

/* An option of SOL_SOCKET; 0 if the descriptor is no socket. */
uint32_t flexsc__probe_option(uint32_t fd, int option);

/*
 * Does a socket lose datagrams? Linux (6.18) copies a datagram before it looks
 * whether the receiver has room. If not, io_uring sends it later, with nothing
 * left to copy: it is empty.
 */
static inline bool probe_is_lossy(uint64_t domain, uint64_t type)
{
	return domain == AF_UNIX && type == SOCK_DGRAM;
}

bool flexsc__probe_loses(uint32_t fd);

#endif /* FLEXSC_PROBE_H */
