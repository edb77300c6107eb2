/* SPDX-License-Identifier: MIT */
#include "sites.h"

#include <Zydis/Zydis.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/interpose.h"
#include "../base/objects.h"
#include "../calls/call.h"
#include "../calls/hook.h"
#include "lib/base/syscall.h"
#include "../run/uthread.h"
#include "../arch/x86_64/vectors.h"

#define JUMP		5U	/* bytes of a jump instruction */
#define TRAMPOLINE	32U	/* bytes */
#define TRAMPOLINES	(4096U * 6 / TRAMPOLINE)
#define UNKNOWN		(-1L)	/* the text doesn't show the call's number */
#define FUNCTION_MAX	8192U	/* instructions of a function */
#define TARGETS_MAX	4096U

/* Used by libc/x86_64/trampolines.S. */
extern uint8_t flexsc__trampolines[];
void flexsc__trampoline_common(void);
long flexsc__site_hook(long nr, const uint64_t args[6], uint32_t site);

uint8_t *flexsc__trampoline_returns[TRAMPOLINES];

/*
 * The place through which libc makes the calls that are cancellation points, from
 * glibc 2.41 on: __syscall_cancel_arch(). Before, libc switches to asynchronous
 * cancellation for such a call, wherever that is.
 */
#define NO_SITE	TRAMPOLINES
static uint32_t point_site = NO_SITE;

static bool all_calls;
/*
 * Are all of libc's places patched that change signal masks? If not, none comes
 * to the hook, because one place restores what another has saved.
 */
static bool all_masks;

/* Does the runtime have to see the call, or it can't run? */
static bool is_vital(long nr)
{
	return nr == SYS_futex || nr == SYS_exit || nr == SYS_rt_sigaction;
}

/*
 * Does the call make or change descriptors (lib/calls/fds.h), or is it about
 * the thread itself?
 */
bool flexsc__sites_need(long nr)
{
	switch (nr) {
	case SYS_rt_sigprocmask:
	case SYS_gettid:
	case SYS_tgkill:
	case SYS_close:
	case SYS_close_range:
	case SYS_dup:
	case SYS_dup2:
	case SYS_dup3:
	case SYS_socket:
	case SYS_socketpair:
	case SYS_pipe2:
	case SYS_eventfd2:
	case SYS_fcntl:
	case SYS_ioctl:
	case SYS_setsockopt:
		return true;
	default:
		return false;
	}
}

/* Also if another library's function passes the call on to libc. */
static bool call_is_needed(long nr)
{
	return flexsc__sites_need(nr) || flexsc__real_is_foreign_call(nr);
}

/*
 * libc's handler of cancellations ends a call only while the thread is at libc's
 * own "syscall" instruction, where no call is made from here.
 */
static long unseen(long nr, const uint64_t args[6], bool point)
{
	return point ? flexsc__call_point(nr, args) :
		       flexsc__call_plainly(nr, args);
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

/* A row of .eh_frame_hdr's table, relative to its begin. */
struct start {
	int32_t function, description;
};

struct object {
	const uint8_t *text, *end;
	const uint8_t *header;		/* its .eh_frame_hdr */
	const struct start *starts;	/* its table of functions, sorted */
	uint32_t count;
};

struct instruction {
	uint8_t *at;
	uint8_t length;
	uint8_t relative;	/* offset of a distance in it, or 0 */
	bool moves;		/* works at another address, too */
	long nr;		/* in eax before it */
	const uint8_t *set;	/* the instruction that set it */
};

/* The function that was decoded last, which may have several places. */
struct function {
	const uint8_t *begin, *end;
	struct instruction list[FUNCTION_MAX];
	const uint8_t *targets[TARGETS_MAX];
	unsigned int count, jumps;
	long nr;		/* in eax after the last instruction */
	const uint8_t *set;
	bool whole;
	bool tests;		/* it begins by a look at what rdi points to */
};

/* A place to be patched. */
struct site {
	uint8_t *jump;		/* address that the jump is written to */
	uint8_t *syscall;
	uint8_t *relative;	/* a distance to be adapted, or NULL */
	bool point;		/* it is libc's place for cancellation points */
};

struct patch {
	ZydisDecoder decoder;
	struct function function;
	struct site sites[TRAMPOLINES];
	unsigned int count;
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

static bool is_branch(const ZydisDecodedInstruction *in)
{
	switch (in->meta.category) {
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

static ZydisRegister whole_register(const ZydisDecodedOperand *operand)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						operand->reg.value);
}

static bool writes(const ZydisDecodedOperand *operand, ZydisRegister reg)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
	       whole_register(operand) == reg;
}

static bool is_zero(const ZydisDecodedInstruction *in,
		    const ZydisDecodedOperand *ops)
{
	return in->mnemonic == ZYDIS_MNEMONIC_XOR &&
	       ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       ops[0].reg.value == ops[1].reg.value;
}

/* The value that an instruction leaves in eax, which it writes. */
static long value_set(const ZydisDecodedInstruction *in,
		      const ZydisDecodedOperand *ops)
{
	if (in->mnemonic == ZYDIS_MNEMONIC_MOV &&
	    ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return (long)ops[1].imm.value.u;
	return is_zero(in, ops) ? 0 : UNKNOWN;
}

/* Does the instruction read the word that rdi points to? */
static bool reads_first(const ZydisDecodedInstruction *in,
			const ZydisDecodedOperand *ops)
{
	return in->mnemonic == ZYDIS_MNEMONIC_MOV &&
	       ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       ops[1].mem.base == ZYDIS_REGISTER_RDI && !ops[1].mem.disp.value;
}

static void note_operand(struct function *f, const ZydisDecodedInstruction *in,
			 const ZydisDecodedOperand *ops, unsigned int i,
			 struct instruction *here)
{
	const ZydisDecodedOperand *op = &ops[i];

	if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op->imm.is_relative) {
		if (f->jumps < TARGETS_MAX)
			f->targets[f->jumps++] = here->at + in->length +
						 op->imm.value.s;
		else
			f->whole = false;
	}
	if (writes(op, ZYDIS_REGISTER_RSP) && in->mnemonic != ZYDIS_MNEMONIC_SUB)
		here->moves = false;
	if (writes(op, ZYDIS_REGISTER_RAX)) {
		f->nr = value_set(in, ops);
		f->set = here->at;
	}
}

static void decode_one(struct patch *patch, uint8_t *at)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	struct function *f = &patch->function;
	struct instruction *here = &f->list[f->count++];
	ZydisDecodedInstruction in;

	*here = (struct instruction){
		.at = at,
		.length = 1,
		.nr = f->nr,
		.set = f->set,
	};
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&patch->decoder, at,
						 (ZyanUSize)(f->end - at), &in,
						 ops))) {
		f->nr = UNKNOWN;
		return;
	}
	here->length = in.length;
	here->relative = in.attributes & ZYDIS_ATTRIB_IS_RELATIVE ?
				 in.raw.disp.offset : 0;
	here->moves = !is_branch(&in) &&
		      (here->relative ||
		       !(in.attributes & ZYDIS_ATTRIB_IS_RELATIVE));
	if (at == f->begin)
		f->tests = reads_first(&in, ops);
	for (unsigned int i = 0; i < in.operand_count; i++)
		note_operand(f, &in, ops, i, here);
}

/* The row of the function that has a place. */
static uint32_t row_of(const struct object *object, const uint8_t *place)
{
	uint32_t low = 0, high = object->count;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (object->header + object->starts[middle].function <= place)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/*
 * Does the function return from signal handlers? Its row begins a byte early,
 * and its system call must stay as it is.
 */
static bool is_signal_frame(const struct object *object, uint32_t row)
{
	const uint8_t *description =
		object->header + object->starts[row].description;
	uint32_t back;

	memcpy(&back, description + 4, sizeof(back));
	/*
	 * The augmentation of the common entry, after length, id and version.
	 */
	return strchr((const char *)(description + 4 - back + 9), 'S');
}

static void decode(struct patch *patch, const struct object *object, uint32_t row)
{
	struct function *f = &patch->function;
	const uint8_t *begin = object->header + object->starts[row].function;
	uint8_t *at;

	if (f->begin == begin)
		return;
	f->begin = begin;
	f->end = row + 1 < object->count ?
			 object->header + object->starts[row + 1].function :
			 object->end;
	f->count = 0;
	f->jumps = 0;
	f->nr = UNKNOWN;
	f->set = NULL;
	f->whole = true;
	f->tests = false;
	for (at = (uint8_t *)f->begin; at < f->end && f->count < FUNCTION_MAX;
	     at += f->list[f->count - 1].length)
		decode_one(patch, at);
	f->whole = f->whole && at >= f->end;
}

/* Finding. */

static unsigned int index_of(const struct function *f, const uint8_t *at)
{
	unsigned int i = 0;

	while (i < f->count && f->list[i].at < at)
		i++;
	return i < f->count && f->list[i].at == at ? i : f->count;
}

/*
 * The number of the call that instruction i makes. A jump to an instruction in
 * between may bring another number.
 */
static long number_of(const struct function *f, unsigned int i)
{
	const struct instruction *call = &f->list[i];

	for (unsigned int j = 0; call->set && j < f->jumps; j++)
		if (f->targets[j] > call->set && f->targets[j] <= call->at)
			return UNKNOWN;
	return call->nr;
}

/*
 * Is there room for a jump before the "syscall", among instructions that can
 * move to a trampoline and that no jump leads to?
 */
static bool room(const struct function *f, unsigned int i, struct site *site)
{
	uint8_t *place = f->list[i].at;

	*site = (struct site){ .syscall = place };
	while ((size_t)(place - f->list[i].at) < JUMP) {
		const struct instruction *before;

		if (!i)
			return false;
		before = &f->list[i - 1];
		if (!before->moves || (before->relative && site->relative))
			return false;
		if (before->relative)
			site->relative = before->at + before->relative;
		i--;
	}
	site->jump = f->list[i].at;
	for (unsigned int j = 0; j < f->jumps; j++)
		if (f->targets[j] > site->jump && f->targets[j] < place + 2)
			return false;
	return true;
}

/*
 * Is this __syscall_cancel_arch()? That is a function of one call, whose number it
 * is given. It looks at its first argument, the state of the thread's cancellation,
 * and jumps to another function if the thread is cancelled.
 */
static bool is_point(const struct function *f, long nr)
{
	return nr == UNKNOWN && f->tests && f->jumps == 1 &&
	       (f->targets[0] < f->begin || f->targets[0] >= f->end);
}

static bool must_patch(const struct patch *patch, long nr)
{
	switch (nr) {
	case UNKNOWN:
		return true;
	/*
	 * These calls don't return, or return twice, or are libc's own affair.
	 */
	case SYS_rt_sigreturn:
	case SYS_clone:
	case SYS_clone3:
	case SYS_fork:
	case SYS_vfork:
	case SYS_arch_prctl:
	case SYS_set_tid_address:
	case SYS_set_robust_list:
	case SYS_rseq:
		return false;
	default:
		return patch->deep || is_vital(nr) || call_is_needed(nr);
	}
}

static bool find_one(struct patch *patch, const struct object *object,
		     uint8_t *place)
{
	struct function *f = &patch->function;
	uint32_t row = row_of(object, place);
	struct site site;
	unsigned int i;
	long nr;

	if (is_signal_frame(object, row))
		return true;
	decode(patch, object, row);
	i = index_of(f, place);
	/* The bytes are inside an instruction. */
	if (i == f->count)
		return true;
	nr = number_of(f, i);
	if (!must_patch(patch, nr))
		return true;
	if (f->whole && room(f, i, &site)) {
		if (patch->count == TRAMPOLINES)
			return fail(patch, "too many system calls", place);
		site.point = is_point(f, nr);
		patch->sites[patch->count++] = site;
		return true;
	}
	if (nr == SYS_rt_sigprocmask)
		all_masks = false;
	if (is_vital(nr))
		return fail(patch, "no room for a jump", place);
	return true;
}

static bool site_find(struct patch *patch, const struct object *object)
{
	const uint8_t *at = object->text;

	while ((at = memmem(at, (size_t)(object->end - at), "\x0f\x05", 2))) {
		if (!find_one(patch, object, (uint8_t *)(uintptr_t)at))
			return false;
		at += 2;
	}
	return true;
}

/*
 * .eh_frame_hdr's first bytes: version 1, and the encodings that every linker
 * uses.
 */
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
	struct object object;

	(void)size;
	if (!flexsc__object_is_libc(info->dlpi_name))
		return 0;
	if (!describe(info, &object))
		return !fail(patch, "no table of functions",
			     (void *)info->dlpi_addr);
	return !site_find(patch, &object);
}

/* Patching. */

static bool reachable(const uint8_t *from, const uint8_t *to)
{
	int64_t distance = to - from;

	return distance > INT32_MIN + 64 && distance < INT32_MAX - 64;
}

/* Can an instruction's operand be reached from the trampoline, too? */
static bool can_move(const struct site *site)
{
	int32_t distance = 0;

	if (site->relative)
		memcpy(&distance, site->relative, sizeof(distance));
	return reachable(site->jump + distance, flexsc__trampolines);
}

/* Write a jump from "at"; returns the end of it. */
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

static bool protect(uint8_t *from, const uint8_t *to, int access)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)from & ~(page - 1);

	return !mprotect((void *)begin, (uintptr_t)to - begin, access);
}

static void fill_site(uint32_t i, const struct site *site)
{
	uint8_t *end = put_jump(site->jump, trampoline_of(i));

	/* Nothing jumps there; nops keep the text readable. */
	memset(end, 0x90, (size_t)(site->syscall - end));
}

/* Is b's page a's, or the next one? */
static bool follows(const struct site *a, const struct site *b)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	return b->jump > a->jump &&
	       (uintptr_t)b->jump / page <= (uintptr_t)a->syscall / page + 1;
}

/*
 * The pages of all sites, which are in the order of their addresses within an
 * object. One call for pages that follow each other saves most of the calls, each of
 * which splits a mapping.
 */
static bool protect_sites(struct patch *patch, int access)
{
	const struct site *site = patch->sites, *end = site + patch->count;

	while (site < end) {
		const struct site *last = site;

		while (last + 1 < end && follows(last, last + 1))
			last++;
		if (!protect(site->jump, last->syscall, access))
			return fail(patch, "text can't be made writable",
				    site->jump);
		site = last + 1;
	}
	return true;
}

static bool write_sites(struct patch *patch)
{
	const int open = PROT_READ | PROT_WRITE | PROT_EXEC;
	const int shut = PROT_READ | PROT_EXEC;
	uint8_t *end = trampoline_of(TRAMPOLINES);

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
	/* Any place is written only when all can be. */
	if (!protect_sites(patch, open))
		return false;
	for (unsigned int i = 0; i < patch->count; i++)
		fill_site(i, &patch->sites[i]);
	protect_sites(patch, shut);
	return true;
}

/*
 * From glibc 2.41 on there is one place for cancellation points. Without it,
 * threads that wait could not be cancelled.
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
		 "glibc %s has %u places of cancellation points", version, n);
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
		fail(patch, "the processor has no XSAVE", NULL);
	else if (!dl_iterate_phdr(find_in, patch) && has_points(patch) &&
		 write_sites(patch))
		count = (int)patch->count;
	munmap(patch, sizeof(*patch));
	return count;
}
