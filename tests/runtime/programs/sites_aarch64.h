/* SPDX-License-Identifier: MIT */
/*
 * For sites.c: on aarch64 a system call changes only x0. The first 128 bits of each
 * vector register are preserved.
 */
enum vectors { NONE, ALL };

/* The assembler code below depends on the offsets. */
struct registers {
	/* of a system call, without the first: in x1 to x5 */
	uint64_t args[6];
	uint64_t kept[20];	/* x9 to x28 */
	uint8_t vector[32 * 16];
	uint64_t vectors;	/* enum vectors */
	uint64_t red_zone[1];	/* unused: aarch64 has none */
};

/*
 * Calls libc's syscall(nr, ...) with the registers "in", and stores the registers
 * afterwards in "out".
 */
long call_with(long (*function)(long, ...), long nr, const struct registers *in,
	       struct registers *out);

__asm__(".text\n"
	"call_with:\n"
	"	sub	sp, sp, #192\n"
	"	stp	x29, x30, [sp]\n"
	"	mov	x29, sp\n"
	"	stp	x19, x20, [sp, #16]\n"
	"	stp	x21, x22, [sp, #32]\n"
	"	stp	x23, x24, [sp, #48]\n"
	"	stp	x25, x26, [sp, #64]\n"
	"	stp	x27, x28, [sp, #80]\n"
	"	stp	d8, d9, [sp, #96]\n"
	"	stp	d10, d11, [sp, #112]\n"
	"	stp	d12, d13, [sp, #128]\n"
	"	stp	d14, d15, [sp, #144]\n"
	"	stp	x2, x3, [sp, #160]\n"
	"	mov	x8, x0\n"
	"	mov	x0, x1\n"
	"	mov	x7, x2\n"
	"	.irp	i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,"
	"16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	"	ldr	q\\i, [x7, #208 + 16 * \\i]\n"
	"	.endr\n"
	"	.irp	i, 9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28\n"
	"	ldr	x\\i, [x7, #48 + 8 * (\\i - 9)]\n"
	"	.endr\n"
	"	ldp	x1, x2, [x7]\n"
	"	ldp	x3, x4, [x7, #16]\n"
	"	ldp	x5, x6, [x7, #32]\n"
	"	blr	x8\n"
	"	ldp	x6, x7, [x29, #160]\n"
	"	.irp	i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,"
	"16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	"	str	q\\i, [x7, #208 + 16 * \\i]\n"
	"	.endr\n"
	"	.irp	i, 9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28\n"
	"	str	x\\i, [x7, #48 + 8 * (\\i - 9)]\n"
	"	.endr\n"
	"	ldr	x6, [x6]\n"
	"	stp	x6, x1, [x7]\n"
	"	stp	x2, x3, [x7, #16]\n"
	"	stp	x4, x5, [x7, #32]\n"
	"	ldp	x19, x20, [sp, #16]\n"
	"	ldp	x21, x22, [sp, #32]\n"
	"	ldp	x23, x24, [sp, #48]\n"
	"	ldp	x25, x26, [sp, #64]\n"
	"	ldp	x27, x28, [sp, #80]\n"
	"	ldp	d8, d9, [sp, #96]\n"
	"	ldp	d10, d11, [sp, #112]\n"
	"	ldp	d12, d13, [sp, #128]\n"
	"	ldp	d14, d15, [sp, #144]\n"
	"	ldp	x29, x30, [sp]\n"
	"	add	sp, sp, #192\n"
	"	ret\n");

_Static_assert(offsetof(struct registers, kept) == 48 &&
	       offsetof(struct registers, vector) == 208, "as in call_with");

static const size_t vector_bytes[] = { 0, sizeof(((struct registers *)0)->vector) };

static enum vectors vectors_there_are(void)
{
	return ALL;
}

static void prepare(struct registers *in)
{
	in->red_zone[0] = 0;
}

/* Has patching replaced the call by a jump? */
static bool is_patched(const uint8_t *code)
{
	return !memmem(code, 64, "\x01\0\0\xd4", 4);
}
