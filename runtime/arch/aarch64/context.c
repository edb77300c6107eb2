/* SPDX-License-Identifier: MIT */
#include "runtime/arch/context.h"

/* ticks per second: the limits in ticks assume this rate */
#define TICKS		2500000000U

__thread void *flexsc__context_self __attribute__((tls_model("initial-exec")));
uint64_t flexsc__context_scale;
uint64_t flexsc__context_guard;

/* Runs before the constructors that measure the rate of the ticks. */
__attribute__((constructor(101))) static void set_scale(void)
{
	uint64_t frequency;

	__asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
	flexsc__context_scale = frequency && frequency < TICKS ?
					TICKS / frequency : 1;
}

/*
 * libc doesn't export the value with which it mangles pointers. A mangled pointer,
 * combined with the plain one, shows the value.
 */
void flexsc__context_probe(void)
{
	uint64_t sp;
	jmp_buf env;

	__asm__ volatile("mov %0, sp" : "=r"(sp));
	_setjmp(env);
	flexsc__context_guard = env->__jmpbuf[CONTEXT_JMPBUF_SP] ^ sp;
}
