/* SPDX-License-Identifier: MIT */
/*
 * Wrappers that bring the caller home and then run the real function with all
 * arguments as they came, whatever they are. arch/x86_64/home_stub.S.
 */
#ifndef FLEXSC_THREADS_HOME_STUB_H
#define FLEXSC_THREADS_HOME_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../run_page.h"

struct real {
	void *function;		/* NULL: not looked up yet */
	const char *name;
	uint16_t cause;		/* enum cause: why one comes home */
	bool forks;		/* there may be a process more afterwards */
};

/* What flexsc__stay_home() returns, in two registers. */
struct at_home {
	void *function;
	uint64_t outermost;	/* home.h: struct stay */
};

/* Come home, and don't leave before flexsc__stayed_home(at_home.outermost). */
struct at_home flexsc__stay_home(struct real *real);
void flexsc__stayed_home(uint64_t outermost);

/* Come home, for a function that is called with this as its second argument. */
void *flexsc__go_home(struct real *real, uint64_t second);

#define HOME_STUB(symbol, stub, forks)					\
	__attribute__((used)) static struct real real_##symbol = {	\
		NULL, #symbol, CAUSE_##symbol, forks			\
	};								\
	__asm__(".text\n"						\
		".globl " #symbol "\n"					\
		".type " #symbol ", @function\n"			\
		".p2align 4\n"						\
		#symbol ":\n"						\
		".cfi_startproc\n"					\
		"leaq real_" #symbol "(%rip), %r11\n"			\
		"jmp " #stub "\n"					\
		".cfi_endproc\n"					\
		".size " #symbol ", . - " #symbol "\n");

#endif /* FLEXSC_THREADS_HOME_STUB_H */
