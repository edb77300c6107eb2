/* SPDX-License-Identifier: MIT */
/*
 * Hints for rare branches. A COLD function contains a rare branch of a common path. As
 * a separate function it costs the common path nothing, not even saved registers. The
 * compiler assumes that calls of it are rare.
 */
#ifndef FLEXSC_COMPILER_H
#define FLEXSC_COMPILER_H

#define COLD	__attribute__((cold, noinline))
#define unlikely(x)	__builtin_expect(!!(x), 0)

#endif /* FLEXSC_COMPILER_H */
