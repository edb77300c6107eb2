/* SPDX-License-Identifier: MIT */
#include "runtime/arch/vectors.h"

#include <cpuid.h>
#include <stdint.h>

/* XSAVE's bits of the state that is saved: x87, SSE, AVX, AVX-512. */
#define STATE	0xe7U

#define ALIGN	64U
#define HEADER	512U	/* offset of the area's header, in bytes */

static uint32_t mask;
static uint64_t bytes;
static bool compact;

/*
 * Size of the save area, in bytes: where the last component ends in the standard
 * format. The compacted format is no larger.
 */
static uint64_t end_of_state(void)
{
	uint64_t end = HEADER + 64;

	for (unsigned int i = 2; i < 32; i++) {
		unsigned int size, offset, c, d;

		if (!(mask >> i & 1))
			continue;
		__cpuid_count(0xd, i, size, offset, c, d);
		if (offset + size > end)
			end = offset + size;
	}
	return end;
}

bool flexsc__vectors_probe(void)
{
	unsigned int a, b, c, d, low, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	mask = low & STATE;
	bytes = end_of_state();
	__cpuid_count(0xd, 1, a, b, c, d);
	compact = a & 2;
	return true;
}

void flexsc__vectors_around(void (*run)(void *), void *arg)
{
	char *area = __builtin_alloca_with_align(bytes, ALIGN * 8);
	uint64_t *header = (uint64_t *)(area + HEADER);

	/* XRSTOR refuses a header whose reserved bytes aren't zero. */
	for (unsigned int i = 0; i < 8; i++)
		header[i] = 0;
	if (compact)
		__asm__ volatile("xsavec (%0)" : : "r"(area), "a"(mask), "d"(0)
				 : "memory");
	else
		__asm__ volatile("xsave (%0)" : : "r"(area), "a"(mask), "d"(0)
				 : "memory");
	run(arg);
	__asm__ volatile("xrstor (%0)" : : "r"(area), "a"(mask), "d"(0)
			 : "memory");
}
