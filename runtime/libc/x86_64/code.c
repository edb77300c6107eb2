/* SPDX-License-Identifier: MIT */
/*
 * The functions of libc/code.h on x86-64. Only the instructions before a "syscall" are
 * replaced by a jump; the "syscall" itself stays.
 */
#include "runtime/libc/code.h"

#include <stdio.h>
#include <string.h>

#include "runtime/arch/vectors.h"
#include "runtime/arch/x86_64/length.h"
#include "decoder.h"

#define JUMP		5U	/* bytes of a jump instruction */

/* An instruction as Zydis sees it. */
struct view {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

bool flexsc__code_begin(struct code *code, char *why, size_t size)
{
	if (!flexsc__decoder_loaded(why, size))
		return false;
	ZydisDecoderInit(&code->decoder, ZYDIS_MACHINE_MODE_LONG_64,
			 ZYDIS_STACK_WIDTH_64);
	if (flexsc__vectors_probe())
		return true;
	snprintf(why, size, "the processor has no XSAVE");
	return false;
}

/* Decoding. */

static bool look_at(const struct code *code, const uint8_t *at,
		    struct view *view)
{
	const size_t size = (size_t)(code->function.end - at);

	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&code->decoder, at, size,
						   &view->in, view->ops));
}

static void note_target(struct function *f, const uint8_t *target)
{
	if (f->jumps < TARGETS_MAX)
		f->targets[f->jumps++] = target;
	else
		f->whole = false;
}

/* The length of an instruction that isn't in flexsc__length()'s table. */
static unsigned int decode_rare(struct code *code, const uint8_t *at)
{
	struct view view;

	if (!look_at(code, at, &view))
		return 1;
	for (unsigned int i = 0; i < view.in.operand_count; i++)
		if (view.ops[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    view.ops[i].imm.is_relative)
			note_target(&code->function,
				    at + view.in.length + view.ops[i].imm.value.s);
	return view.in.length;
}

static const uint8_t *decode_one(struct code *code, const uint8_t *at,
				 const uint8_t *end)
{
	struct function *f = &code->function;
	const uint8_t *target = NULL;
	unsigned int length = flexsc__length(at, end, &target);

	f->starts[f->count++] = (uint32_t)(at - f->begin);
	if (!length || length > (size_t)(f->end - at))
		return at + decode_rare(code, at);
	if (target)
		note_target(f, target);
	return at + length;
}

static void decode(struct code *code, const uint8_t *begin, const uint8_t *end,
		   const uint8_t *limit)
{
	struct function *f = &code->function;
	const uint8_t *at = begin;

	if (f->begin == begin)
		return;
	f->begin = begin;
	f->end = end;
	f->count = 0;
	f->jumps = 0;
	f->whole = true;
	while (at < f->end && f->count < FUNCTION_MAX)
		at = decode_one(code, at, limit);
	f->whole = f->whole && at >= f->end;
}

/* Finding. */

static const uint8_t *start_of(const struct function *f, unsigned int i)
{
	return f->begin + f->starts[i];
}

/* The index of the instruction at a place, or f->count if none begins there. */
static unsigned int index_of(const struct function *f, const uint8_t *at)
{
	unsigned int low = 0, high = f->count;

	while (high - low > 1) {
		unsigned int middle = (low + high) / 2;

		if (start_of(f, middle) <= at)
			low = middle;
		else
			high = middle;
	}
	return high && start_of(f, low) == at ? low : f->count;
}

bool flexsc__code_look(struct code *code, const uint8_t *begin, const uint8_t *end,
		       const uint8_t *limit, const uint8_t *call)
{
	decode(code, begin, end, limit);
	code->call = index_of(&code->function, call);
	/* If no instruction begins at "call", the bytes are part of another one. */
	return code->call != code->function.count;
}

static bool writes(const ZydisDecodedOperand *operand, ZydisRegister reg)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
	       ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						operand->reg.value) == reg;
}

static bool view_writes(const struct view *view, ZydisRegister reg)
{
	for (unsigned int i = 0; i < view->in.operand_count; i++)
		if (writes(&view->ops[i], reg))
			return true;
	return false;
}

static bool is_zero(const struct view *view)
{
	return view->in.mnemonic == ZYDIS_MNEMONIC_XOR &&
	       view->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       view->ops[0].reg.value == view->ops[1].reg.value;
}

/* The value that an instruction stores in eax, which it writes; or UNKNOWN. */
static long value_set(const struct view *view)
{
	if (view->in.mnemonic == ZYDIS_MNEMONIC_MOV &&
	    view->ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return (long)view->ops[1].imm.value.u;
	return is_zero(view) ? 0 : UNKNOWN;
}

/*
 * mov $value, %eax: this instruction sets the number of nearly every call, often right
 * before the "syscall". Recognised without Zydis, which would take longer.
 */
static bool is_mov_eax(const uint8_t *at)
{
	return *at == 0xb8;
}

/* Does instruction i write eax? *nr becomes the value, or UNKNOWN. */
static bool sets_number(const struct code *code, unsigned int i, long *nr)
{
	const uint8_t *at = start_of(&code->function, i);
	struct view view;
	int32_t value;

	if (is_mov_eax(at)) {
		memcpy(&value, at + 1, sizeof(value));
		*nr = value;
		return true;
	}
	*nr = UNKNOWN;
	if (!look_at(code, at, &view))
		return true;
	if (!view_writes(&view, ZYDIS_REGISTER_RAX))
		return false;
	*nr = value_set(&view);
	return true;
}

long flexsc__code_number(const struct code *code)
{
	const struct function *f = &code->function;
	unsigned int i = code->call;
	const uint8_t *call = start_of(f, i);
	long nr;

	do {
		if (!i--)
			return UNKNOWN;
	} while (!sets_number(code, i, &nr));
	for (unsigned int j = 0; j < f->jumps; j++)
		if (f->targets[j] > start_of(f, i) && f->targets[j] <= call)
			return UNKNOWN;
	return nr;
}

static bool is_branch(const struct view *view)
{
	switch (view->in.meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_INTERRUPT:
		return true;
	default:
		return false;
	}
}

/*
 * Does the instruction also work at another address? *relative: the offset of a
 * displacement in it that must be adapted, or 0.
 */
static bool moves(const struct code *code, const uint8_t *at, uint8_t *relative)
{
	struct view view;
	bool is_relative;

	*relative = 0;
	if (is_mov_eax(at))
		return true;
	if (!look_at(code, at, &view) || is_branch(&view))
		return false;
	is_relative = view.in.attributes & ZYDIS_ATTRIB_IS_RELATIVE;
	if (is_relative)
		*relative = view.in.raw.disp.offset;
	return is_relative == (*relative != 0) &&
	       (view.in.mnemonic == ZYDIS_MNEMONIC_SUB ||
		!view_writes(&view, ZYDIS_REGISTER_RSP));
}

/*
 * Is there room for a jump before the "syscall"? The instructions there must work in a
 * trampoline. No jump may lead to the "syscall", or to any of them but the first.
 */
bool flexsc__code_room(const struct code *code, struct site *site)
{
	const struct function *f = &code->function;
	unsigned int i = code->call;
	uint8_t *place = (uint8_t *)(uintptr_t)start_of(f, i);

	if (!f->whole)
		return false;
	*site = (struct site){ .end = place + CODE_CALL, .jump = place };
	while ((size_t)(place - site->jump) < JUMP) {
		uint8_t relative;

		if (!i)
			return false;
		site->jump = (uint8_t *)(uintptr_t)start_of(f, --i);
		if (!moves(code, site->jump, &relative) ||
		    (relative && site->relative))
			return false;
		if (relative)
			site->relative = site->jump + relative;
	}
	for (unsigned int j = 0; j < f->jumps; j++)
		if (f->targets[j] > site->jump && f->targets[j] < site->end)
			return false;
	return true;
}

/* Does the function begin by reading the word that rdi points to? */
static bool reads_first(const struct code *code)
{
	struct view view;

	return look_at(code, code->function.begin, &view) &&
	       view.in.mnemonic == ZYDIS_MNEMONIC_MOV &&
	       view.ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       view.ops[1].mem.base == ZYDIS_REGISTER_RDI &&
	       !view.ops[1].mem.disp.value;
}

/*
 * __syscall_cancel_arch() makes one call, whose number is an argument. It reads its
 * first argument, the state of the thread's cancellation, and jumps to another function
 * if the thread is cancelled.
 */
bool flexsc__code_is_point(const struct code *code)
{
	const struct function *f = &code->function;

	return f->jumps == 1 &&
	       (f->targets[0] < f->begin || f->targets[0] >= f->end) &&
	       reads_first(code);
}

/*
 * Searches for the second byte of a "syscall", which is rare in code, so that memchr()
 * takes a seventh of memmem()'s time.
 */
const uint8_t *flexsc__code_next(const uint8_t *at, const uint8_t *end)
{
	while (++at < end) {
		at = memchr(at, 0x05, (size_t)(end - at));
		if (!at)
			return NULL;
		if (at[-1] == 0x0f)
			return at - 1;
	}
	return NULL;
}

/* Patching. */

static bool reachable(const uint8_t *from, const uint8_t *to)
{
	int64_t distance = to - from;

	return distance > INT32_MIN + 64 && distance < INT32_MAX - 64;
}

/* A relative instruction that moves to the trampoline must reach its operand, too. */
bool flexsc__code_reaches(const struct site *site, const uint8_t *trampolines)
{
	int32_t distance = 0;

	if (site->relative)
		memcpy(&distance, site->relative, sizeof(distance));
	return reachable(site->jump, trampolines) &&
	       reachable(site->jump + distance, trampolines);
}

/* Write a jump at "at". Returns the jump's end. */
static uint8_t *put_jump(uint8_t *at, const uint8_t *to)
{
	int32_t distance = (int32_t)(to - (at + JUMP));

	*at = 0xe9;
	memcpy(at + 1, &distance, sizeof(distance));
	return at + JUMP;
}

static void move_distance(uint8_t *at, ptrdiff_t by)
{
	int32_t distance;

	memcpy(&distance, at, sizeof(distance));
	distance += (int32_t)by;
	memcpy(at, &distance, sizeof(distance));
}

void flexsc__code_fill(const struct site *site, uint32_t number, uint8_t *trampoline,
		       const uint8_t *common)
{
	const size_t moved = (size_t)(site->end - CODE_CALL - site->jump);
	uint8_t *at = trampoline;

	memcpy(at, site->jump, moved);
	if (site->relative)
		move_distance(at + (site->relative - site->jump),
			      site->jump - trampoline);
	at += moved;
	*at++ = 0xb9;
	memcpy(at, &number, sizeof(number));
	at += sizeof(number);
	put_jump(at, common);
}

void flexsc__code_patch(const struct site *site, const uint8_t *trampoline)
{
	uint8_t *end = put_jump(site->jump, trampoline);

	/* Never executed; nops keep disassemblies readable. */
	memset(end, 0x90, (size_t)(site->end - CODE_CALL - end));
}
