/* SPDX-License-Identifier: MIT */
/*
 * void flexsc__stack_call(void *top, void (*run)(struct flexsc_ecb *),
 *			   struct flexsc_ecb *ecb);
 *
 * Calls a function on another stack, and returns on the caller's.
 */
	.text
	.globl flexsc__stack_call
	.hidden flexsc__stack_call
	.type flexsc__stack_call, @function
	.p2align 4
flexsc__stack_call:
	.cfi_startproc
#if defined(__x86_64__)
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	movq	%rdi, %rsp
	movq	%rdx, %rdi
	callq	*%rsi
	leave
	.cfi_def_cfa rsp, 8
	.cfi_restore rbp
	ret
#elif defined(__aarch64__)
	stp	x29, x30, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov	x29, sp
	.cfi_def_cfa_register x29
	mov	sp, x0
	mov	x0, x2
	blr	x1
	mov	sp, x29
	.cfi_def_cfa_register sp
	ldp	x29, x30, [sp], #16
	.cfi_adjust_cfa_offset -16
	.cfi_restore x29
	.cfi_restore x30
	ret
#else
#error "not ported to this machine"
#endif
	.cfi_endproc
	.size flexsc__stack_call, . - flexsc__stack_call

	.section .note.GNU-stack, "", %progbits
