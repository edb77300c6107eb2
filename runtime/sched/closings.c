/* SPDX-License-Identifier: MIT */
#include "closings.h"

#include "lib/base/futex.h"
#include "state.h"

struct closings flexsc__closings;
_Atomic uint32_t flexsc__closings_heirs;

static void count_chunk(uint32_t chunk)
{
	atomic_fetch_add(&flexsc__closings.of_chunk[chunk], 1);
}

void flexsc__closings_count_range(uint32_t first, uint32_t last)
{
	uint32_t fd = first;

	while (fd <= last && fd < CLOSINGS) {
		if (fd % CLOSINGS_CHUNK || last - fd < CLOSINGS_CHUNK - 1) {
			closings_count(fd);
			fd++;
		} else {
			count_chunk(fd / CLOSINGS_CHUNK);
			fd += CLOSINGS_CHUNK;
		}
	}
	if (last >= CLOSINGS)
		count_chunk(CLOSINGS / CLOSINGS_CHUNK);
}

/*
 * A forked child never waits: it has no heirs, although its copy of the count may be >
 * 0.
 */
void flexsc__closings_wait_for_heirs(void)
{
	uint32_t n;

	while ((n = atomic_load(&flexsc__closings_heirs)) && !runtime_is_lent())
		futex_wait(&flexsc__closings_heirs, n, UINT64_MAX);
}

void flexsc__closings_heir_begins(void)
{
	/* M5 */
	atomic_fetch_add(&flexsc__closings_heirs, 1);
}

void flexsc__closings_heir_ends(void)
{
	atomic_fetch_sub(&flexsc__closings_heirs, 1);
	futex_wake_all(&flexsc__closings_heirs);
}
