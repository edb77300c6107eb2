/* SPDX-License-Identifier: MIT */
/*
 * The functions of arch/context.h on aarch64. The thread pointer is tpidr_el0, which user
 * mode may write.
 */
#ifndef FLEXSC_RUNTIME_AARCH64_CONTEXT_H
#define FLEXSC_RUNTIME_AARCH64_CONTEXT_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

#include "lib/base/syscall.h"

#define CONTEXT_SELF_IN_TLS	true
/* Programs get addresses of more than 48 bits only by passing a hint to mmap(). */
#define CONTEXT_ADDRESSES	(1ULL << 48)

extern __thread void *flexsc__context_self
	__attribute__((tls_model("initial-exec")));
/* Number of ticks for each count of the processor's counter. */
extern uint64_t flexsc__context_scale;
/* The value with which libc mangles the stack pointer in a jmp_buf. */
extern uint64_t flexsc__context_guard;

void flexsc__context_probe(void);

static inline void context_probe(void)
{
	flexsc__context_probe();
}

/* The counter advances by 0.024 to 1 per nanosecond. */
static inline uint64_t context_ticks(void)
{
	uint64_t count;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
	return count * flexsc__context_scale;
}

static inline uint64_t context_tp(void)
{
	uint64_t tp;

	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(tp));
	return tp;
}

static inline void context_set_tp(uint64_t tp)
{
	__asm__ volatile("msr tpidr_el0, %0" : : "r"(tp) : "memory");
}

static inline void context_set_self(void *self)
{
	/* A signal handler that reads the new self must see the record's fields. */
	__atomic_signal_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&flexsc__context_self, self, __ATOMIC_RELAXED);
}

static inline void context_lend_self(uint64_t tp, void *self)
{
	/* flexsc__context_self is at the same offset in every thread's TLS. */
	ptrdiff_t offset = (char *)&flexsc__context_self - (char *)context_tp();

	__atomic_store_n((void **)(tp + (uint64_t)offset), self, __ATOMIC_RELAXED);
}

static inline void *context_self(void)
{
	return __atomic_load_n(&flexsc__context_self, __ATOMIC_RELAXED);
}

static inline void *context_self_if_any(void)
{
	return context_self();
}

#ifndef PR_GET_SHADOW_STACK_STATUS
#define PR_GET_SHADOW_STACK_STATUS	74
#endif

static inline bool context_has_shadow_stack(void)
{
	uint64_t status = 0;

	return !raw_syscall(SYS_prctl, PR_GET_SHADOW_STACK_STATUS, PTR(&status),
			    0, 0, 0, 0) &&
	       status & 1;
}

#define CONTEXT_JMPBUF_SP	13	/* index of the stack pointer in a jmp_buf */

static inline uintptr_t context_jump_target(jmp_buf env)
{
	return env->__jmpbuf[CONTEXT_JMPBUF_SP] ^ flexsc__context_guard;
}

/* The record that context_switch.S describes. */
struct context_saved {
	uint64_t x[10];		/* x19 to x28 */
	uint64_t fp, lr;	/* x29, x30 */
	uint64_t d[8];		/* d8 to d15 */
	uint64_t fpcr, fpsr;
};

_Static_assert(sizeof(struct context_saved) == 176, "as in context_switch.S");

static inline void *context_init(void *top, void (*fn)(void *), void *arg)
{
	struct context_saved *saved = (struct context_saved *)
		((uintptr_t)top & ~(uintptr_t)15) - 1;

	*saved = (struct context_saved){
		.x = { (uintptr_t)fn, (uintptr_t)arg },
		.lr = (uintptr_t)flexsc__begin,
	};
	return saved;
}

#endif /* FLEXSC_RUNTIME_AARCH64_CONTEXT_H */
