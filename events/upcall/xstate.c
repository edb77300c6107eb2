/* SPDX-License-Identifier: MIT */
/*
 * Which vector registers and other extended state an upcall saves, and their
 * size. x86_64.S saves and restores them. With FLEXSC_ECB_INTEGER_ONLY, nothing
 * of this state is saved.
 */
#include "upcall.h"

#include <cpuid.h>

#define XSTATE		0x0d		/* leaf of CPUID */
#define XSTATE_LEGACY	576		/* the first two components and the header */
#define XSTATE_TILES	(3ULL << 17)	/* AMX: 8 KB, which few programs use */

/* Returns the components that the kernel enables for programs; 0: no XSAVE. */
static uint64_t xstate_components(void)
{
	uint32_t a, b, c, d, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 0;
	__asm__("xgetbv" : "=a"(a), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | a;
}

size_t flexsc__upcall_probe(struct flexsc__upcall *upcall)
{
	uint64_t mask = xstate_components() & ~XSTATE_TILES;
	size_t plain = XSTATE_LEGACY, compact = XSTATE_LEGACY;
	uint32_t size, offset, features, d;

	if (!mask)
		return 0;
	for (uint32_t i = 2; i < 63; i++) {
		if (!(mask >> i & 1))
			continue;
		__cpuid_count(XSTATE, i, size, offset, features, d);
		if (plain < offset + size)
			plain = offset + size;
		/* Round up, because some components begin at a multiple of 64. */
		compact += (size + 63) / 64 * 64;
	}
	__cpuid_count(XSTATE, 1, features, size, offset, d);
	upcall->mask[0] = (uint32_t)mask;
	upcall->mask[1] = (uint32_t)(mask >> 32);
	upcall->compact = features >> 1 & 1;
	return upcall->compact ? compact : plain;
}
