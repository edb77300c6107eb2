/* SPDX-License-Identifier: MIT */
#include "loop_calls.h"

void flexsc__loop_call_accepted(long nr, const uint64_t a[6], long ret)
{
	struct flexsc_entry entry = {
		.nr = (__u16)nr,
		.args = { a[0], a[1], a[2], a[3] },
	};

	flexsc__fds_note_made(&entry, ret);
}
