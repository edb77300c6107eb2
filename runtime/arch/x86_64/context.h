/* SPDX-License-Identifier: MIT */
/*
 * The functions of arch/context.h on x86-64. The thread pointer is the FS base. Programs
 * don't use the GS base, so it points to a kernel thread's record, which begins with a
 * pointer to itself.
 */
#ifndef FLEXSC_RUNTIME_X86_64_CONTEXT_H
#define FLEXSC_RUNTIME_X86_64_CONTEXT_H

#include <asm/prctl.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "lib/base/syscall.h"

#define CONTEXT_SELF_IN_TLS	false
#define CONTEXT_ADDRESSES	(1ULL << 47)

/* May user mode write the FS and GS bases? Set once, before the first switch. */
extern bool flexsc__fsgsbase;

#ifndef HWCAP2_FSGSBASE
#define HWCAP2_FSGSBASE	(1 << 1)
#endif

static inline void context_probe(void)
{
	flexsc__fsgsbase = getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE;
}

static inline uint64_t context_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static inline uint64_t context_tp(void)
{
	uint64_t tp;

	/* glibc's TCB begins with a pointer to itself. */
	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

static inline void context_set_tp(uint64_t tp)
{
	if (flexsc__fsgsbase)
		__asm__ volatile("wrfsbase %0" : : "r"(tp));
	else
		raw_syscall(SYS_arch_prctl, ARCH_SET_FS, tp, 0, 0, 0, 0);
}

static inline void context_set_self(void *self)
{
	if (flexsc__fsgsbase)
		__asm__ volatile("wrgsbase %0" : : "r"(self));
	else
		raw_syscall(SYS_arch_prctl, ARCH_SET_GS, (uintptr_t)self, 0, 0,
			    0, 0);
}

static inline void context_lend_self(uint64_t tp, void *self)
{
	(void)tp;
	(void)self;
}

static inline void *context_self_if_any(void)
{
	uint64_t base = 0;

	if (flexsc__fsgsbase)
		__asm__ volatile("rdgsbase %0" : "=r"(base));
	else
		raw_syscall(SYS_arch_prctl, ARCH_GET_GS, PTR(&base), 0, 0, 0,
			    0);
	return (void *)base;
}

static inline void *context_self(void)
{
	void *self;

	__asm__ volatile("mov %%gs:0, %0" : "=r"(self));
	return self;
}

#ifndef ARCH_SHSTK_STATUS
#define ARCH_SHSTK_STATUS	0x5005
#endif

static inline bool context_has_shadow_stack(void)
{
	uint64_t features = 0;

	return !raw_syscall(SYS_arch_prctl, ARCH_SHSTK_STATUS, PTR(&features),
			    0, 0, 0, 0) &&
	       features & 1;
}

/* libc mangles the stack pointer, in all versions alike, as debuggers rely on this. */
static inline uintptr_t context_jump_target(jmp_buf env)
{
	uintptr_t sp = (uintptr_t)env->__jmpbuf[6], guard;

	__asm__("mov %%fs:0x30, %0" : "=r"(guard));
	return (sp >> 17 | sp << 47) ^ guard;
}

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

#endif /* FLEXSC_RUNTIME_X86_64_CONTEXT_H */
