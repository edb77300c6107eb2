/* SPDX-License-Identifier: MIT */
/*
 * The functions of arch/vectors.h on aarch64. A system call preserves the first 128 bits
 * of each vector register, and nothing else of SVE's registers.
 */
	.text

/* bool flexsc__vectors_probe(void) */
	.globl flexsc__vectors_probe
	.hidden flexsc__vectors_probe
	.type flexsc__vectors_probe, %function
	.p2align 4
flexsc__vectors_probe:
	.cfi_startproc
	mov	w0, #1
	ret
	.cfi_endproc
	.size flexsc__vectors_probe, . - flexsc__vectors_probe

/* void flexsc__vectors_around(void (*run)(void *), void *arg) */
	.globl flexsc__vectors_around
	.hidden flexsc__vectors_around
	.type flexsc__vectors_around, %function
	.p2align 4
flexsc__vectors_around:
	.cfi_startproc
	sub	sp, sp, #528
	.cfi_def_cfa_offset 528
	stp	x29, x30, [sp]
	.cfi_offset x29, -528
	.cfi_offset x30, -520
	mov	x29, sp
	stp	q0, q1, [sp, #16]
	stp	q2, q3, [sp, #48]
	stp	q4, q5, [sp, #80]
	stp	q6, q7, [sp, #112]
	stp	q8, q9, [sp, #144]
	stp	q10, q11, [sp, #176]
	stp	q12, q13, [sp, #208]
	stp	q14, q15, [sp, #240]
	stp	q16, q17, [sp, #272]
	stp	q18, q19, [sp, #304]
	stp	q20, q21, [sp, #336]
	stp	q22, q23, [sp, #368]
	stp	q24, q25, [sp, #400]
	stp	q26, q27, [sp, #432]
	stp	q28, q29, [sp, #464]
	stp	q30, q31, [sp, #496]
	mov	x2, x0
	mov	x0, x1
	blr	x2
	ldp	q30, q31, [sp, #496]
	ldp	q28, q29, [sp, #464]
	ldp	q26, q27, [sp, #432]
	ldp	q24, q25, [sp, #400]
	ldp	q22, q23, [sp, #368]
	ldp	q20, q21, [sp, #336]
	ldp	q18, q19, [sp, #304]
	ldp	q16, q17, [sp, #272]
	ldp	q14, q15, [sp, #240]
	ldp	q12, q13, [sp, #208]
	ldp	q10, q11, [sp, #176]
	ldp	q8, q9, [sp, #144]
	ldp	q6, q7, [sp, #112]
	ldp	q4, q5, [sp, #80]
	ldp	q2, q3, [sp, #48]
	ldp	q0, q1, [sp, #16]
	ldp	x29, x30, [sp]
	add	sp, sp, #528
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size flexsc__vectors_around, . - flexsc__vectors_around

	.section .note.GNU-stack, "", %progbits
