/* SPDX-License-Identifier: MIT */
/*
 * How long an instruction is: for those that compilers use most, whose length
 * follows from a table of opcodes. A decoder that knows all instructions takes some
 * 30 times as long.
 */
#ifndef FLEXSC_RUNTIME_LENGTH_H
#define FLEXSC_RUNTIME_LENGTH_H

#include <stdint.h>

/*
 * The length of the instruction at "at", whose bytes end before "end". 0: another
 * decoder has to find it. If the instruction jumps or calls by a distance, *target is
 * set to its target. The bytes may be no instruction at all: then any length is
 * returned.
 */
unsigned int flexsc__length(const uint8_t *at, const uint8_t *end,
			    const uint8_t **target);

#endif /* FLEXSC_RUNTIME_LENGTH_H */
