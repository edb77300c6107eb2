/* SPDX-License-Identifier: MIT */
#include "probe.h"

#include <sys/time.h>

#include "lib/base/ask.h"
#include "lib/calls/call_info.h"

bool flexsc__probe_time_limit(uint64_t fd, unsigned int poll)
{
	struct timeval limit = { 0 };
	uint32_t size = sizeof(limit);

	return !ask(SYS_getsockopt, fd, SOL_SOCKET,
		    poll == POLL_READ ? SO_RCVTIMEO : SO_SNDTIMEO,
		    PTR(&limit), PTR(&size), 0) &&
	       (limit.tv_sec || limit.tv_usec);
}

uint32_t flexsc__probe_option(uint32_t fd, int option)
{
	uint32_t value = 0, size = sizeof(value);

	ask(SYS_getsockopt, fd, SOL_SOCKET, (uint64_t)option,
	    PTR(&value), PTR(&size), 0);
	return value;
}
