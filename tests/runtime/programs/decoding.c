/* SPDX-License-Identifier: MIT */
/*
 * The cost of finding and patching the system calls in libc, and the lengths of
 * instructions. patching.c builds the runtime's files for patching without the rest
 * of the runtime.
 */
#include <Zydis/Zydis.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/harness.h"
#include "patching.h"

/* The text of an object, and its functions. */
struct text {
	const uint8_t *begin, *end;
	const uint8_t *header;		/* .eh_frame_hdr */
};

static bool text_of(const struct dl_phdr_info *info, struct text *text)
{
	*text = (struct text){ 0 };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const uint8_t *at = (uint8_t *)info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_GNU_EH_FRAME) {
			text->header = at;
		} else if (ph->p_type == PT_LOAD && ph->p_flags & PF_X) {
			text->begin = at;
			text->end = at + ph->p_memsz;
		}
	}
	return text->begin && text->header &&
	       !memcmp(text->header, "\x01\x1b\x03\x3b", 4);
}

static bool is_libc(const char *path)
{
	return strstr(path, "/libc.so.") || strstr(path, "/ld-linux");
}

static int add_size(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct text text;

	(void)size;
	if (is_libc(info->dlpi_name) && text_of(info, &text))
		*(size_t *)arg += (size_t)(text.end - text.begin);
	return 0;
}

/* Counts the executable mappings of libc and of the loader. */
static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	CHECK(maps != NULL);
	while (fgets(line, sizeof(line), maps))
		n += is_libc(line) && strstr(line, " r-xp ");
	fclose(maps);
	return n;
}

/* The first thread that a program creates waits for this decoding. */
TEST(few_instructions_are_decoded_to_patch_libc)
{
	const struct patched patched = patching_patch(false, false);
	size_t bytes = 0;

	dl_iterate_phdr(add_size, &bytes);
	test_note("%zu bytes, %u instructions, of which Zydis decoded %u", bytes,
		  patched.lengths, patched.decoded);
	CHECK(patched.places > 0);
	CHECK(patched.lengths > 0 && patched.lengths <= bytes / 40);
	CHECK(patched.decoded > 0 && patched.decoded <= 600);
}

/*
 * Other permissions for a part of a mapping would cost calls of mprotect(), and
 * would split the mapping for good.
 */
TEST(patching_splits_no_mapping)
{
	CHECK_EQ(mappings(), 2);
	CHECK(patching_patch(true, false).places > 0);
	CHECK_EQ(mappings(), 2);
}

/* Compare libc's text after patching. */

static int add_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64_t *hash = arg;
	struct text text;

	(void)size;
	if (!is_libc(info->dlpi_name) || !text_of(info, &text))
		return 0;
	for (const uint8_t *at = text.begin; at < text.end; at++)
		*hash = (*hash ^ *at) * 0x100000001b3;
	return 0;
}

/* A child patches its libc. Both children have all objects at the same addresses. */
static uint64_t hash_patched(bool deep, bool alone)
{
	uint64_t hash = 0xcbf29ce484222325;
	int fds[2], child;

	CHECK_EQ(pipe(fds), 0);
	child = test_fork();
	if (!child) {
		CHECK(patching_patch(deep, alone).places > 0);
		dl_iterate_phdr(add_text, &hash);
		CHECK_EQ(write(fds[1], &hash, sizeof(hash)), sizeof(hash));
		test_leave();
	}
	close(fds[1]);
	CHECK_EQ(read(fds[0], &hash, sizeof(hash)), sizeof(hash));
	close(fds[0]);
	test_reap(child);
	return hash;
}

TEST(the_same_places_are_patched_if_zydis_decodes_all)
{
	CHECK(hash_patched(false, false) == hash_patched(false, true));
	CHECK(hash_patched(true, false) == hash_patched(true, true));
	CHECK(hash_patched(true, false) != hash_patched(false, false));
}

/* The lengths of instructions. */

struct compared {
	ZydisDecoder decoder;
	unsigned long all, unknown;
};

static const uint8_t *target_of(const uint8_t *at,
				const ZydisDecodedInstruction *in,
				const ZydisDecodedOperand *ops)
{
	for (unsigned int i = 0; i < in->operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    ops[i].imm.is_relative)
			return at + in->length + ops[i].imm.value.s;
	return NULL;
}

/* Returns the length that Zydis finds; 1 if it finds no instruction. */
static unsigned int compare_one(struct compared *c, const uint8_t *at,
				const uint8_t *end, const uint8_t *last)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	const uint8_t *target = NULL;
	unsigned int length = patching_length(at, last, &target);

	c->all++;
	c->unknown += !length;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&c->decoder, at,
						 (ZyanUSize)(end - at), &in,
						 ops)))
		return 1;
	if (length) {
		CHECK_EQ(length, in.length);
		CHECK(target == target_of(at, &in, ops));
	}
	return in.length;
}

static int compare_all(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct compared *c = arg;
	struct text text;
	uint32_t count;

	(void)size;
	if (!text_of(info, &text))
		return 0;
	memcpy(&count, text.header + 8, sizeof(count));
	for (uint32_t i = 0; i < count; i++) {
		const int32_t *row = (const int32_t *)(text.header + 12) + 2 * i;
		const uint8_t *at = text.header + row[0], *end = text.end;

		if (i + 1 < count)
			end = text.header + row[2];
		while (at < end)
			at += compare_one(c, at, end, text.end);
	}
	return 0;
}

TEST(lengths_are_those_that_zydis_finds)
{
	struct compared c = { 0 };

	ZydisDecoderInit(&c.decoder, ZYDIS_MACHINE_MODE_LONG_64,
			 ZYDIS_STACK_WIDTH_64);
	dl_iterate_phdr(compare_all, &c);
	test_note("%lu instructions, %lu left to Zydis", c.all, c.unknown);
	CHECK(c.all > 100000);
	CHECK(c.unknown < c.all / 10);
}
