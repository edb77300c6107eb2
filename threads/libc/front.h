/* SPDX-License-Identifier: MIT */
/*
 * Functions that make system calls in front of libc's: CALL, POINT and MADE of
 * base/symbols.def. If another library stands in front of libc, too, the program is
 * to get that library's function, which may refuse a connection or leave a sync out.
 * That is decided at the function's first call.
 *
 * The other library's function mostly ends in libc's. Its place there is patched
 * (libc/sites.h), so that the call comes to the hook even so.
 */
#ifndef FLEXSC_THREADS_FRONT_H
#define FLEXSC_THREADS_FRONT_H

#include "home_stub.h"

/* r11 has its address when "target" is reached. */
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

#endif /* FLEXSC_THREADS_FRONT_H */
