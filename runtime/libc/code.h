/* SPDX-License-Identifier: MIT */
/*
 * Finding and patching system calls in machine code: what differs between processors.
 * Used by sites.c.
 */
#ifndef FLEXSC_RUNTIME_CODE_H
#define FLEXSC_RUNTIME_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRAMPOLINE	32U	/* bytes */
#define TRAMPOLINES	(4096U * 6 / TRAMPOLINE)
#define UNKNOWN		(-1L)	/* the code doesn't show the call's number */

/* A place to be patched. */
struct site {
	uint8_t *jump;		/* address that the jump is written to */
	uint8_t *end;		/* the instruction after the system call */
	uint8_t *relative;	/* x86-64: a displacement to be adapted, or NULL */
	bool point;		/* it is libc's place for cancellation points */
};

#if defined(__x86_64__)
#include "x86_64/code.h"
#elif defined(__aarch64__)
#include "aarch64/code.h"
#endif

/* Can code be patched? If not, "why" receives the reason. */
bool flexsc__code_begin(struct code *code, char *why, size_t size);

/* The first place from "at" on that may be a system call, or NULL. */
const uint8_t *flexsc__code_next(const uint8_t *at, const uint8_t *end);

/*
 * Choose the function from begin to end, and the place "call" in it, for the functions
 * below. limit: the end of the code in the function's library. False: the place isn't a
 * system call.
 */
bool flexsc__code_look(struct code *code, const uint8_t *begin, const uint8_t *end,
		       const uint8_t *limit, const uint8_t *call);
/* The call's number; UNKNOWN if it depends on the path to the call. */
long flexsc__code_number(const struct code *code);
/* For a call of unknown number: is the function __syscall_cancel_arch()? */
bool flexsc__code_is_point(const struct code *code);
/* Can the place be patched? Fills *site. */
bool flexsc__code_room(const struct code *code, struct site *site);

/* Do jumps from the place to any of the trampolines, and back, reach their targets? */
bool flexsc__code_reaches(const struct site *site, const uint8_t *trampolines);
/* Write the trampoline with this number, which continues at "common". */
void flexsc__code_fill(const struct site *site, uint32_t number, uint8_t *trampoline,
		       const uint8_t *common);
/* Patch the place: replace its instructions by a jump to the trampoline. */
void flexsc__code_patch(const struct site *site, const uint8_t *trampoline);

#endif /* FLEXSC_RUNTIME_CODE_H */
