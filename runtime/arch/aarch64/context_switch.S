/* SPDX-License-Identifier: MIT */
/*
 * The switch between two stacks of one kernel thread, together with the thread pointer.
 * The registers that a function must preserve are stored on the stack that is left; the
 * caller expects the others to be lost.
 *
 * The record at a saved stack pointer:
 *
 *	 0	x19 to x28
 *	80	x29, x30: the frame pointer, and the address to continue at
 *	96	d8 to d15
 *	160	fpcr, fpsr
 *
 * context.h writes the first such record of a fresh stack; counters/flexsc_gdb.py reads
 * the records. Writing fpcr and fpsr is slow on some processors, so they are written
 * only if they differ.
 */
	.text

/* void flexsc__switch(void **from, void *to, uint64_t tp) */
	.globl flexsc__switch
	.hidden flexsc__switch
	.type flexsc__switch, %function
	.p2align 4
flexsc__switch:
	.cfi_startproc
	sub	sp, sp, #176
	.cfi_def_cfa_offset 176
	stp	x19, x20, [sp]
	stp	x21, x22, [sp, #16]
	stp	x23, x24, [sp, #32]
	stp	x25, x26, [sp, #48]
	stp	x27, x28, [sp, #64]
	stp	x29, x30, [sp, #80]
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	.cfi_offset x19, -176
	.cfi_offset x20, -168
	.cfi_offset x21, -160
	.cfi_offset x22, -152
	.cfi_offset x23, -144
	.cfi_offset x24, -136
	.cfi_offset x25, -128
	.cfi_offset x26, -120
	.cfi_offset x27, -112
	.cfi_offset x28, -104
	.cfi_offset x29, -96
	.cfi_offset x30, -88
	.cfi_offset 72, -80
	.cfi_offset 73, -72
	.cfi_offset 74, -64
	.cfi_offset 75, -56
	.cfi_offset 76, -48
	.cfi_offset 77, -40
	.cfi_offset 78, -32
	.cfi_offset 79, -24
	mrs	x9, fpcr
	mrs	x10, fpsr
	stp	x9, x10, [sp, #160]
	mov	x11, sp
	str	x11, [x0]
	msr	tpidr_el0, x2
	mov	sp, x1
	ldp	x11, x12, [sp, #160]
	cmp	x11, x9
	b.eq	1f
	msr	fpcr, x11
1:	cmp	x12, x10
	b.eq	2f
	msr	fpsr, x12
2:	ldp	d14, d15, [sp, #144]
	ldp	d12, d13, [sp, #128]
	ldp	d10, d11, [sp, #112]
	ldp	d8, d9, [sp, #96]
	ldp	x29, x30, [sp, #80]
	ldp	x27, x28, [sp, #64]
	ldp	x25, x26, [sp, #48]
	ldp	x23, x24, [sp, #32]
	ldp	x21, x22, [sp, #16]
	ldp	x19, x20, [sp]
	add	sp, sp, #176
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size flexsc__switch, . - flexsc__switch

/*
 * The first code on a fresh stack: call the function in x19 with the argument in x20.
 * The function never returns.
 */
	.globl flexsc__begin
	.hidden flexsc__begin
	.type flexsc__begin, %function
	.p2align 4
flexsc__begin:
	.cfi_startproc
	.cfi_undefined x30
	mov	x0, x20
	blr	x19
	brk	#0
	.cfi_endproc
	.size flexsc__begin, . - flexsc__begin

	.section .note.GNU-stack, "", %progbits
