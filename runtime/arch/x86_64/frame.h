/* SPDX-License-Identifier: MIT */
/* The functions of arch/frame.h on x86-64. */
#ifndef FLEXSC_RUNTIME_X86_64_FRAME_H
#define FLEXSC_RUNTIME_X86_64_FRAME_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#define SYSCALL_BYTES	2	/* bytes of the syscall instruction */
#define MOV_BYTES	5	/* bytes of mov $NUMBER, %eax */

static inline uintptr_t frame_sp(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}

static inline long frame_result(const ucontext_t *context)
{
	return context->uc_mcontext.gregs[REG_RAX];
}

static inline void frame_set_result(ucontext_t *context, long result)
{
	context->uc_mcontext.gregs[REG_RAX] = result;
}

static inline bool frame_is_in(const ucontext_t *context, uint64_t sp, uint64_t pc,
			       const uint64_t args[6])
{
	const greg_t *regs = context->uc_mcontext.gregs;

	return (uint64_t)regs[REG_RIP] == pc && (uint64_t)regs[REG_RSP] == sp &&
	       (uint64_t)regs[REG_RDI] == args[0] &&
	       (uint64_t)regs[REG_RSI] == args[1] &&
	       (uint64_t)regs[REG_RDX] == args[2];
}

/* As in most of libc, the instruction before the "syscall" must set the number. */
static inline bool frame_call(const ucontext_t *context, long *nr, uint64_t *first)
{
	const uint64_t pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	const uint8_t *code = (const uint8_t *)pc - MOV_BYTES - SYSCALL_BYTES;
	int32_t value;

	/* The preceding page may not be readable, so don't read across the border. */
	if ((pc & 4095) < MOV_BYTES + SYSCALL_BYTES ||
	    code[0] != 0xb8 || code[MOV_BYTES] != 0x0f ||
	    code[MOV_BYTES + 1] != 0x05)
		return false;
	memcpy(&value, code + 1, sizeof(value));
	*nr = value;
	*first = (uint64_t)context->uc_mcontext.gregs[REG_RDI];
	return value >= 0;
}

static inline void frame_make_again(ucontext_t *context, long nr, uint64_t first)
{
	greg_t *regs = context->uc_mcontext.gregs;

	(void)first;
	regs[REG_RAX] = nr;
	regs[REG_RIP] -= SYSCALL_BYTES;
}

static inline long frame_trap(const ucontext_t *context)
{
	return context->uc_mcontext.gregs[REG_TRAPNO];
}

static inline void frame_set_trap(ucontext_t *context, long trap)
{
	context->uc_mcontext.gregs[REG_TRAPNO] = trap;
}

static inline bool frame_is_past(int signo)
{
	return signo == SIGTRAP || signo == SIGSYS;
}

#endif /* FLEXSC_RUNTIME_X86_64_FRAME_H */
