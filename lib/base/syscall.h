/* SPDX-License-Identifier: MIT */
/*
 * Plain system calls, without libc: they return the kernel's value and don't change
 * errno. Any thread and any signal handler may make them.
 */
#ifndef FLEXSC_SYSCALL_H
#define FLEXSC_SYSCALL_H

#include <stdint.h>
#include <sys/syscall.h>

#if defined(__clang_analyzer__)

/*
 * clang's analyzer doesn't see that the assembly writes memory, but assumes that an
 * unknown function may write to any memory.
 */
long raw_syscall(long nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
		 uint64_t a4, uint64_t a5);

#elif defined(__x86_64__)

static inline long raw_syscall(long nr, uint64_t a0, uint64_t a1, uint64_t a2,
			       uint64_t a3, uint64_t a4, uint64_t a5)
{
	register uint64_t r10 __asm__("r10") = a3;
	register uint64_t r8 __asm__("r8") = a4;
	register uint64_t r9 __asm__("r9") = a5;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a0), "S"(a1), "d"(a2), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#elif defined(__aarch64__)

/*
 * The kernel overwrites the first argument, in x0, with the result. A copy of the
 * argument stays in x7, so that a signal's handler can make the call again:
 * runtime/arch/aarch64/frame.h recognises the two instructions "mov" and "svc".
 */
static inline long raw_syscall(long nr, uint64_t a0, uint64_t a1, uint64_t a2,
			       uint64_t a3, uint64_t a4, uint64_t a5)
{
	register long x8 __asm__("x8") = nr;
	register uint64_t x0 __asm__("x0") = a0;
	register uint64_t x1 __asm__("x1") = a1;
	register uint64_t x2 __asm__("x2") = a2;
	register uint64_t x3 __asm__("x3") = a3;
	register uint64_t x4 __asm__("x4") = a4;
	register uint64_t x5 __asm__("x5") = a5;

	__asm__ volatile("mov x7, x0\n\tsvc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4),
			   "r"(x5)
			 : "x7", "memory");
	return (long)x0;
}

#else
#error "FlexSC supports only x86-64 and aarch64"
#endif

#define PTR(p)	((uint64_t)(uintptr_t)(p))

#endif /* FLEXSC_SYSCALL_H */
