/* SPDX-License-Identifier: MIT */
#include "length.h"

#include <stdbool.h>
#include <string.h>

#define LONGEST		15	/* bytes of any instruction */
#define PREFIXES	3	/* with more prefixes, the look-up fails */

/* What follows an opcode. */
enum {
	MODRM = 1,	/* a ModRM byte, perhaps with SIB and displacement */
	BYTE = 2,	/* an immediate value of a byte */
	FULL = 4,	/* an immediate value of 4 bytes, or 2 with prefix 66 */
	JUMP = 8,	/* the value is the distance of a jump or call */
	TEST = 16,	/* the value follows only if ModRM's reg field is 0 or 1 */
	BARE = 32,	/* not in the table unless ModRM's reg field is 0 */
	WIDE = 64,	/* the value has 8 bytes with REX.W */
	UNLISTED = 128,	/* not in the table; also for prefixes, REX and 0f */
};

static const uint8_t traits[] = {
	['-'] = UNLISTED,
	['.'] = 0,
	['m'] = MODRM,
	['b'] = BYTE,
	['z'] = FULL,
	['v'] = FULL | WIDE,
	['B'] = MODRM | BYTE,
	['Z'] = MODRM | FULL,
	['0'] = MODRM | BYTE | BARE,
	['4'] = MODRM | FULL | BARE,
	['T'] = MODRM | BYTE | TEST,
	['U'] = MODRM | FULL | TEST,
	['j'] = BYTE | JUMP,
	['J'] = FULL | JUMP,
	['p'] = UNLISTED,
	['r'] = UNLISTED,
	['e'] = UNLISTED,
};

static const char opcodes[256 + 1] =
	"mmmmbz--mmmmbz-e" "mmmmbz--mmmmbz--" "mmmmbzp-mmmmbzp-" "mmmmbzp-mmmmbzp-"
	"rrrrrrrrrrrrrrrr" "................" "---mppp-zZbB----" "jjjjjjjjjjjjjjjj"
	"BZ-Bmmmmmmmm-m--" "..........-....." "----....bz......" "bbbbbbbbvvvvvvvv"
	"BB-.--04-.--.---" "mmmm----mmmmmmmm" "jjjj----JJ-j----" "p-pp..TU......mm";

/* Opcodes behind 0f. */
static const char second[256 + 1] =
	"-----.-----.-m--" "mmmmmmmmmmmmmmmm" "--------mmmmmmmm" "-.--------------"
	"mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm" "BBBBmmm.------mm"
	"JJJJJJJJJJJJJJJJ" "mmmmmmmmmmmmmmmm" "--.mBm-----mBmmm" "mm-m--mm--Bmmmmm"
	"mmBmBBBm........" "mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmm-";

/* Bytes of ModRM, SIB and displacement. */
static unsigned int modrm(const uint8_t *at)
{
	const unsigned int mod = at[0] >> 6, rm = at[0] & 7;
	const unsigned int sib = (rm == 4) & (mod != 3);
	const unsigned int base = sib ? at[1] & 7 : rm;

	return 1 + sib + (mod == 1) +
	       4 * ((mod == 2) | ((mod == 0) & (base == 5)));
}

static int64_t distance_of(const uint8_t *at, unsigned int size)
{
	int32_t distance;

	memcpy(&distance, at, sizeof(distance));
	return size == 1 ? (int8_t)distance : distance;
}

unsigned int flexsc__length(const uint8_t *at, const uint8_t *end,
			    const uint8_t **target)
{
	const uint8_t *next = at;
	bool word = false, wide = false;
	unsigned int has, size = 0;
	char row;

	if (end - at < LONGEST)
		return 0;
	while ((row = opcodes[*next++]) == 'p') {
		word |= next[-1] == 0x66;
		if (next - at > PREFIXES)
			return 0;
	}
	if (row == 'r') {
		wide = next[-1] & 8;
		row = opcodes[*next++];
	}
	if (row == 'e')
		row = second[*next++];
	has = traits[(uint8_t)row];
	if (has & UNLISTED || (has & BARE && *next & 0x38))
		return 0;
	if (has & TEST && *next & 0x30)
		has = MODRM;
	if (has & MODRM)
		next += modrm(next);
	if (has & BYTE)
		size = 1;
	else if (has & WIDE && wide)
		size = 8;
	else if (has & FULL)
		size = word && !wide ? 2 : 4;
	if (has & JUMP) {
		/* Processors differ in what prefix 66 does to a jump. */
		if (word)
			return 0;
		*target = next + size + distance_of(next, size);
	}
	return (unsigned int)(next - at) + size;
}
