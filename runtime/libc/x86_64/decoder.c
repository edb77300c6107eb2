/* SPDX-License-Identifier: MIT */
/*
 * Loads Zydis, the instruction decoder, at run time. If Zydis were linked, no program
 * would start where it is missing: on another release of the system, or after a change
 * of the root folder. Without Zydis, libc isn't patched. The functions here call Zydis'
 * functions of the same names. They run before there are threads.
 */
#include "decoder.h"

#include <Zydis/Zydis.h>
#include <dlfcn.h>
#include <stdio.h>

static void *library;
static __typeof__(&ZydisDecoderInit) init;
static __typeof__(&ZydisDecoderDecodeFull) decode_full;
static __typeof__(&ZydisRegisterGetLargestEnclosing) largest_enclosing;

static void decoder_name(char *name, size_t size)
{
	snprintf(name, size, "libZydis.so.%u.%u",
		 (unsigned int)ZYDIS_VERSION_MAJOR(ZYDIS_VERSION),
		 (unsigned int)ZYDIS_VERSION_MINOR(ZYDIS_VERSION));
}

/*
 * Load Zydis before main(), because the program may change its root before its first
 * thread.
 */
__attribute__((constructor)) static void decoder_open(void)
{
	char name[32];

	decoder_name(name, sizeof(name));
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		dlerror();
		return;
	}
	init = dlsym(library, "ZydisDecoderInit");
	decode_full = dlsym(library, "ZydisDecoderDecodeFull");
	largest_enclosing = dlsym(library, "ZydisRegisterGetLargestEnclosing");
}

bool flexsc__decoder_loaded(char *why, size_t size)
{
	char name[32];

	if (library)
		return true;
	decoder_name(name, sizeof(name));
	snprintf(why, size, "%s is missing", name);
	return false;
}

ZyanStatus ZydisDecoderInit(ZydisDecoder *decoder, ZydisMachineMode mode,
			    ZydisStackWidth width)
{
	return init(decoder, mode, width);
}

ZyanStatus ZydisDecoderDecodeFull(const ZydisDecoder *decoder,
				  const void *buffer, ZyanUSize length,
				  ZydisDecodedInstruction *instruction,
				  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT])
{
	return decode_full(decoder, buffer, length, instruction, operands);
}

ZydisRegister ZydisRegisterGetLargestEnclosing(ZydisMachineMode mode,
					       ZydisRegister reg)
{
	return largest_enclosing(mode, reg);
}
