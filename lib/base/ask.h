/* SPDX-License-Identifier: MIT */
/*
 * System calls that the library makes on its own behalf: to query the kernel, to sleep,
 * or to wake another thread. Each thread counts its own calls. The loop for which the
 * thread works adds the count to its mode switches.
 */
#ifndef FLEXSC_ASK_H
#define FLEXSC_ASK_H

#include "syscall.h"

/* This thread's calls since its last asks_take(). */
extern _Thread_local uint32_t flexsc__asks;

static inline long ask(long nr, uint64_t a0, uint64_t a1, uint64_t a2,
		       uint64_t a3, uint64_t a4, uint64_t a5)
{
	flexsc__asks++;
	return raw_syscall(nr, a0, a1, a2, a3, a4, a5);
}

static inline uint32_t asks_take(void)
{
	uint32_t asks = flexsc__asks;

	flexsc__asks = 0;
	return asks;
}

#endif /* FLEXSC_ASK_H */
