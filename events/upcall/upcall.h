/* SPDX-License-Identifier: MIT */
/*
 * The upcall: the kernel makes a thread enter here, wherever it happens to be,
 * and the thread goes back by itself (<linux/flexsc_ecb.h>, "The upcall").
 */
#ifndef FLEXSC_EVENTS_UPCALL_H
#define FLEXSC_EVENTS_UPCALL_H

/* Offsets in struct flexsc__upcall, for assembly. */
#define UPCALL_CONTROL	0
#define UPCALL_RUN	8
#define UPCALL_ROOM	16
#define UPCALL_MASK	24
#define UPCALL_COMPACT	32

#ifndef __ASSEMBLER__

#include <linux/flexsc_ecb.h>
#include <stddef.h>
#include <stdint.h>

/* control->arg of one event control block. */
struct flexsc__upcall {
	struct flexsc_event_control *control;
	/*
	 * Calls the program's handler while something is due, in the critical
	 * section that the kernel began, and keeps errno.
	 */
	void (*run)(struct flexsc__upcall *upcall);
	/*
	 * The size of the interrupted code's extended state, which is kept on
	 * its stack. 0: none is kept, and whatever "run" calls uses general
	 * registers only.
	 */
	uint64_t room;
	uint32_t mask[2];	/* state components that are kept */
	uint32_t compact;	/* by XSAVEC */
};

_Static_assert(offsetof(struct flexsc__upcall, control) == UPCALL_CONTROL,
	       "assembly");
_Static_assert(offsetof(struct flexsc__upcall, run) == UPCALL_RUN, "assembly");
_Static_assert(offsetof(struct flexsc__upcall, room) == UPCALL_ROOM,
	       "assembly");
_Static_assert(offsetof(struct flexsc__upcall, mask) == UPCALL_MASK,
	       "assembly");
_Static_assert(offsetof(struct flexsc__upcall, compact) == UPCALL_COMPACT,
	       "assembly");

/* control->entry, ->tail_begin and ->tail_end: addresses of code. */
extern const char flexsc__upcall_entry[];
extern const char flexsc__upcall_tail[];
extern const char flexsc__upcall_tail_end[];

/*
 * Set "mask" and "compact" for this processor: everything but the tiles of AMX,
 * which handlers don't use. Returns the size of the state; 0: the processor
 * can't keep it from user mode, so there are no upcalls but with "room" zero. Any thread.
 */
size_t flexsc__upcall_probe(struct flexsc__upcall *upcall);

#endif /* __ASSEMBLER__ */

#endif /* FLEXSC_EVENTS_UPCALL_H */
