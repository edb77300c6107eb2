/* SPDX-License-Identifier: MIT */
/*
 * The code that libc's patched places jump to. Each place has a trampoline here, which
 * aarch64/code.c fills:
 *
 *	stp x29, x30, [sp, #-192]!
 *	stp x16, x17, [sp, #16]
 *	mov w16, #number
 *	bl  flexsc__trampoline_common
 *	ldp x16, x17, [sp, #16]
 *	ldp x29, x30, [sp], #192
 *	b   the instruction after the place
 *
 * The kernel preserves all registers but x0, and the flags, so this code does, too. Only
 * a direct jump back needs no register. The runtime doesn't use vector registers, and
 * saves them where other code may run (arch/aarch64/vectors.S).
 *
 * To the unwinder this code looks like a function that was called from the place where
 * it continues. There x30 may have another use, so the address to continue at has the
 * column that the unwinder uses for signals' frames, 96.
 */
#define FRAME	192

	.section .text.flexsc_trampolines, "ax", %progbits
	.globl flexsc__trampolines
	.hidden flexsc__trampolines
	.balign 4096
flexsc__trampolines:
	.fill 4096 * 6 / 4, 4, 0xd4200000

	.text
	.globl flexsc__trampoline_common
	.hidden flexsc__trampoline_common
	.type flexsc__trampoline_common, %function
	.p2align 4
flexsc__trampoline_common:
	.cfi_startproc
	.cfi_return_column 96
	.cfi_def_cfa_offset FRAME
	.cfi_offset x29, -FRAME
	.cfi_offset x30, 8 - FRAME
	.cfi_offset 96, -16
	stp	x0, x1, [sp, #32]
	adrp	x17, flexsc__trampoline_returns
	add	x17, x17, :lo12:flexsc__trampoline_returns
	ldr	x17, [x17, x16, lsl #3]
	stp	x17, x30, [sp, #FRAME - 16]
	stp	x2, x3, [sp, #48]
	stp	x4, x5, [sp, #64]
	stp	x6, x7, [sp, #80]
	stp	x8, x9, [sp, #96]
	stp	x10, x11, [sp, #112]
	stp	x12, x13, [sp, #128]
	stp	x14, x15, [sp, #144]
	mrs	x17, nzcv
	stp	x18, x17, [sp, #160]
	mov	x29, sp
	mov	x0, x8
	add	x1, sp, #32
	mov	w2, w16
	bl	flexsc__site_hook
	ldp	x18, x17, [sp, #160]
	msr	nzcv, x17
	ldp	x14, x15, [sp, #144]
	ldp	x12, x13, [sp, #128]
	ldp	x10, x11, [sp, #112]
	ldp	x8, x9, [sp, #96]
	ldp	x6, x7, [sp, #80]
	ldp	x4, x5, [sp, #64]
	ldp	x2, x3, [sp, #48]
	ldr	x1, [sp, #40]
	ldr	x30, [sp, #FRAME - 8]
	ret
	.cfi_endproc
	.size flexsc__trampoline_common, . - flexsc__trampoline_common

	.section .note.GNU-stack, "", %progbits
