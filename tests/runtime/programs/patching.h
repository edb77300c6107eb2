/* SPDX-License-Identifier: MIT */
/* A library that patches libc, built from the runtime's files for patching. */
#ifndef FLEXSC_TESTS_PATCHING_H
#define FLEXSC_TESTS_PATCHING_H

#include <stdbool.h>
#include <stdint.h>

struct patched {
	int places;
	/* How many lengths of instructions were looked up, and how many Zydis decoded. */
	unsigned int lengths, decoded;
};

/* alone: Zydis decodes all instructions. */
struct patched patching_patch(bool deep, bool alone);

/* The length according to arch/x86_64/length.h. */
unsigned int patching_length(const uint8_t *at, const uint8_t *end,
			     const uint8_t **target);

#endif /* FLEXSC_TESTS_PATCHING_H */
