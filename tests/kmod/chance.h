/* SPDX-License-Identifier: MIT */
/* Random numbers of a thread: the same sequence for the same seed. */
#ifndef FLEXSC_TESTS_CHANCE_H
#define FLEXSC_TESTS_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

extern __thread uint64_t chance_state;

static inline void chance_seed(uint64_t seed)
{
	chance_state = seed * 0x9e3779b97f4a7c15ULL | 1;
}

static inline uint64_t number(void)
{
	chance_state ^= chance_state << 13;
	chance_state ^= chance_state >> 7;
	chance_state ^= chance_state << 17;
	return chance_state;
}

static inline uint64_t below(uint64_t n)
{
	return number() % n;
}

static inline bool one_in(uint64_t n)
{
	return !below(n);
}

#endif /* FLEXSC_TESTS_CHANCE_H */
