/* SPDX-License-Identifier: MIT */
/*
 * long flexsc__cancelpoint(const uint8_t *status, long nr,
 *			 const uint64_t *args)
 *
 * If the signal handler (cancelpoint.c) interrupts a thread between "begin" and "end",
 * it moves the thread to "cancelled", so that the call isn't made. At "end" the call
 * has been made.
 */
#define CANCEL		4	/* FLEXSC_CANCEL; cancelpoint.c checks the value */
#define CANCELED	125	/* ECANCELED; cancelpoint.c checks the value */

	.text
	.globl	flexsc__cancelpoint
	.globl	flexsc__cancelpoint_begin
	.globl	flexsc__cancelpoint_end
	.globl	flexsc__cancelpoint_cancelled
	.hidden	flexsc__cancelpoint
	.hidden	flexsc__cancelpoint_begin
	.hidden	flexsc__cancelpoint_end
	.hidden	flexsc__cancelpoint_cancelled
	.type	flexsc__cancelpoint, %function
flexsc__cancelpoint:
	.cfi_startproc
#if defined(__x86_64__)
	movq	%rdi, %r11
	movq	%rsi, %rax
	movq	0(%rdx), %rdi
	movq	8(%rdx), %rsi
	movq	24(%rdx), %r10
	movq	32(%rdx), %r8
	movq	40(%rdx), %r9
	movq	16(%rdx), %rdx
flexsc__cancelpoint_begin:
	cmpb	$CANCEL, (%r11)
	je	flexsc__cancelpoint_cancelled
	syscall
flexsc__cancelpoint_end:
	ret
flexsc__cancelpoint_cancelled:
	movq	$-CANCELED, %rax
	ret
#elif defined(__aarch64__)
	mov	x9, x0
	mov	x8, x1
	mov	x10, x2
	ldp	x0, x1, [x10]
	ldp	x2, x3, [x10, #16]
	ldp	x4, x5, [x10, #32]
flexsc__cancelpoint_begin:
	ldrb	w11, [x9]
	cmp	w11, #CANCEL
	b.eq	flexsc__cancelpoint_cancelled
	svc	#0
flexsc__cancelpoint_end:
	ret
flexsc__cancelpoint_cancelled:
	mov	x0, #-CANCELED
	ret
#endif
	.cfi_endproc
	.size	flexsc__cancelpoint, . - flexsc__cancelpoint

/* The address to which the signal handler returns: rt_sigreturn(). */
	.globl	flexsc__cancel_restorer
	.type	flexsc__cancel_restorer, %function
flexsc__cancel_restorer:
	/* The trap is reached only if a seccomp filter makes rt_sigreturn() fail. */
#if defined(__x86_64__)
	movl	$15, %eax
	syscall
	ud2
#elif defined(__aarch64__)
	mov	x8, #139
	svc	#0
	brk	#0
#endif
	.size	flexsc__cancel_restorer, . - flexsc__cancel_restorer

	.section .note.GNU-stack, "", %progbits
