/* SPDX-License-Identifier: MIT */
#include "loop_calls.h"

void flexsc__loop_call_noted(struct uthread *u, long nr, const uint64_t a[6],
			     enum call_turn turn, long ret)
{
	struct flexsc_entry entry = {
		.nr = (__u16)nr,
		.args = { a[0], a[1], a[2], a[3] },
	};

	if (turn == TURN_ACCEPT)
		flexsc__fds_note_made(&entry, ret);
	if (turn != TURN_MESSAGE)
		return;
	sticky_transfers(u);
	flexsc__fds_note_sent(PASSES_ONE, a[1], ret);
}
