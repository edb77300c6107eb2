/* SPDX-License-Identifier: MIT */
#include "work.h"

#include <errno.h>
#include <flexsc/work.h>

#include "lib/base/syscall.h"
#include "call.h"
#include "handle.h"
#include "staged.h"

static struct staged work_make(int64_t (*run)(void *arg), void *arg)
{
	return (struct staged){
		.nr = (uint16_t)NR_WORK,
		.args = { [WORK_ARG] = PTR(arg), [WORK_RUN] = PTR(run) },
	};
}

int flexsc_loop_work(struct flexsc_loop *loop, struct flexsc_cb *cb,
		     int64_t (*run)(void *arg), void *arg)
{
	struct staged call = work_make(run, arg);
	int err = flexsc__post_check(loop, cb);

	if (err)
		return err;
	return run ? flexsc__staged_post(loop, cb, &call, 0) : -EINVAL;
}

int flexsc_loop_work_after(struct flexsc_loop *loop, struct flexsc_cb *cb,
			   struct flexsc_cb *before, unsigned int chain,
			   int64_t (*run)(void *arg), void *arg)
{
	struct staged call = work_make(run, arg);
	int err = flexsc__post_check(loop, cb);

	if (err)
		return err;
	/*
	 * A chained work may get its predecessor's result as an argument, but not
	 * in place of the function's address: the result would become a jump.
	 */
	if (!run || (chain & CHAIN_ARGS) > FLEXSC_CHAIN_ARG(WORK_ARG))
		return -EINVAL;
	return flexsc__post_after(loop, cb, before, &call, chain);
}
