/* SPDX-License-Identifier: MIT */
#include "ready.h"

#include "loop.h"

void flexsc__ready(struct flexsc_loop *loop, struct flexsc_cb *cb, int64_t ret)
{
	loop_assert_owner(loop);
	cb->ret = ret;
	cb_list_add(&loop->ready, cb);
}

void flexsc__ready_return(struct flexsc_loop *loop, struct cb_list *taken)
{
	if (!taken->head)
		return;
	cb_set_next(taken->tail, loop->ready.head);
	if (!loop->ready.head)
		loop->ready.tail = taken->tail;
	loop->ready.head = taken->head;
}

struct flexsc_cb *flexsc__ready_take(struct flexsc_loop *loop)
{
	struct flexsc_cb *cb = loop->ready.head;

	if (cb)
		loop->ready.head = cb_next(cb);
	return cb;
}
