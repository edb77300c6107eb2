/* SPDX-License-Identifier: MIT */
/*
 * The places inside libc and the dynamic loader that make system calls. They are found
 * by the unwinder's table of functions, and patched in memory so that their calls reach
 * the hook: each jumps to a trampoline (code.h). Runs before there are threads, except
 * for flexsc__site_hook().
 */
#include "libc.h"

#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/calls/call_info.h"
#include "runtime/base/interpose.h"
#include "runtime/base/objects.h"
#include "runtime/calls/hook.h"
#include "runtime/calls/perform.h"
#include "runtime/sched/uthread.h"
#include "code.h"

#define OBJECTS_MAX	4U	/* libc and the loader */

/* Symbols of the processor's trampolines.S, and the symbols that it uses. */
extern uint8_t flexsc__trampolines[];
void flexsc__trampoline_common(void);
long flexsc__site_hook(long nr, const uint64_t args[6], uint32_t site);

uint8_t *flexsc__trampoline_returns[TRAMPOLINES];

/*
 * From glibc 2.41 on, libc makes all cancellation points at one place, in
 * __syscall_cancel_arch(). Older versions switch to asynchronous cancellation around
 * each such call, wherever the call is.
 */
#define NO_SITE	TRAMPOLINES
static uint32_t point_site = NO_SITE;

static bool all_calls;
/*
 * Are all places patched at which libc changes signal masks? If not, the hook gets none
 * of these calls, because one place restores the mask that another has saved.
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
 * Does the hook need the call? It also does if another library, which may call libc,
 * defines the function for this call.
 */
static bool call_is_needed(long nr)
{
	return flexsc__sites_need(nr) || flexsc__real_is_foreign_call(nr);
}

/*
 * Make a call that the hook doesn't need. libc's cancellation handler acts only at
 * libc's own "syscall" instruction, which the jump bypasses. So flexsc__perform_point()
 * makes a call that is a cancellation point.
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

struct patch {
	struct code code;
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

static bool fail_to_write(struct patch *patch)
{
	snprintf(patch->why, patch->size, "text can't be made writable; does "
		 "MemoryDenyWriteExecute= forbid it?");
	return false;
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
 * Is this the function that returns from signal handlers? Its system call must not be
 * changed. Its row begins one byte before the function.
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

/*
 * Does the row's description cover the place? A place that no description covers isn't
 * code, or belongs to clone(): libc ends that function's description before its system
 * call, because a new thread continues there.
 */
static bool covers(const struct object *object, uint32_t row, const uint8_t *place)
{
	const uint8_t *begin = object->header + object->starts[row].function;
	uint32_t bytes;

	/*
	 * The length, the offset of the common entry, and the function's address
	 * precede the size. Each has 4 bytes.
	 */
	memcpy(&bytes, object->header + object->starts[row].description + 12,
	       sizeof(bytes));
	return (size_t)(place - begin) < bytes;
}

static bool must_patch(const struct patch *patch, long nr)
{
	if (nr == UNKNOWN)
		return true;
	/*
	 * Not patched: calls that don't return, return twice, or matter only to libc.
	 */
	if (flexsc__call_info((unsigned int)nr)->traits & CALL_KEEP)
		return false;
	return patch->deep || is_vital(nr) || call_is_needed(nr);
}

static bool find_one(struct patch *patch, const struct object *object,
		     uint32_t row, const uint8_t *place)
{
	const uint8_t *end = object->end;
	struct code *code = &patch->code;
	struct site site;
	long nr;

	if (is_signal_frame(object, row) || !covers(object, row, place))
		return true;
	if (row + 1 < object->count)
		end = object->header + object->starts[row + 1].function;
	if (!flexsc__code_look(code, object->header + object->starts[row].function, end,
			       object->end, place))
		return true;
	nr = flexsc__code_number(code);
	if (!must_patch(patch, nr))
		return true;
	if (flexsc__code_room(code, &site)) {
		if (patch->count == TRAMPOLINES)
			return fail(patch, "too many system calls", place);
		site.point = nr == UNKNOWN && flexsc__code_is_point(code);
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
	uint32_t row = 0;

	while ((at = flexsc__code_next(at, object->end))) {
		row = row_of(object, row, at);
		if (!find_one(patch, object, row, at))
			return false;
		at += CODE_CALL;
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

static uint8_t *trampoline_of(uint32_t i)
{
	return flexsc__trampolines + (size_t)i * TRAMPOLINE;
}

static void fill_trampoline(const struct site *site, uint32_t i)
{
	flexsc__trampoline_returns[i] = site->end;
	if (site->point)
		point_site = i;
	flexsc__code_fill(site, i, trampoline_of(i),
			  (const uint8_t *)(uintptr_t)flexsc__trampoline_common);
}

static bool protect(const uint8_t *from, const uint8_t *to, int access)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)from & ~(page - 1);

	return !mprotect((void *)begin, (uintptr_t)to - begin, access);
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
			return fail_to_write(patch);
	return true;
}

static bool write_sites(struct patch *patch)
{
	const int open = PROT_READ | PROT_WRITE | PROT_EXEC;
	const int shut = PROT_READ | PROT_EXEC;
	uint8_t *end = trampoline_of(TRAMPOLINES);
	bool opened;

	for (unsigned int i = 0; i < patch->count; i++)
		if (!flexsc__code_reaches(&patch->sites[i], flexsc__trampolines))
			return fail(patch, "libc is too far away",
				    patch->sites[i].jump);
	if (!protect(flexsc__trampolines, end, open))
		return fail_to_write(patch);
	for (unsigned int i = 0; i < patch->count; i++)
		fill_trampoline(&patch->sites[i], i);
	protect(flexsc__trampolines, end, shut);
	/* Write to the places only if all texts can be made writable. */
	opened = protect_texts(patch, open);
	for (unsigned int i = 0; opened && i < patch->count; i++)
		flexsc__code_patch(&patch->sites[i], trampoline_of(i));
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
	if (flexsc__code_begin(&patch->code, why, size) &&
	    !dl_iterate_phdr(find_in, patch) && has_points(patch) && write_sites(patch))
		count = (int)patch->count;
	munmap(patch, sizeof(*patch));
	return count;
}
