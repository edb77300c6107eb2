// SPDX-License-Identifier: MIT
/*
 * Guest instructions of events: the time-stamp counter counts them where QEMU runs
 * with -icount shift=0. Prints medians, of a write() to a socket that is watched
 * by the writing thread:
 *
 *	delivered	beyond the write: the event is in memory
 *	upcall		beyond that: preempted, the event handled, resumed
 *
 * and of taking events that are in memory. "xsave" keeps the extended state.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/socket.h>

#include "tests/events/upcall/leaf.h"
#include "ecb.h"

enum { ROUNDS = 200 };

static struct ecb ecb;
static struct flexsc__upcall upcall;
static uint32_t taken;

/* U2 and U1, newest first. */
static void take_events(struct flexsc__upcall *unused)
{
	struct flexsc_event_control *control = ecb.control;

	(void)unused;
	while (__atomic_load_n(&control->pending, __ATOMIC_RELAXED)) {
		uint32_t next;

		__atomic_fetch_and(&control->pending, 0, __ATOMIC_SEQ_CST);
		next = __atomic_exchange_n(&control->head[0], 0,
					   __ATOMIC_ACQUIRE);
		while (next) {
			struct flexsc_event_slot *slot = &ecb.slots[next - 1];

			next = slot->next;
			__atomic_exchange_n(&slot->state, 0, __ATOMIC_ACQ_REL);
			taken++;
		}
	}
}

static inline uint64_t instructions(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t median(uint64_t counts[ROUNDS])
{
	qsort(counts, ROUNDS, sizeof(counts[0]), compare);
	return counts[ROUNDS / 2];
}

/* Of a write to a socket, on this thread. */
static uint64_t count_writes(int fds[2])
{
	uint64_t counts[ROUNDS];
	char byte;

	for (int i = 0; i < ROUNDS; i++) {
		const uint64_t start = instructions();

		raw_syscall(SYS_write, (uint64_t)fds[1], (uint64_t)"x", 1, 0, 0,
			    0);
		counts[i] = instructions() - start;
		CHECK_EQ(read(fds[0], &byte, 1), 1);
		if (ecb.control)
			take_events(&upcall);
	}
	return median(counts);
}

static uint64_t count_dequeuing(uint32_t events)
{
	uint64_t counts[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start;

		ecb.control->critical = 1;
		for (uint32_t j = 0; j < events; j++)
			ecb_post(&ecb, j, 0, POLLIN);
		start = instructions();
		take_events(&upcall);
		counts[i] = instructions() - start;
		ecb_store(&ecb.control->critical, 0);
	}
	return median(counts);
}

static void count_upcalls(int fds[2], enum leaf_keep keep, const char *name)
{
	uint64_t plain = count_writes(fds), delivered, whole;

	ecb_open(&ecb, 8, 0);
	CHECK(leaf_upcall(&upcall, ecb.control, keep));
	upcall.run = take_events;
	ecb.control->notify = 0;
	ecb_watch(&ecb, fds[0], POLLIN, 0);
	ecb_deliver(&ecb, 1);
	delivered = count_writes(fds);
	taken = 0;
	ecb.control->notify = 1;
	whole = count_writes(fds);
	CHECK_EQ(taken, ROUNDS);
	printf("%s: write %lu, delivered +%lu, upcall +%lu, whole %lu\n", name,
	       plain, delivered - plain, whole - delivered, whole - plain);
	ecb_close(&ecb);
	ecb.control = NULL;
}

TEST_LIMIT(count, 60)
{
	int fds[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	count_upcalls(fds, KEEP_PLAIN, "xsave");
	count_upcalls(fds, KEEP_NOTHING, "integer");
	ecb_open(&ecb, 128, 0);
	for (uint32_t i = 0; i < 100; i++)
		ecb_watch_user(&ecb, 0);
	for (uint32_t events = 1; events <= 100; events *= 10)
		printf("taking %u: %lu\n", events, count_dequeuing(events));
	ecb_close(&ecb);
	fflush(stdout);
}
