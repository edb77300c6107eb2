/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "jumps.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/raw/loop.h"

#ifdef __x86_64__
/*
 * A line of the chain; all lines have the same bytes. Step x is followed by
 * step factor * x + 1 modulo 2^bits, which visits all steps if factor - 1 is a
 * multiple of 4 (Hull and Dobell, SIAM Review 4, 1962). The line of step x is x
 * * chained / 2^bits. The arguments stay in the registers that a call passes
 * them in: lines in rdi, x in esi, factor in edx, bits in ecx, 2^bits - 1 in
 * r8d, chained in r9d. The last step is followed by 0.
 */
__asm__(".pushsection .rodata\n"
	"bench_jump:\n\t"
	"imul	%edx, %esi\n\t"
	"inc	%esi\n\t"
	"and	%r8d, %esi\n\t"
	"jz	1f\n\t"
	"mov	%esi, %eax\n\t"
	"imul	%r9d, %eax\n\t"
	"shr	%cl, %eax\n\t"
	"shl	$6, %eax\n\t"
	"add	%rdi, %rax\n\t"
	"jmp	*%rax\n"
	"1:\n\t"
	"ret\n"
	"bench_jump_end:\n\t"
	".popsection");
extern const char bench_jump[], bench_jump_end[];

typedef void jump_fn(char *lines, uint32_t x, uint32_t factor, uint32_t bits,
		     uint32_t mask, uint32_t chained);

/* A nop of eight bytes, as recommended in Intel's and AMD's manuals. */
static const char nop[8] = "\x0f\x1f\x84\0\0\0\0";
static const char ret = '\xc3';

static void make_code(struct bench_jumps *jumps, size_t lines)
{
	char *line = jumps->memory;

	for (uint32_t i = 0; i < jumps->chained; i++, line += BENCH_JUMPS_LINE)
		memcpy(line, bench_jump, (size_t)(bench_jump_end - bench_jump));
	jumps->end = line + lines * BENCH_JUMPS_LINE;
	for (; line < jumps->end; line += sizeof(nop))
		memcpy(line, nop, sizeof(nop));
	*line = ret;
}

int bench_jumps_init(struct bench_jumps *jumps, size_t chained, size_t lines)
{
	*jumps = (struct bench_jumps){
		.size = (chained + lines + 1) * BENCH_JUMPS_LINE,
		.chained = (uint32_t)chained,
		.chance = 1,
	};
	while (1UL << jumps->bits < chained)
		jumps->bits++;
	jumps->memory = mmap(NULL, jumps->size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (jumps->memory == MAP_FAILED) {
		jumps->memory = NULL;
		return -errno;
	}
	make_code(jumps, lines);
	if (mprotect(jumps->memory, jumps->size, PROT_READ | PROT_EXEC)) {
		int err = -errno;

		bench_jumps_fini(jumps);
		return err;
	}
	return 0;
}

void bench_jumps_follow(struct bench_jumps *jumps)
{
	uint32_t mask = (1U << jumps->bits) - 1;
	uint32_t factor = 4 * (uint32_t)bench_random(&jumps->chance) + 1;
	jump_fn *first;

	memcpy(&first, &jumps->memory, sizeof(first));
	first(jumps->memory, 0, factor & mask, jumps->bits, mask,
	      jumps->chained);
}

void bench_jumps_execute(const struct bench_jumps *jumps, size_t lines)
{
	char *begin = jumps->end - lines * BENCH_JUMPS_LINE;
	void (*function)(void);

	memcpy(&function, &begin, sizeof(function));
	function();
}
#else
int bench_jumps_init(struct bench_jumps *jumps, size_t chained, size_t lines)
{
	(void)chained;
	(void)lines;
	*jumps = (struct bench_jumps){ .memory = NULL };
	return -ENOSYS;
}

void bench_jumps_follow(struct bench_jumps *jumps)
{
	(void)jumps;
}

void bench_jumps_execute(const struct bench_jumps *jumps, size_t lines)
{
	(void)jumps;
	(void)lines;
}
#endif

void bench_jumps_fini(struct bench_jumps *jumps)
{
	if (jumps->memory)
		munmap(jumps->memory, jumps->size);
	jumps->memory = NULL;
}
