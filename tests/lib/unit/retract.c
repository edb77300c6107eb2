/* SPDX-License-Identifier: MIT */
/*
 * flexsc__ring_retract() beside a model of the kernel's poller, which another loop may
 * wake at any time. The model makes some steps before each access of the owner to shared
 * memory, and the test tries all numbers of steps. Each call must execute exactly once.
 */
#include "tests/harness/harness.h"

#include "lib/base/syscall.h"
#include "lib/engine/ring.h"

#define REQUESTS	2U
#define GENUINE		1U	/* the operation of a request that isn't retracted */

/* The poller's next step. Awake, it makes these steps in turn. */
enum next {
	CLEAR_FLAG,		/* asleep, with the flag set */
	READ_TAIL,
	READ_REQUEST,
	STORE_HEAD,
	SET_FLAG,		/* and then sleep */
};

/* How many steps lead from a state back to it. */
#define CYCLE		8U

/* The owner's accesses, and what precedes them: the requests' publication. */
#define POINTS		(REQUESTS + 4)

static struct {
	enum next next;
	uint32_t at, tail;	/* the requests that the poller has seen */
	uint32_t executed[REQUESTS], refused[REQUESTS];
	unsigned int steps[POINTS], point;
} model;

static struct io_uring_sqe sqes[REQUESTS];
static uint32_t khead, ktail, kflags;

static void read_request(void)
{
	const uint32_t i = model.at++ % REQUESTS;

	if (sqes[i].opcode == GENUINE)
		model.executed[i]++;
	else
		model.refused[i]++;
}

static void poller_step(void)
{
	switch (model.next) {
	case CLEAR_FLAG:
		kflags = 0;
		model.next = READ_TAIL;
		break;
	case READ_TAIL:
		model.tail = ktail;
		model.next = model.at == model.tail ? SET_FLAG : READ_REQUEST;
		break;
	case READ_REQUEST:
		read_request();
		if (model.at == model.tail)
			model.next = STORE_HEAD;
		break;
	case STORE_HEAD:
		khead = model.at;
		model.next = READ_TAIL;
		break;
	case SET_FLAG:
		kflags = IORING_SQ_NEED_WAKEUP;
		model.next = CLEAR_FLAG;
		break;
	}
}

/* Called before each access of the owner. */
static void point(void)
{
	const unsigned int n = model.point < POINTS ? model.steps[model.point++] : 1;

	for (unsigned int i = 0; i < n; i++)
		poller_step();
}

/* The function to test, with the model's steps between its accesses. */
#define flexsc__ring_retract	retract
#define __atomic_store_n(...)	(point(), __atomic_store_n(__VA_ARGS__))
#define ring_head(ring)		(point(), ring_head(ring))
#define ring_poller_sleeps(ring) (point(), ring_poller_sleeps(ring))
#define raw_syscall(nr, time, ...) ((void)(time), poller_step())
#include "lib/engine/ring_retract.c"

/* Returns how many calls the owner makes itself. */
static uint32_t try_steps(const struct ring *ring)
{
	uint32_t first;

	memset(model.executed, 0, sizeof(model.executed));
	memset(model.refused, 0, sizeof(model.refused));
	for (uint32_t i = 0; i < REQUESTS; i++)
		sqes[i].opcode = GENUINE;
	model.point = 0;
	point();
	ktail += REQUESTS;
	first = retract(ring);
	for (uint32_t i = first; i != ktail; i++)
		model.executed[i % REQUESTS]++;
	while (khead != ktail)
		poller_step();
	for (uint32_t i = ktail - REQUESTS; i != first; i++)
		model.executed[i % REQUESTS] += model.refused[i % REQUESTS];
	for (uint32_t i = 0; i < REQUESTS; i++)
		CHECK_EQ(model.executed[i], 1);
	return ktail - first;
}

static bool next_steps(void)
{
	for (unsigned int i = 0; i < POINTS; i++) {
		if (model.steps[i]++ < CYCLE)
			return true;
		model.steps[i] = 0;
	}
	return false;
}

TEST_LIMIT(a_retracted_request_executes_once, 100)
{
	const struct ring ring = {
		.polled = true,
		.uring.sq = { .khead = &khead, .ktail = &ktail, .kflags = &kflags,
			      .sqes = sqes, .ring_mask = REQUESTS - 1 },
	};
	uint64_t left = 0, tries = 0;

	do {
		left += try_steps(&ring);
		tries++;
	} while (next_steps());
	test_note("the owner made %lu of %lu calls", (unsigned long)left,
		  (unsigned long)(tries * REQUESTS));
	CHECK(left && left < tries * REQUESTS);
}
