/* SPDX-License-Identifier: MIT */
/*
 * The code that an event control block's owner runs between the kernel's interruption
 * and its return. The stack pointer is the address of struct flexsc_upcall_frame, and
 * rdi points to a struct flexsc__upcall.
 *
 * The kernel enters with IRET or similar, so no ENDBR is needed. For debuggers and
 * unwinders, the interrupted code is the caller: the CFA is its stack pointer, 216
 * bytes above the frame.
 *
 * If another event is due, the tail jumps back to the entry. The state is then that of
 * an upcall: rsp points to the frame, and rdi to the struct. The registers that the
 * frame has saved may have any values; all others have the interrupted code's values.
 */
#include "upcall.h"

/* Offsets in struct flexsc_event_control and struct flexsc_upcall_frame. */
#define CONTROL_NOTIFY		0
#define CONTROL_CRITICAL	8
#define CONTROL_PENDING		64
#define FRAME_FLAGS		72
#define FRAME			88

#define RED_ZONE		128
#define XSAVE_HEADER		512
#define EFLAGS			49	/* in DWARF */

	.section .rodata
	.balign 4
mxcsr:	.long	0x1f80

	.text
	.globl flexsc__upcall_entry
	.globl flexsc__upcall_tail
	.globl flexsc__upcall_tail_end
	.hidden flexsc__upcall_entry
	.hidden flexsc__upcall_tail
	.hidden flexsc__upcall_tail_end
	.type flexsc__upcall_entry, @function
	.p2align 4
flexsc__upcall_entry:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_def_cfa rsp, FRAME + RED_ZONE
	.cfi_offset r11, -216
	.cfi_offset r10, -208
	.cfi_offset r9, -200
	.cfi_offset r8, -192
	.cfi_offset rdi, -184
	.cfi_offset rsi, -176
	.cfi_offset rdx, -168
	.cfi_offset rcx, -160
	.cfi_offset rax, -152
	.cfi_offset EFLAGS, -144
	.cfi_offset rip, -136
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	movq	%rdi, %rbx
	/* Switch to the handler's stack, unless this is that stack already. */
	movq	UPCALL_STACK_SIZE(%rbx), %rcx
	testq	%rcx, %rcx
	jz	0f
	movq	UPCALL_STACK(%rbx), %rdx
	movq	%rsp, %rax
	subq	%rdx, %rax
	cmpq	%rcx, %rax
	jb	0f
	leaq	(%rdx, %rcx), %rsp
	/*
	 * Save the extended state on the stack, not at a fixed place: a handler
	 * that ends its critical section may be interrupted by another upcall.
	 */
0:	movq	UPCALL_ROOM(%rbx), %rcx
	testq	%rcx, %rcx
	jz	3f
	subq	%rcx, %rsp
	andq	$-64, %rsp
	/* Zero the part of the header that XSAVE doesn't write, as XRSTOR requires. */
	xorl	%eax, %eax
	.irp	word, 0, 8, 16, 24, 32, 40, 48, 56
	movq	%rax, XSAVE_HEADER + \word(%rsp)
	.endr
	movl	UPCALL_MASK(%rbx), %eax
	movl	UPCALL_MASK + 4(%rbx), %edx
	cmpl	$0, UPCALL_COMPACT(%rbx)
	je	1f
	xsavec64 (%rsp)
	jmp	2f
1:	xsave64	(%rsp)
	/*
	 * Set the state that a function expects: an empty x87 stack, the default
	 * controls.
	 */
2:	fninit
	ldmxcsr	mxcsr(%rip)
3:	andq	$-16, %rsp
	callq	*UPCALL_RUN(%rbx)
	cmpq	$0, UPCALL_ROOM(%rbx)
	je	4f
	movl	UPCALL_MASK(%rbx), %eax
	movl	UPCALL_MASK + 4(%rbx), %edx
	xrstor64 (%rsp)
4:	movq	%rbx, %rdi
	movq	UPCALL_CONTROL(%rbx), %rdx
	xorl	%eax, %eax
	movq	%rbp, %rsp
	.cfi_def_cfa_register rsp
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp

	/* U3: a full barrier between the store and the loads. */
flexsc__upcall_tail:
	xchgl	%eax, CONTROL_CRITICAL(%rdx)
	movl	CONTROL_NOTIFY(%rdx), %eax
	testl	%eax, CONTROL_PENDING(%rdx)
	jz	5f
	/*
	 * Store this inside the tail: outside of it, while "critical" is 0, the kernel
	 * could begin another upcall, with a new frame.
	 */
	movl	$1, CONTROL_CRITICAL(%rdx)
	jmp	flexsc__upcall_entry
5:	movq	(%rsp), %r11
	movq	8(%rsp), %r10
	movq	16(%rsp), %r9
	movq	24(%rsp), %r8
	movq	32(%rsp), %rdi
	movq	40(%rsp), %rsi
	movq	48(%rsp), %rdx
	movq	56(%rsp), %rcx
	movq	64(%rsp), %rax
	leaq	FRAME_FLAGS(%rsp), %rsp
	.cfi_adjust_cfa_offset -FRAME_FLAGS
	/*
	 * At each of these two instructions, the kernel knows the stack
	 * pointer's distance from the frame.
	 */
	popfq
	.cfi_adjust_cfa_offset -8
	ret	$RED_ZONE
flexsc__upcall_tail_end:
	.cfi_endproc
	.size flexsc__upcall_entry, . - flexsc__upcall_entry

	.section .note.GNU-stack, "", @progbits
