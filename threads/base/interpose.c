/* SPDX-License-Identifier: MIT */
#include "interpose.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[REALS] = {
#define CALL(...)
#define POINT(...)
#define HOME(symbol)		#symbol,
#define FORK(symbol)		#symbol,
#define FORK_JUMP(symbol)	#symbol,
#define OWN(symbol)		#symbol,
#define WAIT(symbol)		#symbol,
#define TRY(symbol)		#symbol,
#define RING(symbol)		#symbol,
#define RING_LATER(symbol)	#symbol,
#include "symbols.def"
};

static void *functions[REALS];
static _Atomic unsigned int *count;
static bool found, finding;

/*
 * Symbols that most programs lack. The program that calls one has it, so the
 * look-up succeeds then.
 */
static bool is_late(unsigned int which)
{
	return which >= FIRST_LATE;
}

static void real_find(unsigned int which)
{
	if (!functions[which])
		functions[which] = dlsym(RTLD_NEXT, names[which]);
}

/*
 * Another library's constructor may call this first, but there are no other
 * threads yet.
 */
__attribute__((constructor)) static void find_all(void)
{
	if (found || finding)
		return;
	finding = true;
	for (unsigned int i = 0; i < REALS; i++)
		if (!is_late(i))
			real_find(i);
	count = dlsym(RTLD_DEFAULT, "__nptl_nthreads");
	/*
	 * An older libc lacks some symbols; that is no error for the program to
	 * see.
	 */
	dlerror();
	found = true;
}

void *flexsc__real_if_any(enum real which)
{
	find_all();
	/*
	 * During a look-up, another function may be needed: dlsym() of a
	 * missing symbol may allocate, and the program's malloc() may lock.
	 */
	if (!found || is_late(which))
		real_find(which);
	return functions[which];
}

void *flexsc__real(enum real which)
{
	void *function = flexsc__real_if_any(which);

	if (!function) {
		fprintf(stderr, "flexsc: run: no %s() in this program\n",
			names[which]);
		abort();
	}
	return function;
}

_Atomic unsigned int *flexsc__real_count(void)
{
	find_all();
	return count;
}
