/* SPDX-License-Identifier: MIT */
/*
 * The code that libc's patched places jump to. Each place has a trampoline here, which
 * libc/sites.c fills: the instructions that the jump replaced, then
 *
 *	mov $number, %ecx
 *	jmp flexsc__trampoline_common
 *
 * The kernel preserves all registers but rax, rcx and r11, and the red zone, so this
 * code does, too. The runtime doesn't use vector registers, and saves them where other
 * code may run (arch/x86_64/vectors.c). To the unwinder this code looks like a function
 * that was called from the place where it continues.
 */

	.section .text.flexsc_trampolines, "ax", @progbits
	.globl flexsc__trampolines
	.hidden flexsc__trampolines
	.balign 4096
flexsc__trampolines:
	.fill 4096 * 6, 1, 0xcc

	.text
	.globl flexsc__trampoline_common
	.hidden flexsc__trampoline_common
	.type flexsc__trampoline_common, @function
	.p2align 4
flexsc__trampoline_common:
	.cfi_startproc
	.cfi_def_cfa rsp, 0
	leaq	flexsc__trampoline_returns(%rip), %r11
	movq	(%r11, %rcx, 8), %r11
	leaq	-128(%rsp), %rsp
	.cfi_def_cfa_offset 128
	pushq	%r11
	.cfi_def_cfa_offset 136
	.cfi_offset rip, -136
	pushq	%rbp
	.cfi_def_cfa_offset 144
	.cfi_offset rbp, -144
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	pushq	%r9
	pushq	%r8
	pushq	%r10
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	movl	%eax, %edi
	movq	%rsp, %rsi
	movl	%ecx, %edx
	pushq	%rbx
	.cfi_offset rbx, -200
	movq	%rsp, %rbx
	andq	$-16, %rsp
	callq	flexsc__site_hook
	movq	%rbx, %rsp
	popq	%rbx
	.cfi_restore rbx
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%r10
	popq	%r8
	popq	%r9
	popq	%rbp
	.cfi_def_cfa rsp, 136
	.cfi_restore rbp
	popq	%r11
	.cfi_def_cfa_offset 128
	leaq	128(%rsp), %rsp
	.cfi_def_cfa_offset 0
	jmpq	*%r11
	.cfi_endproc
	.size flexsc__trampoline_common, . - flexsc__trampoline_common

	.section .note.GNU-stack, "", @progbits
