/* SPDX-License-Identifier: MIT */
/*
 * Wrappers that bring the calling thread home, and then run the real function
 * with all arguments as they came, whatever they are: libc/x86_64/host_stub.S.
 */
#ifndef FLEXSC_RUNTIME_HOST_STUB_H
#define FLEXSC_RUNTIME_HOST_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/counters/run_page.h"
#include "runtime/base/interpose.h"

struct stub {
	uint16_t which;		/* enum real: the function to run */
	uint16_t cause;		/* enum cause: for coming home */
	bool forks;		/* it makes a process */
};

/* The result of flexsc__stay_home(), in two registers. */
struct at_home {
	void *function;
	uint64_t outermost;	/* sched/host.h: struct stay */
};

/* Come home, and stay there until flexsc__stayed_home(at_home.outermost). */
struct at_home flexsc__stay_home(const struct stub *stub);
void flexsc__stayed_home(uint64_t outermost);

/*
 * Come home for a function, and return that function. args: its integer arguments; only
 * functions that come by flexsc__home_jump need them, others may pass NULL.
 */
void *flexsc__go_home(const struct stub *stub, const uint64_t args[6]);

/* Defines the function "symbol": r11 gets the record's address, then "jump". */
#define STUB_TEXT(symbol, record, jump)					\
	__asm__(".text\n"						\
		".globl " #symbol "\n"					\
		".type " #symbol ", @function\n"			\
		".p2align 4\n"						\
		#symbol ":\n"						\
		".cfi_startproc\n"					\
		"leaq " #record "(%rip), %r11\n"			\
		jump "\n"						\
		".cfi_endproc\n"					\
		".size " #symbol ", . - " #symbol "\n");

#define HOME_STUB(symbol, entry, forks)					\
	__attribute__((used)) static const struct stub stub_##symbol = { \
		REAL_##symbol, CAUSE_##symbol, forks			\
	};								\
	STUB_TEXT(symbol, stub_##symbol, "jmp " #entry)

#endif /* FLEXSC_RUNTIME_HOST_STUB_H */
