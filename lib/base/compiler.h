/* SPDX-License-Identifier: MIT */
/*
 * Hints for rare branches. A COLD function holds a branch that the common path of a
 * call rarely takes. Being a separate function, it costs the common path nothing, not
 * even saved registers. The compiler expects branches to it not to be taken.
 */
#ifndef FLEXSC_COMPILER_H
#define FLEXSC_COMPILER_H

#define COLD	__attribute__((cold, noinline))
#define unlikely(x)	__builtin_expect(!!(x), 0)

#endif /* FLEXSC_COMPILER_H */
