/* SPDX-License-Identifier: MIT */
#include "patience.h"

#include <stddef.h>
#include <utlist.h>

#include "http/clock.h"

void patience_begin(struct patient **list, struct patient *patient, uint64_t ns)
{
	struct patient *before = *list ? (*list)->prev : NULL;

	patient->due = clock_ticks() + ns;
	while (before && before->due > patient->due)
		before = before == *list ? NULL : before->prev;
	if (before)
		DL_APPEND_ELEM(*list, before, patient);
	else
		DL_PREPEND(*list, patient);
}

void patience_end(struct patient **list, struct patient *patient)
{
	DL_DELETE(*list, patient);
}

struct patient *patience_over(struct patient *list)
{
	return list && list->due <= clock_ticks() ? list : NULL;
}

int patience_ms(const struct patient *list)
{
	uint64_t now = clock_ticks();

	if (!list)
		return -1;
	return list->due <= now ? 0 : (int)((list->due - now) / 1000000 + 1);
}
