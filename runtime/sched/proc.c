/* SPDX-License-Identifier: MIT */
#include "proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/files/fds.h"
#include "lib/files/private_fd.h"
#include "carrier.h"

static int open_file(const struct carrier *c, const char *name)
{
	char path[64];

	/*
	 * flexsc__private_fd_floor is 0 if RLIMIT_NOFILE leaves no room for private
	 * descriptors. A descriptor of the runtime could then take a number that the
	 * program uses.
	 */
	if (!flexsc__private_fd_floor)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", c->k.tid, name);
	return flexsc__private_fd(open(path, O_RDONLY | O_CLOEXEC));
}

static void close_file(int fd)
{
	if (fd < 0)
		return;
	raw_syscall(SYS_close, (uint32_t)fd, 0, 0, 0, 0, 0);
	fds_forget((uint32_t)fd);
}

void flexsc__proc_open(struct carrier *c)
{
	c->stuck_fd = open_file(c, "syscall");
	c->status_fd = open_file(c, "status");
}

void flexsc__proc_close(struct carrier *c)
{
	close_file(c->stuck_fd);
	close_file(c->status_fd);
}

void flexsc__proc_status(const struct carrier *c, struct status_value *values,
			 size_t n)
{
	flexsc__status_read(c->status_fd, SYS_pread64, values, n);
}

bool flexsc__proc_call(struct carrier *c)
{
	struct stuck stuck = { .nr = -1 };
	char text[256], *at = text;
	long n = raw_syscall(SYS_pread64, (uint64_t)c->stuck_fd, PTR(text),
			     sizeof(text) - 1, 0, 0, 0);

	text[n > 0 ? n : 0] = 0;
	if (*at >= '0' && *at <= '9') {
		stuck.nr = strtol(at, &at, 10);
		for (unsigned int i = 0; i < 6; i++)
			stuck.args[i] = strtoul(at, &at, 16);
		stuck.sp = strtoul(at, &at, 16);
		stuck.pc = strtoul(at, &at, 16);
	}
	c->stuck = stuck;
	return *text == 'r';
}
