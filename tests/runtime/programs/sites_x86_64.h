/* SPDX-License-Identifier: MIT */
/*
 * For sites.c: on x86-64 a system call changes only rax, rcx and r11, and leaves the red
 * zone alone.
 */
#define RED_ZONE	16	/* words */
#define AVX_BYTES	(16 * 32)
#define AVX512_BYTES	(32 * 64 + 8 * 8)

enum vectors { NONE, AVX, AVX512 };

/* The assembler code below depends on the offsets. */
struct registers {
	uint64_t red_zone[RED_ZONE];
	uint64_t args[6];	/* of a system call: in rdi, rsi, rdx, r10, r8, r9 */
	uint64_t kept[4];	/* preserved by functions: rbx, r13, r14, r15 */
	/* enum vectors: the contents of the next member */
	uint64_t vectors;
	uint8_t vector[AVX512_BYTES];
};

/*
 * Calls libc's syscall(nr, ...) with the registers "in", and stores the registers
 * afterwards in "out". That function has no frame. So the red zone of the place
 * where it makes the system call is below its return address.
 */
long call_with(long (*function)(long, ...), long nr, const struct registers *in,
	       struct registers *out);

#define EACH_32		"0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19," \
			"20,21,22,23,24,25,26,27,28,29,30,31"

__asm__(".text\n"
	"call_with:\n"
	"	pushq	%rbp\n"
	"	movq	%rsp, %rbp\n"
	"	pushq	%rbx\n"
	"	pushq	%r12\n"
	"	pushq	%r13\n"
	"	pushq	%r14\n"
	"	pushq	%r15\n"
	"	pushq	%rcx\n"		/* -48(%rbp): out */
	"	pushq	%rdi\n"		/* -56(%rbp): the function */
	"	pushq	%rsi\n"		/* -64(%rbp): nr */
	"	subq	$256, %rsp\n"
	"	andq	$-16, %rsp\n"
	"	movq	%rdx, %r12\n"
	"	movq	168(%r12), %rax\n"
	"	movq	%rax, (%rsp)\n"
	"	.irp	i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movq	8*\\i(%r12), %rax\n"
	"	movq	%rax, 8*\\i - 136(%rsp)\n"
	"	.endr\n"
	"	cmpq	$1, 208(%r12)\n"
	"	jb	2f\n"
	"	je	1f\n"
	"	.irp	i, " EACH_32 "\n"
	"	vmovdqu64 216 + 64*\\i(%r12), %zmm\\i\n"
	"	.endr\n"
	"	.irp	i, 0,1,2,3,4,5,6,7\n"
	"	kmovw	2264 + 8*\\i(%r12), %k\\i\n"
	"	.endr\n"
	"	jmp	2f\n"
	"1:	.irp	i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	vmovdqu	216 + 32*\\i(%r12), %ymm\\i\n"
	"	.endr\n"
	"2:	movq	-64(%rbp), %rdi\n"
	"	movq	128(%r12), %rsi\n"
	"	movq	136(%r12), %rdx\n"
	"	movq	144(%r12), %rcx\n"
	"	movq	152(%r12), %r8\n"
	"	movq	160(%r12), %r9\n"
	"	movq	176(%r12), %rbx\n"
	"	movq	184(%r12), %r13\n"
	"	movq	192(%r12), %r14\n"
	"	movq	200(%r12), %r15\n"
	"	call	*-56(%rbp)\n"
	"	movq	-48(%rbp), %rcx\n"
	"	movq	%rdi, 128(%rcx)\n"
	"	movq	%rsi, 136(%rcx)\n"
	"	movq	%rdx, 144(%rcx)\n"
	"	movq	%r10, 152(%rcx)\n"
	"	movq	%r8, 160(%rcx)\n"
	"	movq	%r9, 168(%rcx)\n"
	"	movq	%rbx, 176(%rcx)\n"
	"	movq	%r13, 184(%rcx)\n"
	"	movq	%r14, 192(%rcx)\n"
	"	movq	%r15, 200(%rcx)\n"
	"	movq	208(%r12), %rdx\n"
	"	movq	%rdx, 208(%rcx)\n"
	"	.irp	i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movq	8*\\i - 136(%rsp), %rsi\n"
	"	movq	%rsi, 8*\\i(%rcx)\n"
	"	.endr\n"
	"	cmpq	$1, %rdx\n"
	"	jb	4f\n"
	"	je	3f\n"
	"	.irp	i, " EACH_32 "\n"
	"	vmovdqu64 %zmm\\i, 216 + 64*\\i(%rcx)\n"
	"	.endr\n"
	"	.irp	i, 0,1,2,3,4,5,6,7\n"
	"	kmovw	%k\\i, 2264 + 8*\\i(%rcx)\n"
	"	.endr\n"
	"	vzeroupper\n"
	"	jmp	4f\n"
	"3:	.irp	i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	vmovdqu	%ymm\\i, 216 + 32*\\i(%rcx)\n"
	"	.endr\n"
	"	vzeroupper\n"
	"4:	leaq	-40(%rbp), %rsp\n"
	"	popq	%r15\n"
	"	popq	%r14\n"
	"	popq	%r13\n"
	"	popq	%r12\n"
	"	popq	%rbx\n"
	"	popq	%rbp\n"
	"	ret\n");

_Static_assert(offsetof(struct registers, args) == 128 &&
	       offsetof(struct registers, kept) == 176 &&
	       offsetof(struct registers, vectors) == 208 &&
	       offsetof(struct registers, vector) == 216, "as in call_with");

static const size_t vector_bytes[] = { 0, AVX_BYTES, AVX512_BYTES };

static enum vectors vectors_there_are(void)
{
	if (__builtin_cpu_supports("avx512f"))
		return AVX512;
	return __builtin_cpu_supports("avx") ? AVX : NONE;
}

/* The upper bits of the masks need AVX-512BW. */
static void prepare(struct registers *in)
{
	for (int i = 0; i < 8; i++)
		memset(&in->vector[32 * 64 + 8 * i + 2], 0, 6);
}

/* Has patching replaced the last instruction before the call by a jump? */
static bool is_patched(const uint8_t *code)
{
	const uint8_t *call = memmem(code, 64, "\x0f\x05", 2);

	CHECK(call != NULL);
	return memchr(code, 0xe9, (size_t)(call - code));
}
