/* SPDX-License-Identifier: MIT */
/*
 * The functions of libc/code.h on aarch64. All instructions have 4 bytes, so the "svc"
 * itself is replaced by a jump, and needs no room before it.
 */
#include "runtime/libc/code.h"

#include <string.h>

#include "runtime/libc/libc.h"

#define SVC		0xd4000001U	/* svc #0 */
#define NUMBER		8U	/* x8 has the call's number */
#define REACH		(128 << 20)	/* bytes that a jump reaches in each direction */
#define RANGE		4096	/* a margin at both ends of REACH, not used */

bool flexsc__code_begin(struct code *code, char *why, size_t size)
{
	(void)code;
	(void)why;
	(void)size;
	return true;
}

const uint8_t *flexsc__code_next(const uint8_t *at, const uint8_t *end)
{
	const uint32_t *word = (const uint32_t *)(((uintptr_t)at + 3) & ~(uintptr_t)3);

	for (; word + 1 <= (const uint32_t *)end; word++)
		if (*word == SVC)
			return (const uint8_t *)word;
	return NULL;
}

bool flexsc__code_look(struct code *code, const uint8_t *begin, const uint8_t *end,
		       const uint8_t *limit, const uint8_t *call)
{
	(void)limit;
	*code = (struct code){ (const uint32_t *)begin, (const uint32_t *)end,
			       (const uint32_t *)call };
	return true;
}

/* The signed value of a field of an instruction. */
static int64_t field(uint32_t in, unsigned int low, unsigned int bits)
{
	return (int64_t)((uint64_t)in << (64 - bits - low)) >> (64 - bits);
}

/* The target of a jump within a function, or NULL. */
static const uint32_t *target_of(const uint32_t *at)
{
	uint32_t in = *at;

	if ((in & 0xfc000000) == 0x14000000)		/* b */
		return at + field(in, 0, 26);
	if ((in & 0xff000000) == 0x54000000 ||		/* b.cond, bc.cond */
	    (in & 0x7e000000) == 0x34000000)		/* cbz, cbnz */
		return at + field(in, 5, 19);
	if ((in & 0x7e000000) == 0x36000000)		/* tbz, tbnz */
		return at + field(in, 5, 14);
	return NULL;
}

/* Does a jump lead to an instruction after "from", at most to "to"? */
static bool is_target(const struct code *code, const uint32_t *from, const uint32_t *to)
{
	for (const uint32_t *at = code->begin; at < code->end; at++) {
		const uint32_t *target = target_of(at);

		if (target && target > from && target <= to)
			return true;
	}
	return false;
}

/*
 * Might the instruction write x8? Compares the fields that may name a register to be
 * written, so some instructions that only read x8 count, too. Also true for a call of a
 * function, which may write x8.
 */
static bool may_write_number(uint32_t in)
{
	return (in & 31) == NUMBER || (in >> 5 & 31) == NUMBER ||
	       (in >> 10 & 31) == NUMBER || (in & 0xfc000000) == 0x94000000 ||
	       (in & 0xfffffc1f) == 0xd63f0000;
}

long flexsc__code_number(const struct code *code)
{
	const uint32_t *at = code->call;

	do {
		if (at == code->begin)
			return UNKNOWN;
	} while (!may_write_number(*--at));
	/* mov x8 or w8, #value */
	if ((*at & 0x7fe0001f) != (0x52800000 | NUMBER) || is_target(code, at, code->call))
		return UNKNOWN;
	return *at >> 5 & 0xffff;
}

bool flexsc__code_is_point(const struct code *code)
{
	const uint32_t *at = code->begin;

	/* bti c */
	if (*at == 0xd503245f)
		at++;
	/* The function reads its argument, the state of cancellation: ldr w0, [x0] */
	return (*at & 0xbffffc00) == 0xb9400000 && (*at >> 5 & 31) == 0;
}

bool flexsc__code_room(const struct code *code, struct site *site)
{
	uint8_t *place = (uint8_t *)(uintptr_t)code->call;

	*site = (struct site){ .jump = place, .end = place + CODE_CALL };
	return true;
}

bool flexsc__code_reaches(const struct site *site, const uint8_t *trampolines)
{
	int64_t first = trampolines - site->jump;
	int64_t last = first + TRAMPOLINES * TRAMPOLINE;

	return first > RANGE - REACH && last < REACH - RANGE;
}

static uint32_t jump_between(const void *from, const void *to, uint32_t op)
{
	const int64_t distance = (const uint32_t *)to - (const uint32_t *)from;

	return op | ((uint32_t)distance & 0x03ffffff);
}

#define B		0x14000000U
#define BL		0x94000000U

void flexsc__code_fill(const struct site *site, uint32_t number, uint8_t *trampoline,
		       const uint8_t *common)
{
	uint32_t *to = (uint32_t *)(uintptr_t)trampoline;
	const uint32_t code[] = {
		0xa9b47bfd,			/* stp x29, x30, [sp, #-192]! */
		0xa90147f0,			/* stp x16, x17, [sp, #16] */
		0x52800010 | number << 5,	/* mov w16, #number */
		jump_between(to + 3, common, BL),
		0xa94147f0,			/* ldp x16, x17, [sp, #16] */
		0xa8cc7bfd,			/* ldp x29, x30, [sp], #192 */
		jump_between(to + 6, site->end, B),
	};

	memcpy(to, code, sizeof(code));
	__builtin___clear_cache((char *)to, (char *)to + sizeof(code));
}

void flexsc__code_patch(const struct site *site, const uint8_t *trampoline)
{
	uint32_t *at = (uint32_t *)(uintptr_t)site->jump;

	*at = jump_between(at, trampoline, B);
	__builtin___clear_cache((char *)at, (char *)(at + 1));
}
