/* SPDX-License-Identifier: MIT */
/*
 * Which processor a call is executed on, and calls that take long: for tests of
 * the policy, in a guest with four processors.
 */
#ifndef FLEXSC_TESTS_PLACE_H
#define FLEXSC_TESTS_PLACE_H

#include "raw.h"

#define TRACING	"/sys/kernel/tracing/"
#define SLOW_PARTS 1024

struct iovec;

extern char marks[2][32];	/* what entries write to the trace */

int place_set(const struct flexsc_policy *policy);
/* A policy of these cores; -1: none. */
struct flexsc_policy place_on(int first, int second);
/* A test with "raw", of eight pages, and a policy of these cores. */
#define PLACE_TEST(id, first, second)	PLACE_TEST_LIMIT(id, 20, first, second)
#define PLACE_TEST_LIMIT(id, seconds, first, second)			\
	TEST_BETWEEN(id, seconds, place_begin(first, second), raw_close(&raw))

void place_begin(int first, int second);
void place_begin_with(uint32_t pages, int first, int second);
/*
 * The entry leaves its mark: the kernel's trace says on which processor. (That
 * isn't the same as where its thread is later, and getcpu() is refused.)
 */
void place_mark(uint32_t index, uint8_t flags, int which);
/* Where a mark was left; -1: nowhere. */
int place_marked(int which);
/* Where is a call executed? */
int place_where(uint8_t flags);
void place_call(void);
uint8_t place_status(uint32_t index);
/* Does the entry get there in so many milliseconds, with nobody's help? */
bool place_becomes(uint32_t index, uint8_t wanted, int ms);
/* The first is free again, if not at once. */
bool place_returns_to(int core);
/*
 * Are nearly all calls executed there, once, though the next core helps out
 * when the machine that this runs on stands still for a millisecond?
 */
bool place_prefers(int core);
/* To be read into from /dev/urandom: that takes many seconds. */
struct iovec *place_slow_parts(void);
/* An entry that keeps a core busy, unless it's interrupted. */
void place_post_slow(uint32_t index);

#endif /* FLEXSC_TESTS_PLACE_H */
