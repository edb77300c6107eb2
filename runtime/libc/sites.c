/* SPDX-License-Identifier: MIT */
/*
 * The places inside libc and the dynamic loader that make system calls. They are found
 * by decoding the functions that contain them, and patched in memory so that their
 * calls reach the hook. Only the instructions before a "syscall" are replaced, by a
 * jump to a trampoline (x86_64/trampolines.S); the "syscall" itself stays. Runs before
 * there are threads, except for flexsc__site_hook().
 */
#include "libc.h"

#include <Zydis/Zydis.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/syscall.h"
#include "lib/calls/call_info.h"
#include "runtime/arch/x86_64/length.h"
#include "runtime/arch/x86_64/vectors.h"
#include "runtime/base/interpose.h"
#include "runtime/base/objects.h"
#include "runtime/calls/hook.h"
#include "runtime/calls/perform.h"
#include "runtime/sched/uthread.h"

#define JUMP		5U	/* bytes of a jump instruction */
#define TRAMPOLINE	32U	/* bytes */
#define TRAMPOLINES	(4096U * 6 / TRAMPOLINE)
#define UNKNOWN		(-1L)	/* the code doesn't show the call's number */
#define FUNCTION_MAX	8192U	/* instructions of a function */
#define TARGETS_MAX	4096U
#define OBJECTS_MAX	4U	/* libc and the loader */

/* Used by libc/x86_64/trampolines.S. */
extern uint8_t flexsc__trampolines[];
void flexsc__trampoline_common(void);
long flexsc__site_hook(long nr, const uint64_t args[6], uint32_t site);

uint8_t *flexsc__trampoline_returns[TRAMPOLINES];

/*
 * The place where libc makes all cancellation points, from glibc 2.41 on: in
 * __syscall_cancel_arch(). Older versions switch to asynchronous cancellation around
 * each such call, wherever it is.
 */
#define NO_SITE	TRAMPOLINES
static uint32_t point_site = NO_SITE;

static bool all_calls;
/*
 * Are all of libc's places patched that change signal masks? If not, the hook gets none
 * of these calls, because one place restores what another has saved.
 */
static bool all_masks;

/* Must the runtime see this call in order to work at all? */
static bool is_vital(long nr)
{
	return flexsc__call_info((unsigned int)nr)->traits & CALL_VITAL;
}

/*
 * Does the call make or change descriptors (lib/files/fds.h), or does it concern the
 * thread itself?
 */
bool flexsc__sites_need(long nr)
{
	return flexsc__call_info((unsigned int)nr)->traits & CALL_SITE;
}

/*
 * As flexsc__sites_need(); or another library, which may call libc, has its function.
 */
static bool call_is_needed(long nr)
{
	return flexsc__sites_need(nr) || flexsc__real_is_foreign_call(nr);
}

/*
 * Make a call that the hook doesn't need. libc's cancellation handler ends a call only
 * at libc's own "syscall" instruction, which no longer makes it. So a cancellation
 * point needs flexsc__perform_point().
 */
static long unseen(long nr, const uint64_t args[6], bool point)
{
	return point ? flexsc__perform_point(nr, args) :
		       flexsc__perform_plainly(nr, args);
}

long flexsc__site_hook(long nr, const uint64_t args[6], uint32_t site)
{
	bool point = site == point_site;

	if ((all_calls || is_vital(nr) || call_is_needed(nr)) &&
	    (nr != SYS_rt_sigprocmask || all_masks))
		return point ? flexsc__hook_site_point(nr, args) :
			       flexsc__hook_site(nr, args);
	return unseen(nr, args, point);
}

/* A row of .eh_frame_hdr's table: offsets from the header's beginning. */
struct start {
	int32_t function, description;
};

struct object {
	const uint8_t *text, *end;
	const uint8_t *header;		/* its .eh_frame_hdr */
	const struct start *starts;	/* its table of functions, sorted */
	uint32_t count;
};

/* The function that was decoded last. It may have several places. */
struct function {
	const uint8_t *begin, *end;
	uint32_t starts[FUNCTION_MAX];	/* offsets of its instructions */
	const uint8_t *targets[TARGETS_MAX];
	unsigned int count, jumps;
	bool whole;
};

/* An instruction as Zydis sees it. */
struct view {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

/* A place to be patched. */
struct site {
	uint8_t *jump;		/* address that the jump is written to */
	uint8_t *syscall;
	uint8_t *relative;	/* a displacement to be adapted, or NULL */
	bool point;		/* it is libc's place for cancellation points */
};

struct patch {
	ZydisDecoder decoder;
	struct function function;
	struct site sites[TRAMPOLINES];
	struct object objects[OBJECTS_MAX];
	unsigned int count, objects_count;
	bool deep;
	char *why;
	size_t size;
};

static bool fail(struct patch *patch, const char *what, const void *where)
{
	snprintf(patch->why, patch->size, "%s at %p", what, where);
	return false;
}

/* Decoding. */

static bool look_at(const struct patch *patch, const uint8_t *at,
		    struct view *view)
{
	const size_t size = (size_t)(patch->function.end - at);

	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&patch->decoder, at, size,
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
static unsigned int decode_rare(struct patch *patch, const uint8_t *at)
{
	struct view view;

	if (!look_at(patch, at, &view))
		return 1;
	for (unsigned int i = 0; i < view.in.operand_count; i++)
		if (view.ops[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    view.ops[i].imm.is_relative)
			note_target(&patch->function,
				    at + view.in.length + view.ops[i].imm.value.s);
	return view.in.length;
}

static const uint8_t *decode_one(struct patch *patch, const uint8_t *at,
				 const uint8_t *end)
{
	struct function *f = &patch->function;
	const uint8_t *target = NULL;
	unsigned int length = flexsc__length(at, end, &target);

	f->starts[f->count++] = (uint32_t)(at - f->begin);
	if (!length || length > (size_t)(f->end - at))
		return at + decode_rare(patch, at);
	if (target)
		note_target(f, target);
	return at + length;
}

/* The row of the function that contains "place". "row": a row at or before it. */
static uint32_t row_of(const struct object *object, uint32_t row,
		       const uint8_t *place)
{
	while (row + 1 < object->count &&
	       object->header + object->starts[row + 1].function <= place)
		row++;
	return row;
}

/*
 * Is this the function that returns from signal handlers? Its row begins a byte early,
 * and its system call must not be changed.
 */
static bool is_signal_frame(const struct object *object, uint32_t row)
{
	const uint8_t *description =
		object->header + object->starts[row].description;
	uint32_t back;

	memcpy(&back, description + 4, sizeof(back));
	/* The common entry's augmentation string follows its length, id and version. */
	return strchr((const char *)(description + 4 - back + 9), 'S');
}

static void decode(struct patch *patch, const struct object *object, uint32_t row)
{
	struct function *f = &patch->function;
	const uint8_t *begin = object->header + object->starts[row].function;
	const uint8_t *at = begin;

	if (f->begin == begin)
		return;
	f->begin = begin;
	f->end = row + 1 < object->count ?
			 object->header + object->starts[row + 1].function :
			 object->end;
	f->count = 0;
	f->jumps = 0;
	f->whole = true;
	while (at < f->end && f->count < FUNCTION_MAX)
		at = decode_one(patch, at, object->end);
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

/* The value that this instruction, which writes eax, leaves there. */
static long value_set(const struct view *view)
{
	if (view->in.mnemonic == ZYDIS_MNEMONIC_MOV &&
	    view->ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return (long)view->ops[1].imm.value.u;
	return is_zero(view) ? 0 : UNKNOWN;
}

/*
 * mov $value, %eax: this instruction sets the number of nearly every call, often right
 * before the "syscall". It is recognised without Zydis, which would take longer.
 */
static bool is_mov_eax(const uint8_t *at)
{
	return *at == 0xb8;
}

/* Does instruction i write eax? *nr becomes the value, or UNKNOWN. */
static bool sets_number(const struct patch *patch, unsigned int i, long *nr)
{
	const uint8_t *at = start_of(&patch->function, i);
	struct view view;
	int32_t value;

	if (is_mov_eax(at)) {
		memcpy(&value, at + 1, sizeof(value));
		*nr = value;
		return true;
	}
	*nr = UNKNOWN;
	if (!look_at(patch, at, &view))
		return true;
	if (!view_writes(&view, ZYDIS_REGISTER_RAX))
		return false;
	*nr = value_set(&view);
	return true;
}

/*
 * The number of the call that instruction i makes. UNKNOWN if a jump to an instruction
 * in between may bring another number.
 */
static long number_of(const struct patch *patch, unsigned int i)
{
	const struct function *f = &patch->function;
	const uint8_t *call = start_of(f, i);
	long nr;

	do {
		if (!i--)
			return UNKNOWN;
	} while (!sets_number(patch, i, &nr));
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
static bool moves(const struct patch *patch, const uint8_t *at, uint8_t *relative)
{
	struct view view;
	bool is_relative;

	*relative = 0;
	if (is_mov_eax(at))
		return true;
	if (!look_at(patch, at, &view) || is_branch(&view))
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
 * trampoline, and no jump may lead to them.
 */
static bool room(const struct patch *patch, unsigned int i, struct site *site)
{
	const struct function *f = &patch->function;
	uint8_t *place = (uint8_t *)(uintptr_t)start_of(f, i);

	*site = (struct site){ .syscall = place, .jump = place };
	while ((size_t)(place - site->jump) < JUMP) {
		uint8_t relative;

		if (!i)
			return false;
		site->jump = (uint8_t *)(uintptr_t)start_of(f, --i);
		if (!moves(patch, site->jump, &relative) ||
		    (relative && site->relative))
			return false;
		if (relative)
			site->relative = site->jump + relative;
	}
	for (unsigned int j = 0; j < f->jumps; j++)
		if (f->targets[j] > site->jump && f->targets[j] < place + 2)
			return false;
	return true;
}

/* Does the function begin by reading the word that rdi points to? */
static bool reads_first(const struct patch *patch)
{
	struct view view;

	return look_at(patch, patch->function.begin, &view) &&
	       view.in.mnemonic == ZYDIS_MNEMONIC_MOV &&
	       view.ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       view.ops[1].mem.base == ZYDIS_REGISTER_RDI &&
	       !view.ops[1].mem.disp.value;
}

/*
 * Is this __syscall_cancel_arch()? That function makes one call, whose number is an
 * argument. It reads its first argument, the state of the thread's cancellation, and
 * jumps to another function if the thread is cancelled.
 */
static bool is_point(const struct patch *patch, long nr)
{
	const struct function *f = &patch->function;

	return nr == UNKNOWN && f->jumps == 1 &&
	       (f->targets[0] < f->begin || f->targets[0] >= f->end) &&
	       reads_first(patch);
}

static bool must_patch(const struct patch *patch, long nr)
{
	if (nr == UNKNOWN)
		return true;
	/* These calls don't return, return twice, or concern only libc. */
	if (flexsc__call_info((unsigned int)nr)->traits & CALL_KEEP)
		return false;
	return patch->deep || is_vital(nr) || call_is_needed(nr);
}

static bool find_one(struct patch *patch, const struct object *object,
		     uint32_t row, uint8_t *place)
{
	struct function *f = &patch->function;
	struct site site;
	unsigned int i;
	long nr;

	if (is_signal_frame(object, row))
		return true;
	decode(patch, object, row);
	i = index_of(f, place);
	/* The two bytes are part of another instruction. */
	if (i == f->count)
		return true;
	nr = number_of(patch, i);
	if (!must_patch(patch, nr))
		return true;
	if (f->whole && room(patch, i, &site)) {
		if (patch->count == TRAMPOLINES)
			return fail(patch, "too many system calls", place);
		site.point = is_point(patch, nr);
		patch->sites[patch->count++] = site;
		return true;
	}
	if (nr == SYS_rt_sigprocmask)
		all_masks = false;
	if (is_vital(nr))
		return fail(patch, "no room for a jump", place);
	return true;
}

/*
 * The next two bytes of a "syscall", or NULL. Searches for the second byte, which is
 * rare in code, so that memchr() takes a seventh of memmem()'s time.
 */
static const uint8_t *next_place(const uint8_t *at, const uint8_t *end)
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

static bool site_find(struct patch *patch, const struct object *object)
{
	const uint8_t *at = object->text;
	uint32_t row = 0;

	while ((at = next_place(at, object->end))) {
		row = row_of(object, row, at);
		if (!find_one(patch, object, row, (uint8_t *)(uintptr_t)at))
			return false;
		at += 2;
	}
	return true;
}

/* .eh_frame_hdr's first bytes: version 1, and the encodings that every linker uses. */
#define HEADER	"\x01\x1b\x03\x3b"

static bool describe(struct dl_phdr_info *info, struct object *object)
{
	*object = (struct object){ 0 };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const uint8_t *at = (uint8_t *)info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_GNU_EH_FRAME) {
			object->header = at;
		} else if (ph->p_type == PT_LOAD && ph->p_flags & PF_X) {
			object->text = at;
			object->end = at + ph->p_memsz;
		}
	}
	if (!object->text || !object->header ||
	    memcmp(object->header, HEADER, 4) != 0)
		return false;
	memcpy(&object->count, object->header + 8, sizeof(object->count));
	object->starts = (const struct start *)(object->header + 12);
	return object->count;
}

static int find_in(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct patch *patch = arg;
	struct object *object = &patch->objects[patch->objects_count];

	(void)size;
	if (!flexsc__object_is_libc(info->dlpi_name))
		return 0;
	if (patch->objects_count == OBJECTS_MAX)
		return !fail(patch, "too many objects",
			     (void *)info->dlpi_addr);
	if (!describe(info, object))
		return !fail(patch, "no unwind table",
			     (void *)info->dlpi_addr);
	patch->objects_count++;
	return !site_find(patch, object);
}

/* Patching. */

static bool reachable(const uint8_t *from, const uint8_t *to)
{
	int64_t distance = to - from;

	return distance > INT32_MIN + 64 && distance < INT32_MAX - 64;
}

/* Can the trampoline, too, reach the operand of a relative instruction? */
static bool can_move(const struct site *site)
{
	int32_t distance = 0;

	if (site->relative)
		memcpy(&distance, site->relative, sizeof(distance));
	return reachable(site->jump + distance, flexsc__trampolines);
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

static uint8_t *trampoline_of(uint32_t i)
{
	return flexsc__trampolines + (size_t)i * TRAMPOLINE;
}

static void fill_trampoline(uint32_t i, const struct site *site)
{
	uint8_t *trampoline = trampoline_of(i), *at = trampoline;
	size_t moved = (size_t)(site->syscall - site->jump);

	memcpy(at, site->jump, moved);
	if (site->relative)
		move_distance(at + (site->relative - site->jump),
			      site->jump - trampoline);
	at += moved;
	*at++ = 0xb9;
	memcpy(at, &i, sizeof(i));
	at += sizeof(i);
	put_jump(at, (const uint8_t *)(uintptr_t)flexsc__trampoline_common);
	flexsc__trampoline_returns[i] = site->syscall + 2;
	if (site->point)
		point_site = i;
}

static bool protect(const uint8_t *from, const uint8_t *to, int access)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)from & ~(page - 1);

	return !mprotect((void *)begin, (uintptr_t)to - begin, access);
}

static void fill_site(uint32_t i, const struct site *site)
{
	uint8_t *end = put_jump(site->jump, trampoline_of(i));

	/* Never executed; nops keep disassemblies readable. */
	memset(end, 0x90, (size_t)(site->syscall - end));
}

/*
 * Protects the whole text of each object, because a call for a part of a mapping splits
 * the mapping, and the parts never merge again.
 */
static bool protect_texts(struct patch *patch, int access)
{
	for (unsigned int i = 0; i < patch->objects_count; i++)
		if (!protect(patch->objects[i].text, patch->objects[i].end,
			     access))
			return fail(patch, "text can't be made writable",
				    patch->objects[i].text);
	return true;
}

static bool write_sites(struct patch *patch)
{
	const int open = PROT_READ | PROT_WRITE | PROT_EXEC;
	const int shut = PROT_READ | PROT_EXEC;
	uint8_t *end = trampoline_of(TRAMPOLINES);
	bool opened;

	for (unsigned int i = 0; i < patch->count; i++)
		if (!reachable(patch->sites[i].jump, flexsc__trampolines) ||
		    !can_move(&patch->sites[i]))
			return fail(patch, "libc is too far away",
				    patch->sites[i].jump);
	if (!protect(flexsc__trampolines, end, open))
		return fail(patch, "text can't be made writable",
			    flexsc__trampolines);
	for (unsigned int i = 0; i < patch->count; i++)
		fill_trampoline(i, &patch->sites[i]);
	protect(flexsc__trampolines, end, shut);
	/* No place is written unless all can be. */
	opened = protect_texts(patch, open);
	for (unsigned int i = 0; opened && i < patch->count; i++)
		fill_site(i, &patch->sites[i]);
	protect_texts(patch, shut);
	return opened;
}

/*
 * From glibc 2.41 on there is one place for cancellation points. If it weren't patched,
 * waiting threads could not be cancelled.
 */
static bool has_points(struct patch *patch)
{
	const char *version = gnu_get_libc_version();
	unsigned int least = strverscmp(version, "2.41") >= 0, n = 0;

	for (unsigned int i = 0; i < patch->count; i++)
		n += patch->sites[i].point;
	if (n >= least && n <= 1)
		return true;
	snprintf(patch->why, patch->size,
		 "unsupported glibc %s: found %u places of cancellation points", version, n);
	return false;
}

int flexsc__sites_patch(bool deep, char *why, size_t size)
{
	struct patch *patch = mmap(NULL, sizeof(*patch), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int count = -1;

	if (patch == MAP_FAILED) {
		snprintf(why, size, "out of memory");
		return -1;
	}
	patch->deep = deep;
	patch->why = why;
	patch->size = size;
	all_calls = deep;
	all_masks = true;
	ZydisDecoderInit(&patch->decoder, ZYDIS_MACHINE_MODE_LONG_64,
			 ZYDIS_STACK_WIDTH_64);
	if (!flexsc__vectors_probe())
		snprintf(why, size, "the processor has no XSAVE");
	else if (!dl_iterate_phdr(find_in, patch) && has_points(patch) &&
		 write_sites(patch))
		count = (int)patch->count;
	munmap(patch, sizeof(*patch));
	return count;
}
