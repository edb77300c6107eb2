/* SPDX-License-Identifier: MIT */
#include "lib/loop/loop.h"
#include "pool.h"
#include "syscall_thread.h"

int flexsc__pool_create(struct flexsc_loop *loop, uint32_t max)
{
	return flexsc__pool_make(loop, max, flexsc__syscall_thread);
}

bool flexsc__pool_ensure(struct flexsc_loop *loop)
{
	return loop_pool(loop) ||
	       !flexsc__pool_create(loop, loop->options.max_threads);
}
