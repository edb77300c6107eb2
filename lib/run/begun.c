/* SPDX-License-Identifier: MIT */
#include "begun.h"

#include "lib/loop/engine.h"
#include "lib/loop/loop.h"

void flexsc__loop_begun(struct flexsc_loop *loop)
{
	flexsc_loop_submit(loop);
	if (loop->engine->settle)
		loop->engine->settle(loop);
}
