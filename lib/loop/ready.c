/* SPDX-License-Identifier: MIT */
#include "ready.h"

#include "loop.h"

void flexsc__ready(struct flexsc_loop *loop, struct flexsc_cb *cb, int64_t ret)
{
	loop_assert_owner(loop);
	cb->ret = ret;
	cb_set_next(cb, NULL);
	if (loop->ready.head)
		cb_set_next(loop->ready.tail, cb);
	else
		loop->ready.head = cb;
	loop->ready.tail = cb;
}

struct flexsc_cb *flexsc__ready_take(struct flexsc_loop *loop)
{
	struct flexsc_cb *cb = loop->ready.head;

	if (cb)
		loop->ready.head = cb_next(cb);
	return cb;
}
