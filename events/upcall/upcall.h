/* SPDX-License-Identifier: MIT */
/*
 * The upcall: the kernel makes a thread enter this code at any point of its execution,
 * and the thread returns without the kernel (<linux/flexsc_ecb.h>, "The upcall").
 */
#ifndef FLEXSC_EVENTS_UPCALL_H
#define FLEXSC_EVENTS_UPCALL_H

/* Offsets in struct flexsc__upcall, for assembly. */
#define UPCALL_CONTROL	0
#define UPCALL_RUN	8
#define UPCALL_ROOM	16
#define UPCALL_MASK	24
#define UPCALL_COMPACT	32
#define UPCALL_STACK	40
#define UPCALL_STACK_SIZE	48

#ifndef __ASSEMBLER__

#include <linux/flexsc_ecb.h>
#include <stddef.h>
#include <stdint.h>

/* What control->arg of an event control block points to. */
struct flexsc__upcall {
	struct flexsc_event_control *control;
	/*
	 * Calls the program's handler while events are due, in the critical section
	 * that the kernel began. Preserves errno.
	 */
	void (*run)(struct flexsc__upcall *upcall);
	/*
	 * Size of the extended state (vector registers and the like) of the
	 * interrupted code, which is saved on the stack of "run". 0: it isn't saved,
	 * and "run" must use general registers only.
	 */
	uint64_t room;
	uint32_t mask[2];	/* the saved state components */
	uint32_t compact;	/* saved with XSAVEC */
	/*
	 * The stack of "run". Code that is on it already
	 * stays there. Size 0: the interrupted code's stack.
	 */
	uint64_t stack, stack_size;
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

_Static_assert(offsetof(struct flexsc__upcall, stack) == UPCALL_STACK,
	       "assembly");
_Static_assert(offsetof(struct flexsc__upcall, stack_size) == UPCALL_STACK_SIZE,
	       "assembly");

/* control->entry, ->tail_begin and ->tail_end: code addresses. */
extern const char flexsc__upcall_entry[];
extern const char flexsc__upcall_tail[];
extern const char flexsc__upcall_tail_end[];

/*
 * Set "mask" and "compact" such that upcalls save all components of the extended state
 * that this processor has, except AMX tiles, which handlers don't use. Returns the value
 * for "room", the size of that state. 0: user mode can't save the state on this
 * processor. Any thread.
 */
size_t flexsc__upcall_probe(struct flexsc__upcall *upcall);

#endif /* __ASSEMBLER__ */

#endif /* FLEXSC_EVENTS_UPCALL_H */
