/* SPDX-License-Identifier: MIT */
#include "begun.h"

#include "lib/engine/engine.h"
#include "lib/engine/uring.h"

void flexsc__loop_begun(struct flexsc_loop *loop)
{
	flexsc_loop_submit(loop);
	if (loop->engine == &flexsc__engine_uring && uring_of(loop)->ring.polled)
		flexsc__ring_await_consumed(&uring_of(loop)->ring);
}
