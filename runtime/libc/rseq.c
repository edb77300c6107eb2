/* SPDX-License-Identifier: MIT */
/*
 * Disables restartable sequences (rseq). The kernel writes to the area of the kernel
 * thread that runs, but the program reads the area of its user thread. Without an area,
 * libc gets a processor's number from the kernel, and an allocator doesn't use
 * sequences.
 *
 * A constructor unregisters the first thread's area, before the program reads it. libc
 * registers a new thread's area only if the creator has one. libc has already set
 * __rseq_size for good, so the constructor corrects the value in place: in the dynamic
 * loader, and in the program's copy if there is one.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/rseq.h>

#include "runtime/arch/context.h"
#include "runtime/base/interpose.h"

#define PAGE	4096UL

struct place {
	uintptr_t at;
	/* read-only pages around the variable; end <= at: the variable is writable */
	uintptr_t begin, end;
};

/* Find the pages around a variable, if the loader made them read-only. */
static int find_shut(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct place *place = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_GNU_RELRO || place->at < begin ||
		    place->at >= begin + ph->p_memsz)
			continue;
		place->begin = begin & ~(PAGE - 1);
		place->end = (begin + ph->p_memsz) & ~(PAGE - 1);
		return 1;
	}
	return 0;
}

static void set_none(const unsigned int *size)
{
	struct place place = { .at = (uintptr_t)size };

	bool shut;

	dl_iterate_phdr(find_shut, &place);
	shut = place.at < place.end;
	if (shut && mprotect((void *)place.begin, place.end - place.begin,
			     PROT_READ | PROT_WRITE))
		return;
	*(volatile unsigned int *)place.at = 0;
	if (shut)
		mprotect((void *)place.begin, place.end - place.begin,
			 PROT_READ);
}

__attribute__((constructor)) static void have_none(void)
{
	struct rseq *area = (struct rseq *)(context_tp() +
					    (uint64_t)__rseq_offset);
	const unsigned int *loader_s = dlsym(RTLD_NEXT, "__rseq_size");

	if (!__rseq_size ||
	    raw_syscall(SYS_rseq, PTR(area), 32, RSEQ_FLAG_UNREGISTER,
			RSEQ_SIG, 0, 0))
		return;
	area->cpu_id = (uint32_t)RSEQ_CPU_ID_REGISTRATION_FAILED;
	set_none(&__rseq_size);
	if (loader_s && loader_s != &__rseq_size)
		set_none(loader_s);
}
