/* SPDX-License-Identifier: MIT */
#include "interpose.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "objects.h"

#define CALLS	512	/* bound of system-call numbers */

/* __nptl_nthreads is libc's count of threads. */
static const char *const names[REALS + 1] = {
#define SYMBOL(symbol)	#symbol,
#include "symbols.def"
	"__nptl_nthreads",
};

/* The number of the system call that the function makes, plus 1; or 0. */
static const uint16_t numbers[REALS] = {
#define CALL(symbol, params, nr, ...)	[REAL_##symbol] = (nr) + 1,
#define POINT(symbol, params, nr, ...)	[REAL_##symbol] = (nr) + 1,
#define MADE(symbol, nr)		[REAL_##symbol] = (nr) + 1,
#include "symbols.def"
};

static struct definition found[REALS + 1];
static bool foreign_calls[CALLS];
static bool known;

/*
 * Runs as a constructor, or earlier if another library's constructor needs one of the
 * functions. The process has only one thread in both cases.
 */
__attribute__((constructor)) static void find_all(void)
{
	if (known)
		return;
	flexsc__objects_find(names, found, REALS + 1);
	for (unsigned int i = 0; i < REALS; i++)
		if (found[i].foreign && numbers[i])
			foreign_calls[numbers[i] - 1] = true;
#ifdef SYS_select
	/* libc's select() calls pselect6(2), so record this number, too. */
	foreign_calls[SYS_pselect6] |= foreign_calls[SYS_select];
#endif
	known = true;
}

void *flexsc__real_if_any(enum real which)
{
	find_all();
	return found[which].address;
}

void *flexsc__real(enum real which)
{
	void *function = flexsc__real_if_any(which);

	/* dlsym() also finds the function in a library that was loaded later. */
	if (!function)
		function = dlsym(RTLD_NEXT, names[which]);
	if (!function) {
		fprintf(stderr, "flexsc: run: no library of this program "
				"defines %s(), which it calls\n",
			names[which]);
		abort();
	}
	return function;
}

void *flexsc__real_foreign(enum real which)
{
	find_all();
	return found[which].foreign ? found[which].address : NULL;
}

const char *flexsc__real_foreign_call(bool (*is)(long nr))
{
	for (unsigned int i = 0; i < REALS; i++)
		if (found[i].foreign && numbers[i] && is(numbers[i] - 1))
			return names[i];
	return NULL;
}

bool flexsc__real_is_foreign_call(long nr)
{
	return nr >= 0 && nr < CALLS && foreign_calls[nr];
}

_Atomic unsigned int *flexsc__real_count(void)
{
	find_all();
	return found[REALS].address;
}
