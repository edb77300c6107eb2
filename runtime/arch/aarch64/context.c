/* SPDX-License-Identifier: MIT */
#include "runtime/arch/context.h"

#define TICKS		2500000000U	/* per second, as the runtime's limits assume */

__thread void *flexsc__context_self __attribute__((tls_model("initial-exec")));
uint64_t flexsc__context_scale;
uint64_t flexsc__context_guard;

/* Before other constructors, which measure the ticks' rate (sched/cputime.c). */
__attribute__((constructor(101))) static void set_scale(void)
{
	uint64_t frequency;

	__asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
	flexsc__context_scale = frequency && frequency < TICKS ?
					TICKS / frequency : 1;
}

/* libc doesn't export the guard, so take it from a mangled stack pointer. */
void flexsc__context_probe(void)
{
	uint64_t sp;
	jmp_buf env;

	__asm__ volatile("mov %0, sp" : "=r"(sp));
	_setjmp(env);
	flexsc__context_guard = env->__jmpbuf[CONTEXT_JMPBUF_SP] ^ sp;
}
