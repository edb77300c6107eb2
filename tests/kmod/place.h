/* SPDX-License-Identifier: MIT */
/*
 * The processor on which a call executes, and calls that take long: for tests of the
 * policy, in a guest with four processors.
 */
#ifndef FLEXSC_TESTS_PLACE_H
#define FLEXSC_TESTS_PLACE_H

#include "raw.h"
#include "system.h"

#define SLOW_PARTS 1024

struct iovec;

/* texts that entries write to the kernel's trace */
extern char marks[2][32];

int place_set(const struct flexsc_policy *policy);
/* A policy with these cores; -1: no core. */
struct flexsc_policy place_on(int first, int second);
/* A test with "raw", which has eight pages, and a policy with these cores. */
#define PLACE_TEST(id, first, second)	PLACE_TEST_LIMIT(id, 20, first, second)
#define PLACE_TEST_LIMIT(id, seconds, first, second)			\
	TEST_BETWEEN(id, seconds, place_begin(first, second), raw_close(&raw))

void place_begin(int first, int second);
void place_begin_with(uint32_t pages, int first, int second);
/*
 * Posts an entry that writes a mark to the kernel's trace, which shows the
 * processor. (The thread may be on another one later, and getcpu() is refused.)
 */
void place_mark(uint32_t index, uint8_t flags, int which);
/* The processor on which a mark was written; -1: it wasn't written. */
int place_marked(int which);
/* Makes a call, and returns the processor on which it executed. */
int place_where(uint8_t flags);
void place_call(void);
uint8_t place_status(uint32_t index);
/* Does the entry get this status within this time, without a kick? */
bool place_becomes(uint32_t index, uint8_t wanted, int ms);
/* Does the core become free again, perhaps with a delay? */
bool place_returns_to(int core);
/*
 * At least once, do nearly all calls execute on the core? The next core may execute
 * some when the host stands still for a millisecond.
 */
bool place_prefers(int core);
/* Buffers for a read from /dev/urandom that takes many seconds. */
struct iovec *place_slow_parts(void);
/* Posts an entry that keeps a core busy until it is interrupted. */
void place_post_slow(uint32_t index);

#endif /* FLEXSC_TESTS_PLACE_H */
