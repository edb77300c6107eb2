/* SPDX-License-Identifier: MIT */
/*
 * Hints that tell the compiler what is rare. Where a call's common way ends in
 * a branch to something rare, that is COLD: a function of its own that costs
 * the common way nothing, not even saved registers, and that is never expected.
 */
#ifndef FLEXSC_COMPILER_H
#define FLEXSC_COMPILER_H

#define COLD	__attribute__((cold, noinline))
#define unlikely(x)	__builtin_expect(!!(x), 0)

#endif /* FLEXSC_COMPILER_H */
