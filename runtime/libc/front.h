/* SPDX-License-Identifier: MIT */
/*
 * Functions that make system calls in place of libc's: CALL, POINT and MADE of
 * base/symbols.def. Any thread.
 *
 * If another preloaded library defines the same function, calls go to that library,
 * because it may have semantics of its own, such as refusing a connection or skipping a
 * sync. The choice is made at the function's first call. The other library usually
 * calls libc's function, whose system call is patched (libc/sites.c). So the hook still
 * sees the call.
 */
#ifndef FLEXSC_RUNTIME_FRONT_H
#define FLEXSC_RUNTIME_FRONT_H

#include "host_stub.h"

/*
 * The record of an exported function, which jumps to "target" (STUB_JUMP_TARGET in
 * host_stub.h).
 */
struct front {
	enum real which;
	const void *target;	/* at first flexsc__front_jump, then the function found */
	const void *own;	/* this library's function */
};

_Static_assert(offsetof(struct front, target) == 8, "for the stub");

/* Calls flexsc__front_target(), and jumps to its result. */
extern const char flexsc__front_jump[];

const void *flexsc__front_target(struct front *front);

/* Defines the exported function "symbol"; "function" is this library's own. */
#define FRONT(symbol, function)						\
	__attribute__((used)) static struct front front_##symbol = {	\
		REAL_##symbol, flexsc__front_jump,			\
		(const void *)function					\
	};								\
	STUB_TEXT(symbol, front_##symbol, STUB_JUMP_TARGET)

#endif /* FLEXSC_RUNTIME_FRONT_H */
