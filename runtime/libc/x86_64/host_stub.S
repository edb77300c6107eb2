/* SPDX-License-Identifier: MIT */
/*
 * r11 points to a struct stub (libc/host_stub.h), or in flexsc__front_jump to a struct
 * front (libc/front.h). The real function gets all arguments unchanged: integer
 * registers, vector registers, and al, where functions with "..." expect the number of
 * vector registers.
 *
 * flexsc__host_stub calls the function, with its arguments in registers, and keeps the
 * user thread on its host until the function returns. flexsc__host_jump jumps to the
 * function; it is for functions that return twice or have arguments on the stack.
 * flexsc__front_jump jumps to the front's target.
 */
	.macro save
	movq	%rdi, (%rsp)
	movq	%rsi, 8(%rsp)
	movq	%rdx, 16(%rsp)
	movq	%rcx, 24(%rsp)
	movq	%r8, 32(%rsp)
	movq	%r9, 40(%rsp)
	movq	%rax, 48(%rsp)
	movups	%xmm0, 64(%rsp)
	movups	%xmm1, 80(%rsp)
	movups	%xmm2, 96(%rsp)
	movups	%xmm3, 112(%rsp)
	movups	%xmm4, 128(%rsp)
	movups	%xmm5, 144(%rsp)
	movups	%xmm6, 160(%rsp)
	movups	%xmm7, 176(%rsp)
	.endm

	.macro restore
	movq	(%rsp), %rdi
	movq	8(%rsp), %rsi
	movq	16(%rsp), %rdx
	movq	24(%rsp), %rcx
	movq	32(%rsp), %r8
	movq	40(%rsp), %r9
	movq	48(%rsp), %rax
	movups	64(%rsp), %xmm0
	movups	80(%rsp), %xmm1
	movups	96(%rsp), %xmm2
	movups	112(%rsp), %xmm3
	movups	128(%rsp), %xmm4
	movups	144(%rsp), %xmm5
	movups	160(%rsp), %xmm6
	movups	176(%rsp), %xmm7
	.endm

	.text
	.globl flexsc__host_stub
	.hidden flexsc__host_stub
	.type flexsc__host_stub, @function
	.p2align 4
flexsc__host_stub:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	pushq	%rbx
	.cfi_offset rbx, -24
	subq	$200, %rsp
	save
	movq	%r11, %rdi
	callq	flexsc__stay_on_host
	movq	%rdx, %rbx
	movq	%rax, %r11
	restore
	callq	*%r11
	movq	%rax, (%rsp)
	movq	%rbx, %rdi
	callq	flexsc__stayed_on_host
	movq	(%rsp), %rax
	addq	$200, %rsp
	popq	%rbx
	.cfi_restore rbx
	popq	%rbp
	.cfi_def_cfa rsp, 8
	.cfi_restore rbp
	ret
	.cfi_endproc
	.size flexsc__host_stub, . - flexsc__host_stub

	/*
	 * Jumps to the function that "find" returns for the record in r11 and the six
	 * integer arguments.
	 */
	.macro jump_to name, find
	.globl \name
	.hidden \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
	subq	$200, %rsp
	.cfi_def_cfa_offset 208
	save
	movq	%r11, %rdi
	movq	%rsp, %rsi
	callq	\find
	movq	%rax, %r11
	restore
	addq	$200, %rsp
	.cfi_def_cfa_offset 8
	jmpq	*%r11
	.cfi_endproc
	.size \name, . - \name
	.endm

	jump_to flexsc__host_jump, flexsc__go_to_host
	jump_to flexsc__front_jump, flexsc__front_target

	.section .note.GNU-stack, "", @progbits
