/* SPDX-License-Identifier: MIT */
/*
 * Detects valgrind. Valgrind recognises this sequence of instructions, and stores its
 * answer in a register. On a processor the sequence has no effect.
 */
#ifndef FLEXSC_VALGRIND_H
#define FLEXSC_VALGRIND_H

#include <stdbool.h>
#include <stdint.h>

#define RUNNING_UNDER	0x1001	/* request: the number of valgrinds that run this
				 * program */

static inline bool under_valgrind(void)
{
	const volatile uint64_t request[6] = { RUNNING_UNDER };
#if defined(__x86_64__)
	uint64_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi\n\t"
			 "rolq $13, %%rdi\n\t"
			 "rolq $61, %%rdi\n\t"
			 "rolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(request)
			 : "cc", "memory");
	return answer;
#elif defined(__aarch64__)
	register uint64_t answer __asm__("x3") = 0;
	register const volatile uint64_t *from __asm__("x4") = request;

	__asm__ volatile("ror x12, x12, #3\n\t"
			 "ror x12, x12, #13\n\t"
			 "ror x12, x12, #51\n\t"
			 "ror x12, x12, #61\n\t"
			 "orr x10, x10, x10"
			 : "+r"(answer)
			 : "r"(from)
			 : "cc", "memory", "x12");
	return answer;
#else
	(void)request;
	return false;
#endif
}

#endif /* FLEXSC_VALGRIND_H */
