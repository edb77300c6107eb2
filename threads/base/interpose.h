/* SPDX-License-Identifier: MIT */
/*
 * Standing in front of libc: what is exported, and how to reach the function
 * that the program would have found. Any thread.
 */
#ifndef FLEXSC_THREADS_INTERPOSE_H
#define FLEXSC_THREADS_INTERPOSE_H

#define EXPORT	__attribute__((visibility("default")))

/* Those of symbols.def behind which libc's own is still wanted. */
enum real {
#define CALL(...)
#define POINT(...)
#define HOME(symbol)		REAL_##symbol,
#define FORK(symbol)		REAL_##symbol,
#define FORK_JUMP(symbol)	REAL_##symbol,
#define OWN(symbol)		REAL_##symbol,
#define WAIT(symbol)		REAL_##symbol,
#define TRY(symbol)		REAL_##symbol,
#include "symbols.def"
#undef CALL
#undef POINT
#undef HOME
#undef FORK
#undef FORK_JUMP
#undef OWN
#undef WAIT
#undef TRY
	REALS
};

/*
 * The next definition of a symbol. All are looked up at the start: later the
 * dynamic loader's lock may be held by who waits for the caller, for it is held
 * while a library's constructor runs.
 */
void *flexsc__real(enum real which);
/* The same; NULL if there is none. */
void *flexsc__real_if_any(enum real which);

#define REAL(name) ((__typeof__(&name))flexsc__real(REAL_##name))

/* libc's number of threads; NULL: it keeps none under that name. */
_Atomic unsigned int *flexsc__real_count(void);

#endif /* FLEXSC_THREADS_INTERPOSE_H */
