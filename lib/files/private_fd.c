/* SPDX-License-Identifier: MIT */
#include "private_fd.h"

#include <fcntl.h>

#include "lib/base/plain.h"
#include "lib/base/ask.h"

/* The number that copies begin at, at most: memory is kept for each number. */
#define COPIES		4096

int flexsc__own_fd_floor;

/* The ends of the descriptors that are FD_OWN, and FD_COPY: all are below. */
static _Atomic uint32_t own_end, copies_end;

int flexsc__own_fd(int fd)
{
	int high = -1;

	if (fd < 0)
		return fd;
	if (flexsc__own_fd_floor)
		high = plain_copy(fd, flexsc__own_fd_floor);
	if (high >= 0) {
		plain_close(fd);
		fd = high;
	}
	fds_learn((uint32_t)fd, FD_OWN);
	fds_raise_end(&own_end, (uint32_t)fd);
	return fd;
}

int flexsc__own_fd_copy(int fd)
{
	int floor = flexsc__own_fd_floor / 2 < COPIES ? flexsc__own_fd_floor / 2 :
						     COPIES;
	long copy = ask(SYS_fcntl, (uint64_t)fd, F_DUPFD_CLOEXEC,
			(uint64_t)floor, 0, 0, 0);

	if (copy < 0)
		return (int)copy;
	fds_learn((uint32_t)copy, FD_OWN | FD_COPY);
	fds_raise_end(&copies_end, (uint32_t)copy);
	return (int)copy;
}

static void close_below(_Atomic uint32_t *limit, uint32_t fact)
{
	uint32_t end = atomic_load(limit);

	for (uint32_t fd = 0; fd < end && fd < FDS_MAX; fd++)
		if (fds_known(fd) & fact)
			flexsc__own_fd_close((int)fd);
	atomic_store(limit, 0);
}

void flexsc__own_fd_close_copies(void)
{
	close_below(&copies_end, FD_COPY);
}

void flexsc__own_fd_close_all(void)
{
	flexsc__own_fd_close_copies();
	close_below(&own_end, FD_OWN);
}

void flexsc__own_fd_close(int fd)
{
	fds_forget((uint32_t)fd);
	flexsc__asks++;
	plain_close(fd);
}
