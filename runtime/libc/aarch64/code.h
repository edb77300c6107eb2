/* SPDX-License-Identifier: MIT */
/* The state of libc/code.h on aarch64. */
#ifndef FLEXSC_RUNTIME_AARCH64_CODE_H
#define FLEXSC_RUNTIME_AARCH64_CODE_H

#define CODE_CALL	4U	/* bytes of an instruction */

struct code {
	const uint32_t *begin, *end, *call;
};

#endif /* FLEXSC_RUNTIME_AARCH64_CODE_H */
