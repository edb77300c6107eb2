/* SPDX-License-Identifier: MIT */
#include "direct.h"

#include "lib/calls/call_info.h"

void flexsc__direct_describe(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	const struct call *call = call_of(loop, index);

	RULE(call_is_direct(call));
	entry->nr = call->nr;
	entry->nargs = flexsc__calls[call->nr].nargs;
	entry->args[0] = call->direct.fd;
	entry->args[1] = call->direct.addr;
	entry->args[2] = call->direct.len;
}

void flexsc__direct_fill(struct flexsc_loop *loop, uint32_t index)
{
	loop_assert_owner(loop);
	flexsc__direct_describe(loop, index);
	call_of(loop, index)->how = 0;
	entry_submit(entry_of(loop, index));
}
