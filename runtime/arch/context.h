/* SPDX-License-Identifier: MIT */
/*
 * Context switching: what differs between processors. A context is a stack with saved
 * registers, and the thread pointer, which locates a thread's TLS. Any thread.
 *
 * A kernel thread has a record, its "self" (struct kthread). While a kernel thread runs
 * a user thread, the thread pointer is the user thread's. So x86-64 keeps the self in
 * another register. aarch64 has no other register: each TLS has a copy of the self, and
 * a kernel thread writes its self into a user thread's TLS before it switches to that
 * thread (context_lend_self()). So CONTEXT_SELF_IN_TLS is true there, and a sleeping
 * host, whose TLS is that of its user thread, finds the self of the kernel thread that
 * runs the user thread.
 *
 *	context_probe()		once, before the first switch
 *	context_ticks()		a count that grows with time, by 1 to 5 per nanosecond
 *	context_tp(), context_set_tp()	the thread pointer
 *	context_set_self()	set the calling kernel thread's self; or NULL
 *	context_self()		the self; it must be set. Don't keep it across a switch
 *	context_self_if_any()	the self, or NULL
 *	context_lend_self()	the thread with this thread pointer is about to run here
 *	context_init()		prepare the stack that ends at "top": a switch to the
 *				returned stack pointer calls fn(arg)
 *	context_has_shadow_stack()	does the calling thread use one?
 *	context_jump_target()	the stack pointer that a longjmp() continues with
 *	CONTEXT_ADDRESSES	addresses of programs are below this
 */
#ifndef FLEXSC_RUNTIME_CONTEXT_H
#define FLEXSC_RUNTIME_CONTEXT_H

#include <stdint.h>

/*
 * Save this stack's pointer in *from, and continue with the stack pointer "to" and this
 * thread pointer. Returns when this stack is switched back to.
 */
void flexsc__switch(void **from, void *to, uint64_t tp);
/* The first code on a fresh stack, which context_init() prepares. */
void flexsc__begin(void);

#if defined(__x86_64__)
#include "x86_64/context.h"
#elif defined(__aarch64__)
#include "aarch64/context.h"
#endif

#endif /* FLEXSC_RUNTIME_CONTEXT_H */
