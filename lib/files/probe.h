/* SPDX-License-Identifier: MIT */
/* Properties of a descriptor, queried from the kernel each time. Any thread. */
#ifndef FLEXSC_PROBE_H
#define FLEXSC_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * Does a time limit of the socket (SO_RCVTIMEO, SO_SNDTIMEO) end the call? poll is an
 * enum call_poll.
 */
bool flexsc__probe_time_limit(uint64_t fd, unsigned int poll);

/* Returns the value of a SOL_SOCKET option; 0: the descriptor isn't a socket. */
uint32_t flexsc__probe_option(uint32_t fd, int option);

#endif /* FLEXSC_PROBE_H */
