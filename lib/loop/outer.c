/* SPDX-License-Identifier: MIT */
#include "outer.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "lib/base/bell.h"
#include "lib/files/private_fd.h"
#include "loop.h"
#include "stats.h"

int flexsc_loop_fd(struct flexsc_loop *loop)
{
	int fd, err = 0;

	if (!loop)
		return -ENXIO;
	if (loop->stale)
		return -ESTALE;
	if (loop->outer.fd >= 0)
		return loop->outer.fd;
	fd = flexsc__private_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (fd < 0)
		return -errno;
	if (loop->engine->attach)
		err = loop->engine->attach(loop, fd);
	if (err) {
		flexsc__private_fd_close(fd);
		return err;
	}
	loop->outer.fd = fd;
	return fd;
}

void flexsc__outer_ring(struct flexsc_loop *loop)
{
	count_shared(&loop->stats->mode_switches, 1);
	bell_ring(loop->outer.fd);
}

void flexsc__outer_hold(struct flexsc_loop *loop)
{
	if (!loop->outer.held)
		flexsc__outer_ring(loop);
	loop->outer.held = true;
}

void flexsc__outer_silence(struct flexsc_loop *loop)
{
	uint64_t rung;

	loop->outer.held = false;
	count_shared(&loop->stats->mode_switches, 1);
	raw_syscall(SYS_read, (uint64_t)loop->outer.fd, PTR(&rung),
		    sizeof(rung), 0, 0, 0);
}

void flexsc__outer_close(struct flexsc_loop *loop)
{
	if (loop->outer.fd >= 0)
		flexsc__private_fd_close(loop->outer.fd);
	loop->outer.fd = -1;
}
