/* SPDX-License-Identifier: MIT */
#include "maker.h"

#include <stddef.h>
#include <stdint.h>

#include "lib/base/futex.h"
#include "lib/pool/own_thread.h"

static _Atomic uint32_t woken;	/* number of wake-ups; the maker sleeps on it */

/* Protected by "queue". */
static struct lock queue;
static struct own_birth *first, *last;
static bool has_maker;

static bool queue_append(struct own_birth *birth)
{
	bool later;

	birth->next = NULL;
	lock(&queue);
	later = has_maker;
	if (later && first)
		last->next = birth;
	else if (later)
		first = birth;
	if (later)
		last = birth;
	unlock(&queue);
	return later;
}

static struct own_birth *queue_take(void)
{
	struct own_birth *birth;

	lock(&queue);
	birth = first;
	if (birth)
		first = birth->next;
	unlock(&queue);
	return birth;
}

/* Replaces the function in lib/pool/own_thread.c. */
int flexsc__own_thread_later(struct own_birth *birth)
{
	if (!queue_append(birth))
		return own_birth_make(birth);
	flexsc__maker_wake();
	return OWN_LATER;
}

void flexsc__maker_wake(void)
{
	atomic_fetch_add(&woken, 1);
	futex_wake(&woken);
}

uint32_t flexsc__maker_woken(void)
{
	return atomic_load(&woken);
}

void flexsc__maker_sleep(uint32_t before, uint64_t ns)
{
	futex_wait(&woken, before, ns);
}

void flexsc__maker_begin(void)
{
	lock(&queue);
	has_maker = true;
	unlock(&queue);
}

void flexsc__maker_make(void)
{
	struct own_birth *birth;

	while ((birth = queue_take()))
		if (own_birth_make(birth))
			birth->failed(birth->arg);
}

bool flexsc__maker_end(void)
{
	bool ends;

	lock(&queue);
	ends = !first;
	if (ends)
		has_maker = false;
	unlock(&queue);
	return ends;
}

void flexsc__maker_forget(void)
{
	atomic_store(&woken, 0);
	queue = (struct lock){ 0 };
	first = NULL;
	has_maker = false;
}
