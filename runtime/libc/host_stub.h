/* SPDX-License-Identifier: MIT */
/*
 * Wrappers that return the calling thread to its host, and then run the real function
 * with all arguments unchanged, whatever their types: x86_64/host_stub.S and
 * aarch64/host_stub.S. They run on the program's threads.
 */
#ifndef FLEXSC_RUNTIME_HOST_STUB_H
#define FLEXSC_RUNTIME_HOST_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/interpose.h"
#include "runtime/counters/run_page.h"

struct stub {
	uint16_t which;		/* enum real: the function to run */
	uint16_t cause;		/* enum cause: of the return to the host */
	bool forks;		/* the function makes a process */
};

/* The result of flexsc__stay_on_host(), in two registers. */
struct on_host {
	void *function;
	uint64_t stay;		/* STAY_... */
};

#define STAY_OUTERMOST	1U	/* sched/host.h: struct stay */
#define STAY_CHANGES	2U	/* the function changes all threads: sched/identity.h */

/* Return to the host, and stay there until flexsc__stayed_on_host(on_host.stay). */
struct on_host flexsc__stay_on_host(const struct stub *stub);
void flexsc__stayed_on_host(uint64_t stay);

/*
 * Return to the host. Returns the real function, which the caller then calls. args: the
 * function's integer arguments, for flexsc__host_jump only; other callers may pass
 * NULL.
 */
void *flexsc__go_to_host(const struct stub *stub, const uint64_t args[6]);

/*
 * Instructions: load the address of a record into r11 or x16; jump to a symbol; jump to
 * the target of the loaded record.
 */
#if defined(__x86_64__)
#define STUB_LOAD(record)	"leaq " #record "(%rip), %r11\n"
#define STUB_JUMP(code)		"jmp " #code "\n"
#define STUB_JUMP_TARGET	"jmpq *8(%r11)\n"
#elif defined(__aarch64__)
#define STUB_LOAD(record)	"adrp x16, " #record "\n"		\
				"add x16, x16, :lo12:" #record "\n"
#define STUB_JUMP(code)		"b " #code "\n"
#define STUB_JUMP_TARGET	"ldr x17, [x16, #8]\n"			\
				"br x17\n"
#endif

/*
 * Defines the function "symbol", which loads the record's address and executes the
 * instruction "jump".
 */
#define STUB_TEXT(symbol, record, jump)					\
	__asm__(".text\n"						\
		".globl " #symbol "\n"					\
		".type " #symbol ", %function\n"			\
		".p2align 4\n"						\
		#symbol ":\n"						\
		".cfi_startproc\n"					\
		STUB_LOAD(record)					\
		jump							\
		".cfi_endproc\n"					\
		".size " #symbol ", . - " #symbol "\n");

#define HOST_STUB(symbol, entry, forks)					\
	__attribute__((used)) static const struct stub stub_##symbol = { \
		REAL_##symbol, CAUSE_##symbol, forks			\
	};								\
	STUB_TEXT(symbol, stub_##symbol, STUB_JUMP(entry))

#endif /* FLEXSC_RUNTIME_HOST_STUB_H */
