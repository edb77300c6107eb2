/* SPDX-License-Identifier: MIT */
/*
 * Interposing libc: the exported symbols, and the functions that the program would call
 * without this library. Any thread.
 */
#ifndef FLEXSC_RUNTIME_INTERPOSE_H
#define FLEXSC_RUNTIME_INTERPOSE_H

#include <stdbool.h>

#define EXPORT	__attribute__((visibility("default")))

/* Interposed symbols. */
enum real {
#define SYMBOL(symbol)	REAL_##symbol,
#include "symbols.def"
	REALS
};

/*
 * The next definition of a symbol; aborts if there is no other one. All symbols are
 * looked up at the start, while the process has one thread.
 */
void *flexsc__real(enum real which);
/* As flexsc__real(), but NULL if there is no other definition. */
void *flexsc__real_if_any(enum real which);

#define REAL(name) ((__typeof__(&name))flexsc__real(REAL_##name))

/* The next definition of a symbol if it isn't libc's; else NULL. */
void *flexsc__real_foreign(enum real which);

/*
 * CALL, POINT and MADE: does a library other than libc define the function for this
 * system call? The second function returns the name of such a function whose system
 * call "is" accepts, or NULL.
 */
bool flexsc__real_is_foreign_call(long nr);
const char *flexsc__real_foreign_call(bool (*is)(long nr));

/* libc's count of threads; NULL if libc has none by that name. */
_Atomic unsigned int *flexsc__real_count(void);

#endif /* FLEXSC_RUNTIME_INTERPOSE_H */
