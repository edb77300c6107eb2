/* SPDX-License-Identifier: MIT */
/*
 * The switch between two stacks of one kernel thread, together with the FS base, which
 * points to a thread's TLS. The registers that a function must preserve are pushed on
 * the stack that is left; the caller expects the others to be lost.
 *
 * The record at a saved stack pointer:
 *
 *	 0	mxcsr, and the x87 control word at 4
 *	 8	r15, r14, r13, r12, rbx, rbp
 *	56	the address to continue at
 *
 * context.h writes the first such record of a fresh stack; counters/flexsc_gdb.py reads
 * the records.
 */
#include <sys/syscall.h>

#define ARCH_SET_FS	0x1002

	.text

/* void flexsc__switch(void **from, void *to, uint64_t fs) */
	.globl flexsc__switch
	.hidden flexsc__switch
	.type flexsc__switch, @function
	.p2align 4
flexsc__switch:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r13, 0
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r14, 0
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r15, 0
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movq	%rsp, (%rdi)
	cmpb	$0, flexsc__fsgsbase(%rip)
	je	2f
	wrfsbase %rdx
1:	movq	%rsi, %rsp
	fldcw	4(%rsp)
	ldmxcsr	(%rsp)
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore r15
	popq	%r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore r14
	popq	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore r13
	popq	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	ret
	/* Without FSGSBASE, only the kernel may write the base. */
2:	movq	%rsi, %r12
	movq	%rdx, %rsi
	movl	$ARCH_SET_FS, %edi
	movl	$SYS_arch_prctl, %eax
	syscall
	movq	%r12, %rsi
	jmp	1b
	.cfi_endproc
	.size flexsc__switch, . - flexsc__switch

/*
 * The first code on a fresh stack: call the function in rbx with the argument in r12.
 * The function never returns.
 */
	.globl flexsc__begin
	.hidden flexsc__begin
	.type flexsc__begin, @function
	.p2align 4
flexsc__begin:
	.cfi_startproc
	.cfi_undefined rip
	movq	%r12, %rdi
	callq	*%rbx
	ud2
	.cfi_endproc
	.size flexsc__begin, . - flexsc__begin

	.section .note.GNU-stack, "", @progbits
