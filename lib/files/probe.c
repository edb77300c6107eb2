/* SPDX-License-Identifier: MIT */
#include "probe.h"

#include <errno.h>
#include <sys/ioctl.h>
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

bool flexsc__probe_terminal(uint64_t fd)
{
	/* The kernel's structure is smaller. */
	uint64_t mode[16];
	long ret = ask(SYS_ioctl, fd, TCGETS, PTR(mode), 0, 0, 0);

	return !ret || ret == -EIO;
}

uint32_t flexsc__probe_option(uint32_t fd, int option)
{
	uint32_t value = 0, size = sizeof(value);

	ask(SYS_getsockopt, fd, SOL_SOCKET, (uint64_t)option,
	    PTR(&value), PTR(&size), 0);
	return value;
}

bool flexsc__probe_loses(uint32_t fd)
{
	uint32_t domain = flexsc__probe_option(fd, SO_DOMAIN);

	return domain == AF_UNIX &&
	       probe_is_lossy(domain, flexsc__probe_option(fd, SO_TYPE));
}
