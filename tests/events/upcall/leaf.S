/* SPDX-License-Identifier: MIT */
/*
 * A leaf function whose complete state is known at each of its instructions, and a
 * function that changes everything that a function may change. See leaf.h.
 */
#include "leaf.h"

	.bss
	.balign 64
	.globl leaf_want
	.globl leaf_got
leaf_want: .skip LEAF_SIZE
leaf_got: .skip LEAF_SIZE

	.section .rodata
	.balign 64
garbage: .fill 16, 4, 0xdeadbeef
other_mxcsr: .long 0x5f80
	.balign 4
other_cw: .word 0x0f7f
mxcsr:	.long	0x1f80

/* Loads or stores all vector registers, from or to the image in rdi. */
.macro vectors load
	cmpl	$1, leaf_level(%rip)
	ja	3f
	je	2f
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	.if \load
	movups	LEAF_VECTORS + 64 * \n(%rdi), %xmm\n
	.else
	movups	%xmm\n, LEAF_VECTORS + 64 * \n(%rdi)
	.endif
	.endr
	jmp	4f
2:
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	.if \load
	vmovups	LEAF_VECTORS + 64 * \n(%rdi), %ymm\n
	.else
	vmovups	%ymm\n, LEAF_VECTORS + 64 * \n(%rdi)
	.endif
	.endr
	jmp	4f
3:
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, \
		16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	.if \load
	vmovups	LEAF_VECTORS + 64 * \n(%rdi), %zmm\n
	.else
	vmovups	%zmm\n, LEAF_VECTORS + 64 * \n(%rdi)
	.endif
	.endr
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	.if \load
	kmovw	LEAF_MASKS + 8 * \n(%rdi), %k\n
	.else
	kmovw	%k\n, LEAF_MASKS + 8 * \n(%rdi)
	.endif
	.endr
4:
.endm

	.text
	.globl leaf
	.globl leaf_begin
	.globl leaf_end
	.type leaf, @function
	.p2align 4
leaf:
	.cfi_startproc
	.irp r, rbx, rbp, r12, r13, r14, r15
	pushq	%\r
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \r, 0
	.endr
	leaq	leaf_want(%rip), %rdi
	vectors	1
	fninit
	fldcw	LEAF_X87_CONTROL(%rdi)
	fldl	LEAF_X87(%rdi)
	fldl	LEAF_X87 + 8(%rdi)
	fldl	LEAF_X87 + 16(%rdi)
	ldmxcsr	LEAF_MXCSR(%rdi)
	cmpl	$0, leaf_traps(%rip)
	je	1f
	int3
1:	pushq	LEAF_FLAGS(%rdi)
	popfq
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movq	LEAF_RED + 8 * \n(%rdi), %rax
	movq	%rax, 8 * \n - 128(%rsp)
	.endr
	movq	(%rdi), %rax
	movq	8(%rdi), %rbx
	movq	16(%rdi), %rcx
	movq	24(%rdi), %rdx
	movq	32(%rdi), %rsi
	movq	48(%rdi), %rbp
	movq	56(%rdi), %r8
	movq	64(%rdi), %r9
	movq	72(%rdi), %r10
	movq	80(%rdi), %r11
	movq	88(%rdi), %r12
	movq	96(%rdi), %r13
	movq	104(%rdi), %r14
	movq	112(%rdi), %r15
	movq	40(%rdi), %rdi
leaf_begin:
	nop
	movq	%rax, %rax
	leaq	(%rbx), %rbx
	movaps	%xmm1, %xmm1
	xchgq	%r8, %r8
	movq	%r11, -8(%rsp)
	fnop
	movq	%rdi, -128(%rsp)
	leaq	-8(%rsp), %rsp
	leaq	8(%rsp), %rsp
	loop	leaf_begin
leaf_end:
	movq	%rax, leaf_got(%rip)
	movq	%rbx, leaf_got + 8(%rip)
	movq	%rcx, leaf_got + 16(%rip)
	movq	%rdx, leaf_got + 24(%rip)
	movq	%rsi, leaf_got + 32(%rip)
	movq	%rdi, leaf_got + 40(%rip)
	movq	%rbp, leaf_got + 48(%rip)
	movq	%r8, leaf_got + 56(%rip)
	movq	%r9, leaf_got + 64(%rip)
	movq	%r10, leaf_got + 72(%rip)
	movq	%r11, leaf_got + 80(%rip)
	movq	%r12, leaf_got + 88(%rip)
	movq	%r13, leaf_got + 96(%rip)
	movq	%r14, leaf_got + 104(%rip)
	movq	%r15, leaf_got + 112(%rip)
	leaq	leaf_got(%rip), %rdi
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movq	8 * \n - 128(%rsp), %rax
	movq	%rax, LEAF_RED + 8 * \n(%rdi)
	.endr
	pushfq
	popq	LEAF_FLAGS(%rdi)
	cld
	stmxcsr	LEAF_MXCSR(%rdi)
	fnstcw	LEAF_X87_CONTROL(%rdi)
	fstpl	LEAF_X87 + 16(%rdi)
	fstpl	LEAF_X87 + 8(%rdi)
	fstpl	LEAF_X87(%rdi)
	vectors	0
	fninit
	ldmxcsr	mxcsr(%rip)
	cmpl	$0, leaf_level(%rip)
	je	1f
	vzeroupper
1:
	.irp r, r15, r14, r13, r12, rbp, rbx
	popq	%\r
	.cfi_adjust_cfa_offset -8
	.cfi_restore \r
	.endr
	ret
	.cfi_endproc
	.size leaf, . - leaf

	.globl leaf_clobber
	.type leaf_clobber, @function
	.p2align 4
leaf_clobber:
	.cfi_startproc
	cmpl	$1, leaf_level(%rip)
	ja	2f
	je	1f
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movaps	garbage(%rip), %xmm\n
	.endr
	jmp	3f
1:
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovups	garbage(%rip), %ymm\n
	.endr
	jmp	3f
2:
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, \
		16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	vmovups	garbage(%rip), %zmm\n
	.endr
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7
	kmovw	garbage(%rip), %k\n
	.endr
3:	fninit
	fld1
	fldcw	other_cw(%rip)
	ldmxcsr	other_mxcsr(%rip)
	call	leaf_clobber_general
	ret
	.cfi_endproc
	.size leaf_clobber, . - leaf_clobber

	.globl leaf_clobber_general
	.type leaf_clobber_general, @function
	.p2align 4
leaf_clobber_general:
	.cfi_startproc
	movq	$-1, %rax
	.irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, \
		19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32
	movq	%rax, -8 * \n(%rsp)
	.endr
	.irp r, rcx, rdx, rsi, rdi, r8, r9, r10, r11
	movq	%rax, %\r
	.endr
	cmpl	$0, leaf_traps(%rip)
	je	1f
	int3
	/* Changes all flags that a function may change. */
1:	addq	%rax, %rax
	ret
	.cfi_endproc
	.size leaf_clobber_general, . - leaf_clobber_general

/* A handler that uses general registers only: see leaf.h. */
	.globl leaf_handle_plainly
	.type leaf_handle_plainly, @function
	.p2align 4
leaf_handle_plainly:
	.cfi_startproc
	movq	(%rdi), %rax
	addl	$1, leaf_handled(%rip)
	lock andl $0, LEAF_CONTROL_PENDING(%rax)
	jmp	leaf_clobber_general
	.cfi_endproc
	.size leaf_handle_plainly, . - leaf_handle_plainly

	.section .note.GNU-stack, "", @progbits
