/* SPDX-License-Identifier: MIT */
/*
 * The lengths of the instructions that compilers use most, from a table of opcodes. A
 * decoder for all instructions takes about 30 times as long. Any thread.
 */
#ifndef FLEXSC_RUNTIME_LENGTH_H
#define FLEXSC_RUNTIME_LENGTH_H

#include <stdint.h>

/*
 * The length of the instruction at "at". Reads no byte from "end" on. Returns 0 if the
 * table lacks the instruction, or if "end" is too close: then another decoder has to
 * find the length. For a relative jump or call, *target becomes its target. If the
 * bytes aren't an instruction, the result is arbitrary.
 */
unsigned int flexsc__length(const uint8_t *at, const uint8_t *end,
			    const uint8_t **target);

#endif /* FLEXSC_RUNTIME_LENGTH_H */
