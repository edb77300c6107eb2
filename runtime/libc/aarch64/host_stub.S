/* SPDX-License-Identifier: MIT */
/*
 * As x86_64/host_stub.S. x16 points to the record. The real function gets all arguments
 * unchanged: integer registers, x8, which locates a large result, and vector registers.
 */
	.macro save
	stp	x0, x1, [sp, #16]
	stp	x2, x3, [sp, #32]
	stp	x4, x5, [sp, #48]
	stp	x6, x7, [sp, #64]
	str	x8, [sp, #80]
	stp	q0, q1, [sp, #96]
	stp	q2, q3, [sp, #128]
	stp	q4, q5, [sp, #160]
	stp	q6, q7, [sp, #192]
	.endm

	.macro restore
	ldp	x0, x1, [sp, #16]
	ldp	x2, x3, [sp, #32]
	ldp	x4, x5, [sp, #48]
	ldp	x6, x7, [sp, #64]
	ldr	x8, [sp, #80]
	ldp	q0, q1, [sp, #96]
	ldp	q2, q3, [sp, #128]
	ldp	q4, q5, [sp, #160]
	ldp	q6, q7, [sp, #192]
	.endm

	.text
	.globl flexsc__host_stub
	.hidden flexsc__host_stub
	.type flexsc__host_stub, %function
	.p2align 4
flexsc__host_stub:
	.cfi_startproc
	stp	x29, x30, [sp, #-240]!
	.cfi_def_cfa_offset 240
	.cfi_offset x29, -240
	.cfi_offset x30, -232
	mov	x29, sp
	str	x19, [sp, #224]
	.cfi_offset x19, -16
	save
	mov	x0, x16
	bl	flexsc__stay_on_host
	mov	x19, x1
	mov	x16, x0
	restore
	blr	x16
	stp	x0, x1, [sp, #16]
	mov	x0, x19
	bl	flexsc__stayed_on_host
	ldp	x0, x1, [sp, #16]
	ldr	x19, [sp, #224]
	.cfi_restore x19
	ldp	x29, x30, [sp], #240
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size flexsc__host_stub, . - flexsc__host_stub

	/*
	 * Jumps to the function that "find" returns for the record in x16 and the six
	 * integer arguments.
	 */
	.macro jump_to name, find
	.globl \name
	.hidden \name
	.type \name, %function
	.p2align 4
\name:
	.cfi_startproc
	stp	x29, x30, [sp, #-240]!
	.cfi_def_cfa_offset 240
	.cfi_offset x29, -240
	.cfi_offset x30, -232
	mov	x29, sp
	save
	mov	x0, x16
	add	x1, sp, #16
	bl	\find
	mov	x16, x0
	restore
	ldp	x29, x30, [sp], #240
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	br	x16
	.cfi_endproc
	.size \name, . - \name
	.endm

	jump_to flexsc__host_jump, flexsc__go_to_host
	jump_to flexsc__front_jump, flexsc__front_target

	.section .note.GNU-stack, "", %progbits
