/* SPDX-License-Identifier: MIT */
#include "refine.h"

#include <stdbool.h>
#include <sys/socket.h>

enum call_class flexsc__call_class(const struct call_info *row,
			       const struct flexsc_entry *entry)
{
	const __u64 *args = entry->args;

	if (row->class != CLASS_WAIT)
		return row->class;
	row = call_variant_of(row, args);
	if (args[row->flags_arg] & row->nowait ||
	    (row->limit == LIMIT_MS && !args[row->limit_arg]))
		return CLASS_FAST;
	return row->class;
}

bool flexsc__call_is_unpolled(unsigned int nr, const __u64 *args)
{
	const struct call_info *row = flexsc__call_info(nr);
	const __u64 flags = args[row->flags_arg], all = row->all | MSG_PEEK;

	return flags & row->unpolled || (row->all && (flags & all) == all);
}
