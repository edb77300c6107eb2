/* SPDX-License-Identifier: MIT */
/* The state of libc/code.h on x86-64. */
#ifndef FLEXSC_RUNTIME_X86_64_CODE_H
#define FLEXSC_RUNTIME_X86_64_CODE_H

#include <Zydis/Zydis.h>

#define CODE_CALL	2U	/* bytes of the instruction "syscall" */
#define FUNCTION_MAX	8192U	/* instructions of a function */
#define TARGETS_MAX	4096U

/* The function that was decoded last; may contain several system calls. */
struct function {
	const uint8_t *begin, *end;
	uint32_t starts[FUNCTION_MAX];	/* offsets of its instructions */
	const uint8_t *targets[TARGETS_MAX];
	unsigned int count, jumps;
	bool whole;
};

struct code {
	ZydisDecoder decoder;
	struct function function;
	unsigned int call;	/* index of the chosen place's instruction */
};

#endif /* FLEXSC_RUNTIME_X86_64_CODE_H */
