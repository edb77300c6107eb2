/* SPDX-License-Identifier: MIT */
/*
 * Functions that make system calls in place of libc's: CALL, POINT and MADE of
 * base/symbols.def. Any thread.
 *
 * If another preloaded library has such a function, too, the program gets that one,
 * because it may refuse a connection, or leave out a sync. The function's first call
 * decides. The other library's function mostly calls libc's, whose system call is patched
 * (libc/sites.c), so the call still comes to the hook.
 */
#ifndef FLEXSC_RUNTIME_FRONT_H
#define FLEXSC_RUNTIME_FRONT_H

#include "host_stub.h"

/* The exported function jumps to "target", with the address of this in r11. */
struct front {
	enum real which;
	const void *target;	/* flexsc__front_jump, then its result */
	const void *own;	/* this library's function */
};

_Static_assert(offsetof(struct front, target) == 8, "for the stub");

/* Asks flexsc__front_target(), and jumps there. */
extern const char flexsc__front_jump[];

const void *flexsc__front_target(struct front *front);

/* Defines the exported function "symbol"; "function" is this library's own. */
#define FRONT(symbol, function)						\
	__attribute__((used)) static struct front front_##symbol = {	\
		REAL_##symbol, flexsc__front_jump,			\
		(const void *)function					\
	};								\
	STUB_TEXT(symbol, front_##symbol, "jmpq *8(%r11)")

#endif /* FLEXSC_RUNTIME_FRONT_H */
