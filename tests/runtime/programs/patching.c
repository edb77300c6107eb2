/* SPDX-License-Identifier: MIT */
/*
 * Stand-ins for the functions of the runtime that the files for patching call. The
 * linker redirects the calls of two functions to this file, which counts them.
 */
#include "patching.h"

#include <Zydis/Zydis.h>

#include "lib/base/syscall.h"
#include "runtime/base/interpose.h"
#include "runtime/calls/perform.h"
#include "runtime/calls/hook.h"
#include "runtime/libc/libc.h"
#include "runtime/libc/x86_64/decoder.h"

#define EXPORTED	__attribute__((visibility("default")))

/* Patched places make plain system calls. */

static long plainly(long nr, const uint64_t args[6])
{
	return raw_syscall(nr, args[0], args[1], args[2], args[3], args[4],
			   args[5]);
}

long flexsc__perform_plainly(long nr, const uint64_t args[6])
{
	return plainly(nr, args);
}

long flexsc__perform_point(long nr, const uint64_t args[6])
{
	return plainly(nr, args);
}

long flexsc__hook_site(long nr, const uint64_t args[6])
{
	return plainly(nr, args);
}

long flexsc__hook_site_point(long nr, const uint64_t args[6])
{
	return plainly(nr, args);
}

bool flexsc__real_is_foreign_call(long nr)
{
	(void)nr;
	return false;
}

/* The linker has found Zydis. */
bool flexsc__decoder_loaded(char *why, size_t size)
{
	(void)why;
	(void)size;
	return true;
}

static struct patched patched;
static bool zydis_alone;

unsigned int __real_flexsc__length(const uint8_t *at, const uint8_t *end,
				   const uint8_t **target);
unsigned int __wrap_flexsc__length(const uint8_t *at, const uint8_t *end,
				   const uint8_t **target);
unsigned int __wrap_flexsc__length(const uint8_t *at, const uint8_t *end,
				   const uint8_t **target)
{
	patched.lengths++;
	return zydis_alone ? 0 : __real_flexsc__length(at, end, target);
}

ZyanStatus __real_ZydisDecoderDecodeFull(const ZydisDecoder *decoder,
					 const void *buffer, ZyanUSize length,
					 ZydisDecodedInstruction *instruction,
					 ZydisDecodedOperand *operands);
ZyanStatus __wrap_ZydisDecoderDecodeFull(const ZydisDecoder *decoder,
					 const void *buffer, ZyanUSize length,
					 ZydisDecodedInstruction *instruction,
					 ZydisDecodedOperand *operands);
ZyanStatus __wrap_ZydisDecoderDecodeFull(const ZydisDecoder *decoder,
					 const void *buffer, ZyanUSize length,
					 ZydisDecodedInstruction *instruction,
					 ZydisDecodedOperand *operands)
{
	patched.decoded++;
	return __real_ZydisDecoderDecodeFull(decoder, buffer, length,
					     instruction, operands);
}

EXPORTED struct patched patching_patch(bool deep, bool alone)
{
	char why[160];

	zydis_alone = alone;
	patched = (struct patched){ 0 };
	patched.places = flexsc__sites_patch(deep, why, sizeof(why));
	return patched;
}

EXPORTED unsigned int patching_length(const uint8_t *at, const uint8_t *end,
				      const uint8_t **target)
{
	return __real_flexsc__length(at, end, target);
}
