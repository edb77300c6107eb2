/* SPDX-License-Identifier: MIT */
/*
 * The lengths of those instructions that compilers use most, from a table of opcodes. A
 * decoder for all instructions takes some 30 times as long.
 */
#ifndef FLEXSC_RUNTIME_LENGTH_H
#define FLEXSC_RUNTIME_LENGTH_H

#include <stdint.h>

/*
 * The length of the instruction at "at". No byte from "end" on is read. 0: another
 * decoder has to find the length, because the table lacks the instruction or "end" is
 * too close. If the instruction jumps or calls by a distance, *target becomes its
 * target. If the bytes aren't an instruction, the length may be any.
 */
unsigned int flexsc__length(const uint8_t *at, const uint8_t *end,
			    const uint8_t **target);

#endif /* FLEXSC_RUNTIME_LENGTH_H */
