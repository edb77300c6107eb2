/* SPDX-License-Identifier: MIT */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE	64

static uint32_t chance(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/*
 * Fill "order" with the numbers below n in a shuffled order, the same in every
 * run.
 */
static void shuffled(uint16_t *order, unsigned int n)
{
	uint32_t state = 88172645;

	for (unsigned int i = 0; i < n; i++) {
		unsigned int j = chance(&state) % (i + 1);

		order[i] = order[j];
		order[j] = (uint16_t)i;
	}
}

static void unit_done(struct bench_work *work, uint32_t result)
{
	work->sum += result;
	work->next = (work->next + 1) % BENCH_WORK_PERIOD;
	work->units++;
}

/* The tree. */

#define NODES	1535
#define LEVELS	10

struct node {
	uint32_t key, text;
	uint32_t kind;
	uint32_t unused;
	struct node *side[2];	/* children; the root where a child is missing */
};

_Static_assert(sizeof(struct node) * (NODES + 1) == 49152, "as work.h says");

#define MIX(n, part)	((n) * 2654435761u + (part) * 2246822519u)

/* A branch to predict: the compiler can't move the load before it. */
#define STEP(n, part) \
	if ((node->text ^ x) >> (((n) + 7 * (part)) % 29) & 1) \
		x += node->side[(part) & 1]->key ^ MIX(n, part); \
	x = (x << (((n) + (part)) % 31 + 1) | \
	     x >> (31 - ((n) + (part)) % 31)) + (node->key ^ MIX(part, n));

#define KIND(n) \
static uint32_t kind_##n(const struct node *node, uint32_t x) \
{ \
	STEP(0##n, 0) \
	STEP(0##n, 1) \
	STEP(0##n, 2) \
	return x ^ x >> 15; \
}

/* The functions are numbered with two octal digits: kind_00() to kind_77(). */
#define EIGHT(each, n) \
	each(n##0) each(n##1) each(n##2) each(n##3) \
	each(n##4) each(n##5) each(n##6) each(n##7)
#define ALL(each) \
	EIGHT(each, 0) EIGHT(each, 1) EIGHT(each, 2) EIGHT(each, 3) \
	EIGHT(each, 4) EIGHT(each, 5) EIGHT(each, 6) EIGHT(each, 7)
#define NAME(n)	kind_##n,

ALL(KIND)

static uint32_t (*const kinds[])(const struct node *node, uint32_t x) = {
	ALL(NAME)
};

#define KINDS	(sizeof(kinds) / sizeof(kinds[0]))

static void unit_of_tree(struct bench_work *work)
{
	const struct node *node = work->place;
	uint32_t x = (work->next + 1) * 2654435761u;

	for (int level = 0; level < LEVELS; level++) {
		x = kinds[node->kind](node, x);
		node = node->side[x >> 31];
	}
	unit_done(work, x);
}

static void make_tree(struct bench_work *work, uint16_t *order)
{
	struct node *nodes = work->memory;
	uint32_t state = 2463534242;

	shuffled(order, NODES);
	for (unsigned int i = 0; i < NODES; i++) {
		struct node *node = &nodes[order[i]];

		node->key = chance(&state);
		node->text = chance(&state);
		node->kind = chance(&state) % KINDS;
		for (unsigned int side = 0; side < 2; side++) {
			unsigned int child = 2 * i + 1 + side;

			node->side[side] =
				&nodes[order[child < NODES ? child : 0]];
		}
	}
	work->place = &nodes[order[0]];
	work->unit = unit_of_tree;
}

/* The heap. */

#define OBJECTS	4096
#define VISITS	(OBJECTS / BENCH_WORK_PERIOD)

struct object {
	struct object *next;
	uint32_t kind;
	uint32_t count;
	uint32_t fields[12];
};

_Static_assert(sizeof(struct object) * OBJECTS == 262144, "as work.h says");

static void unit_of_heap(struct bench_work *work)
{
	struct object *object = work->place;
	uint32_t x = 0;

	for (int i = 0; i < VISITS; i++) {
		if (object->kind & 1)
			x = x * 31 + object->fields[object->kind >> 29];
		else
			object->count++;
		x ^= object->kind;
		object = object->next;
	}
	work->place = object;
	unit_done(work, x);
}

static void make_heap(struct bench_work *work, uint16_t *order)
{
	struct object *objects = work->memory;
	uint32_t state = 2463534242;

	shuffled(order, OBJECTS);
	for (unsigned int i = 0; i < OBJECTS; i++) {
		struct object *object = &objects[order[i]];

		object->next = &objects[order[(i + 1) % OBJECTS]];
		object->kind = chance(&state);
		for (int j = 0; j < 12; j++)
			object->fields[j] = chance(&state);
	}
	work->place = &objects[order[0]];
	work->unit = unit_of_heap;
}

static const struct {
	const char *name;
	size_t size;
	void (*make)(struct bench_work *work, uint16_t *order);
} works[] = {
	{ "tree", sizeof(struct node) * (NODES + 1), make_tree },
	{ "heap", sizeof(struct object) * OBJECTS, make_heap },
};

static int ready(struct bench_work *work, size_t size,
		 void (*make)(struct bench_work *work, uint16_t *order))
{
	uint16_t order[OBJECTS];

	memset(work, 0, sizeof(*work));
	work->memory = aligned_alloc(LINE, size);
	if (!work->memory) {
		fputs("flexsc: study: work: out of memory\n", stderr);
		return 1;
	}
	memset(work->memory, 0, size);
	make(work, order);
	bench_work_run(work, BENCH_WORK_PERIOD);
	work->period = work->sum;
	return 0;
}

int bench_work_init(struct bench_work *work, const char *name)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		if (!strcmp(works[i].name, name))
			return ready(work, works[i].size, works[i].make);
	fprintf(stderr, "flexsc: study: work=%s: give tree or heap\n", name);
	return 1;
}

void bench_work_fini(struct bench_work *work)
{
	free(work->memory);
}

int bench_work_check(const struct bench_work *work)
{
	uint64_t periods = work->units / BENCH_WORK_PERIOD;

	if (!work->next && work->sum == (uint32_t)periods * work->period)
		return 0;
	fputs("flexsc: study: work: the computed sum is wrong\n", stderr);
	return 1;
}
