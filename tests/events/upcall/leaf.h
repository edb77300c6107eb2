/* SPDX-License-Identifier: MIT */
/*
 * Code for upcalls to interrupt: a function whose registers, flags, red zone and
 * extended state are known at each of its instructions. And a handler that changes
 * everything that a function may change.
 */
#ifndef FLEXSC_TESTS_LEAF_H
#define FLEXSC_TESTS_LEAF_H

/* Offsets in struct leaf_image, for assembly. */
#define LEAF_FLAGS		120
#define LEAF_RED		128
#define LEAF_MXCSR		256
#define LEAF_X87_CONTROL	260
#define LEAF_X87		264
#define LEAF_VECTORS		320
#define LEAF_MASKS		2368
#define LEAF_SIZE		2432

#define LEAF_CONTROL_PENDING	64

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "events/upcall/upcall.h"

struct leaf_image {
	uint64_t regs[15];	/* ax, bx, cx, dx, si, di, bp, r8 to r15 */
	uint64_t flags;
	uint64_t red[16];
	uint32_t mxcsr;
	uint16_t x87_control;
	double x87[3];
	uint8_t vectors[32][64] __attribute__((aligned(64)));
	uint64_t masks[8];
};

_Static_assert(offsetof(struct leaf_image, flags) == LEAF_FLAGS, "assembly");
_Static_assert(offsetof(struct leaf_image, red) == LEAF_RED, "assembly");
_Static_assert(offsetof(struct leaf_image, mxcsr) == LEAF_MXCSR, "assembly");
_Static_assert(offsetof(struct leaf_image, x87_control) == LEAF_X87_CONTROL,
	       "assembly");
_Static_assert(offsetof(struct leaf_image, x87) == LEAF_X87, "assembly");
_Static_assert(offsetof(struct leaf_image, vectors) == LEAF_VECTORS,
	       "assembly");
_Static_assert(offsetof(struct leaf_image, masks) == LEAF_MASKS, "assembly");
_Static_assert(sizeof(struct leaf_image) == LEAF_SIZE, "assembly");

/*
 * Sets all registers to leaf_want, executes the instructions in [leaf_begin,
 * leaf_end) cx times, and stores all registers in leaf_got.
 */
void leaf(void);
extern struct leaf_image leaf_want, leaf_got;
extern const char leaf_begin[], leaf_end[];
/* 0: SSE, 1: AVX, 2: AVX-512; set by leaf_prepare(). */
extern uint32_t leaf_level;
/*
 * Not 0: there are breakpoints near the leaf's beginning and at the end of
 * leaf_clobber_general().
 */
extern uint32_t leaf_traps;

/* Fills leaf_want with a different value for each register. */
void leaf_prepare(void);
/* Calls leaf(), and checks its results. */
void leaf_check(uint64_t rounds);

/* Change everything that a function may change. */
void leaf_clobber(void);
void leaf_clobber_general(void);

/* How the extended state is saved. */
enum leaf_keep { KEEP_COMPACT, KEEP_PLAIN, KEEP_NOTHING, KEEPS };

/*
 * Sets up an upcall to a handler that counts in leaf_handled, clears "pending", and
 * clobbers. False: the processor lacks this way to save the state. The handler
 * checks what a function may expect, and that it isn't nested.
 */
bool leaf_upcall(struct flexsc__upcall *upcall,
		 struct flexsc_event_control *control, enum leaf_keep keep);
extern uint32_t leaf_handled;
/* Upcalls that are set up from now on have a stack of their own. */
extern bool leaf_on_stack;
/* Called for each event, if not NULL. */
extern void (*leaf_within)(void);
void leaf_handle_plainly(struct flexsc__upcall *upcall);

#endif /* __ASSEMBLER__ */

#endif /* FLEXSC_TESTS_LEAF_H */
