/* SPDX-License-Identifier: MIT */
/*
 * Fixing and unfixing a descriptor, so that the engine holds its file. This file checks
 * the arguments; the engine's fix() and unfix() do the rest. Owner only.
 */
#include <errno.h>
#include <flexsc/fd.h>

#include "loop.h"

int flexsc_loop_fix_fd(struct flexsc_loop *loop, int fd)
{
	if (!loop)
		return -ENXIO;
	if (loop->stale)
		return -ESTALE;
	loop_assert_owner(loop);
	if (fd < 0)
		return -EBADF;
	return loop->engine->fix ? loop->engine->fix(loop, fd) : 0;
}

int flexsc_loop_unfix_fd(struct flexsc_loop *loop, int fd)
{
	if (!loop)
		return -ENXIO;
	if (loop->stale)
		return -ESTALE;
	loop_assert_owner(loop);
	if (loop->engine->unfix)
		loop->engine->unfix(loop, fd);
	return 0;
}
