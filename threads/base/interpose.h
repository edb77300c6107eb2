/* SPDX-License-Identifier: MIT */
/*
 * Standing in front of libc: what is exported, and how to reach the function
 * that the program would have found. Any thread.
 */
#ifndef FLEXSC_THREADS_INTERPOSE_H
#define FLEXSC_THREADS_INTERPOSE_H

#define EXPORT	__attribute__((visibility("default")))

/* Interposed symbols whose real functions the library still calls. */
enum real {
#define CALL(...)
#define POINT(...)
#define HOME(symbol)		REAL_##symbol,
#define FORK(symbol)		REAL_##symbol,
#define FORK_JUMP(symbol)	REAL_##symbol,
#define OWN(symbol)		REAL_##symbol,
#define WAIT(symbol)		REAL_##symbol,
#define TRY(symbol)		REAL_##symbol,
#define RING(symbol)		REAL_##symbol,
#define RING_LATER(symbol)	REAL_##symbol,
#include "symbols.def"
#undef CALL
#undef POINT
#undef HOME
#undef FORK
#undef FORK_JUMP
#undef OWN
#undef WAIT
#undef TRY
#undef RING
#undef RING_LATER
	REALS
};

/* The symbols of RING_LATER(), and those behind them, are looked up late. */
#define FIRST_LATE	REAL_io_uring_clone_buffers

/*
 * The next definition of a symbol. All but the late ones are looked up at the start, because
 * later another thread may hold the dynamic loader's lock while it waits for
 * the calling thread: a library's constructor runs with that lock held.
 */
void *flexsc__real(enum real which);
/* As flexsc__real(), but NULL if there is no other definition. */
void *flexsc__real_if_any(enum real which);

#define REAL(name) ((__typeof__(&name))flexsc__real(REAL_##name))

/* libc's count of threads; NULL if libc has none by that name. */
_Atomic unsigned int *flexsc__real_count(void);

#endif /* FLEXSC_THREADS_INTERPOSE_H */
