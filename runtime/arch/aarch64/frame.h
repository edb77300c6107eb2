/* SPDX-License-Identifier: MIT */
/*
 * The functions of arch/frame.h on aarch64. A call's result replaces its first
 * argument. So a call can be made again only if the argument is known: from /proc, or
 * because raw_syscall() has kept it in x7.
 */
#ifndef FLEXSC_RUNTIME_AARCH64_FRAME_H
#define FLEXSC_RUNTIME_AARCH64_FRAME_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#define INSTRUCTION	4U	/* bytes */
#define SVC		0xd4000001U	/* svc #0 */
#define KEEP_FIRST	0xaa0003e7U	/* mov x7, x0 */

static inline uintptr_t frame_sp(const ucontext_t *context)
{
	return context->uc_mcontext.sp;
}

static inline long frame_result(const ucontext_t *context)
{
	return (long)context->uc_mcontext.regs[0];
}

static inline void frame_set_result(ucontext_t *context, long result)
{
	context->uc_mcontext.regs[0] = (uint64_t)result;
}

static inline bool frame_is_in(const ucontext_t *context, uint64_t sp, uint64_t pc,
			       const uint64_t args[6])
{
	const mcontext_t *m = &context->uc_mcontext;

	return m->pc == pc && m->sp == sp && m->regs[1] == args[1] &&
	       m->regs[2] == args[2] && m->regs[3] == args[3];
}

static inline bool frame_call(const ucontext_t *context, long *nr, uint64_t *first)
{
	const mcontext_t *m = &context->uc_mcontext;
	const uint32_t *code = (const uint32_t *)(uintptr_t)m->pc;

	/* The preceding page may not be readable, so don't read across the border. */
	if ((m->pc & 4095) < 2 * INSTRUCTION || code[-1] != SVC ||
	    code[-2] != KEEP_FIRST)
		return false;
	*nr = (long)m->regs[8];
	*first = m->regs[7];
	return true;
}

static inline void frame_make_again(ucontext_t *context, long nr, uint64_t first)
{
	mcontext_t *m = &context->uc_mcontext;

	m->regs[8] = (uint64_t)nr;
	m->regs[0] = first;
	m->pc -= INSTRUCTION;
}

static inline long frame_trap(const ucontext_t *context)
{
	(void)context;
	return 0;
}

static inline void frame_set_trap(ucontext_t *context, long trap)
{
	(void)context;
	(void)trap;
}

/* A breakpoint's frame holds the address of the instruction itself, not of the next. */
static inline bool frame_is_past(int signo)
{
	return signo == SIGSYS;
}

#endif /* FLEXSC_RUNTIME_AARCH64_FRAME_H */
