/* SPDX-License-Identifier: MIT */
/*
 * Context switching on x86-64. The FS base points to a thread's TLS. Programs don't use
 * the GS base, so it points to the current kernel thread's struct kthread.
 * context_switch.S has the switch itself. Any thread.
 */
#ifndef FLEXSC_RUNTIME_CONTEXT_H
#define FLEXSC_RUNTIME_CONTEXT_H

#include <asm/prctl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "lib/base/syscall.h"

/*
 * Save this stack's pointer in *from, and continue with the stack pointer "to" and this
 * FS base. Returns when this stack is switched back to.
 */
void flexsc__switch(void **from, void *to, uint64_t fs);
/* The first code on a fresh stack, which context_init() prepares. */
void flexsc__begin(void);

/* May user mode write the FS and GS bases? Set once, before the first switch. */
extern bool flexsc__fsgsbase;

#ifndef HWCAP2_FSGSBASE
#define HWCAP2_FSGSBASE	(1 << 1)
#endif

static inline void context_probe(void)
{
	flexsc__fsgsbase = getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE;
}

/* A count that only has to grow with time, by 1 to 5 per nanosecond. */
static inline uint64_t context_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static inline uint64_t context_fs(void)
{
	uint64_t fs;

	/* glibc's TCB begins with a pointer to itself. */
	__asm__("mov %%fs:0, %0" : "=r"(fs));
	return fs;
}

static inline void context_set_fs(uint64_t fs)
{
	if (flexsc__fsgsbase)
		__asm__ volatile("wrfsbase %0" : : "r"(fs));
	else
		raw_syscall(SYS_arch_prctl, ARCH_SET_FS, fs, 0, 0, 0, 0);
}

static inline void context_set_gs(void *base)
{
	if (flexsc__fsgsbase)
		__asm__ volatile("wrgsbase %0" : : "r"(base));
	else
		raw_syscall(SYS_arch_prctl, ARCH_SET_GS, (uintptr_t)base, 0, 0,
			    0, 0);
}

static inline void *context_gs(void)
{
	uint64_t base = 0;

	if (flexsc__fsgsbase)
		__asm__ volatile("rdgsbase %0" : "=r"(base));
	else
		raw_syscall(SYS_arch_prctl, ARCH_GET_GS, PTR(&base), 0, 0, 0,
			    0);
	return (void *)base;
}

/*
 * The word that the GS base points to. The base must not be null. Don't keep the word
 * across a switch.
 */
static inline void *context_gs_word(void)
{
	void *word;

	__asm__ volatile("mov %%gs:0, %0" : "=r"(word));
	return word;
}

/*
 * Prepare the stack that ends at "top". A switch to the returned stack pointer calls
 * fn(arg).
 */
static inline void *context_init(void *top, void (*fn)(void *), void *arg)
{
	uint64_t *sp = (uint64_t *)((uintptr_t)top & ~(uintptr_t)15);

	*--sp = (uintptr_t)flexsc__begin;
	*--sp = 0;			/* rbp */
	*--sp = (uintptr_t)fn;		/* rbx */
	*--sp = (uintptr_t)arg;		/* r12 */
	*--sp = 0;
	*--sp = 0;
	*--sp = 0;			/* r15 */
	*--sp = 0x037f00001f80;		/* mxcsr, x87 control word */
	return sp;
}

#endif /* FLEXSC_RUNTIME_CONTEXT_H */
