/* SPDX-License-Identifier: MIT */
/*
 * The interposed symbols of base/symbols.def that follow one pattern. They run on the
 * program's threads, even before main(), and return what libc's functions do: -1 with
 * errno set. Headers that declare these functions aren't included, because the
 * prototypes differ.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "runtime/base/interpose.h"
#include "front.h"
#include "libc_call.h"

/* A function's arguments, as the kernel takes them. */
#define U1(a)			(uint64_t)(a)
#define U2(a, ...)		(uint64_t)(a), U1(__VA_ARGS__)
#define U3(a, ...)		(uint64_t)(a), U2(__VA_ARGS__)
#define U4(a, ...)		(uint64_t)(a), U3(__VA_ARGS__)
#define U5(a, ...)		(uint64_t)(a), U4(__VA_ARGS__)
#define U6(a, ...)		(uint64_t)(a), U5(__VA_ARGS__)
#define U7(a, ...)		(uint64_t)(a), U6(__VA_ARGS__)
#define PICK(_1, _2, _3, _4, _5, _6, _7, n, ...)	n
#define ALL(...) \
	PICK(__VA_ARGS__, U7, U6, U5, U4, U3, U2, U1)(__VA_ARGS__)

#define WRAP(symbol, params, point, ...)				\
	static long wrap_##symbol params				\
	{								\
		const uint64_t call[7] = { ALL(__VA_ARGS__) };		\
									\
		return flexsc__libc_call(point, (long)call[0], call + 1); \
	}								\
	FRONT(symbol, wrap_##symbol)

#define CALL(symbol, params, ...)	WRAP(symbol, params, false, __VA_ARGS__)
#define POINT(symbol, params, ...)	WRAP(symbol, params, true, __VA_ARGS__)
#define ON_HOST(symbol)			HOST_STUB(symbol, flexsc__host_stub, false)
#define FORK(symbol)			HOST_STUB(symbol, flexsc__host_stub, true)
#define FORK_JUMP(symbol)		HOST_STUB(symbol, flexsc__host_jump, true)
#define RING(symbol)			HOST_STUB(symbol, flexsc__host_jump, false)
#include "runtime/base/symbols.def"
