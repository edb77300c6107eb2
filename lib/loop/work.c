/* SPDX-License-Identifier: MIT */
#include "work.h"

#include <errno.h>
#include <flexsc/work.h>

#include "lib/base/syscall.h"
#include "handle.h"
#include "held.h"
#include "loop.h"

int flexsc_loop_work(struct flexsc_loop *loop, struct flexsc_cb *cb,
		     int64_t (*run)(void *arg), void *arg)
{
	struct held call = {
		.nr = (uint16_t)NR_WORK,
		.args = { [WORK_ARG] = PTR(arg), [WORK_RUN] = PTR(run) },
	};
	int err = flexsc__post_check(loop, cb);

	if (err)
		return err;
	/* Another call's result must not become the function. */
	if (!run || (loop->chain & CHAIN_ARGS) > FLEXSC_CHAIN_ARG(WORK_ARG))
		return -EINVAL;
	return flexsc__held_post_next(loop, cb, &call);
}
