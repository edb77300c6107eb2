/* SPDX-License-Identifier: MIT */
/*
 * futex_waitv(2) and the later futex2 calls. Few programs use them, so a user thread
 * makes them on its host, and waits in the kernel. The bucket of each word counts the
 * wait, so that wake-ups by other calls find the waiter: ufutex.h, F1. Any thread.
 */
#include "calls.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>

#include "runtime/base/peek.h"
#include "runtime/counters/counters.h"
#include "runtime/sched/host.h"
#include "runtime/sched/sticky.h"
#include "bucket.h"
#include "perform.h"
#include "ufutex.h"

/* The calls' numbers, which libc's headers may lack. */
#define FUTEX2_WAKE	454
#define FUTEX2_WAIT	455
#define FUTEX2_REQUEUE	456

/*
 * Flags of a word that user threads wait for. With any other flag, the kernel takes the
 * same address for another futex.
 */
#define PLAIN	(FUTEX_32 | FUTEX_PRIVATE_FLAG)
#define WORDS	128U	/* the kernel's limit, FUTEX_WAITV_MAX */

/* Waiting. */

/*
 * The counters that a waiter has incremented. The waiter records them to decrement the
 * same ones later, because the program may change its list of words meanwhile.
 */
struct counted {
	_Atomic uint32_t *counts[WORDS];
	unsigned int n;
};

static void count(struct counted *counted, uint64_t word, uint64_t flags)
{
	_Atomic uint32_t *kernels =
		&bucket_of((uint32_t *)(uintptr_t)word)->kernels;

	if (!(flags & FUTEX_PRIVATE_FLAG))
		return;
	atomic_fetch_add(kernels, 1);
	counted->counts[counted->n++] = kernels;
}

static void discount(void *arg)
{
	const struct counted *counted = arg;

	for (unsigned int i = 0; i < counted->n; i++)
		atomic_fetch_sub(counted->counts[i], 1);
}

static void count_all(struct counted *counted, long nr, const uint64_t a[6])
{
	const struct futex_waitv *list = flexsc__arg_pointer(a[0]);

	if (nr == FUTEX2_WAIT) {
		count(counted, a[0], a[3]);
		return;
	}
	/* The kernel will reject an invalid list, so count nothing. */
	if (!a[1] || a[1] > WORDS ||
	    !peek_can_read(a[0], a[1] * sizeof(*list)))
		return;
	for (uint64_t i = 0; i < a[1]; i++)
		count(counted, list[i].uaddr, list[i].flags);
}

static long wait_in_kernel(struct uthread *u, long nr, const uint64_t a[6])
{
	struct counted counted = { .n = 0 };
	long ret;

	/* F1: before the kernel reads the words; pairs with F2 in ufutex.c. */
	count_all(&counted, nr, a);
	/* If the wait is cancelled, undo the counting. */
	pthread_cleanup_push(discount, &counted);
	if (u)
		ret = flexsc__perform_exposed(u, nr, a);
	else
		ret = flexsc__perform_plainly(nr, a);
	pthread_cleanup_pop(1);
	return ret;
}

static long wait(struct uthread *u, long nr, const uint64_t a[6])
{
	long ret;

	if (!u)
		return wait_in_kernel(NULL, nr, a);
	u->cause = counters_cause(nr);
	flexsc__sticky_wait(u);
	flexsc__return_to_host(u);
	ret = wait_in_kernel(u, nr, a);
	u->way = WAY_ON_HOST;
	return ret;
}

/* Waking. */

/* Let the kernel check the arguments by a wake-up of 0 waiters, then wake waiters. */
static long futex2_wake(struct uthread *u, uint64_t word, uint64_t bits,
			uint64_t n, uint64_t flags)
{
	const uint64_t old[6] = { word, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG,
				  n, 0, 0, bits };
	long err;

	if (flags != PLAIN || (int32_t)n <= 0)
		return raw_syscall(FUTEX2_WAKE, word, bits, n, flags, 0, 0);
	err = raw_syscall(FUTEX2_WAKE, word, bits, 0, flags, 0, 0);
	return err ? err : flexsc__ufutex(u, old);
}

/*
 * Requeue waiters. If the kernel moved them to a private word, that word's bucket would
 * not count them. So if ufutex.c can't requeue, wake all of them instead; they check
 * their words again.
 */
static long futex2_move(struct uthread *u, const struct futex_waitv pair[2],
			const uint64_t a[6])
{
	const uint64_t old[6] = {
		pair[0].uaddr, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, a[2],
		a[3], pair[1].uaddr, pair[0].val,
	};
	uint64_t n = (a[2] & INT32_MAX) + (a[3] & INT32_MAX);

	if (pair[0].flags == PLAIN && pair[1].flags == PLAIN)
		return flexsc__ufutex(u, old);
	return futex2_wake(u, pair[0].uaddr, FUTEX_BITSET_MATCH_ANY,
			   n < INT32_MAX ? n : INT32_MAX, pair[0].flags);
}

static long futex2_requeue(struct uthread *u, const uint64_t a[6])
{
	const struct futex_waitv *pair = flexsc__arg_pointer(a[0]);
	long err = raw_syscall(FUTEX2_REQUEUE, a[0], a[1], 0, 0, 0, 0);

	if (err)
		return err;
	if ((int32_t)a[2] < 0 || (int32_t)a[3] < 0 ||
	    !((pair[0].flags | pair[1].flags) & FUTEX_PRIVATE_FLAG))
		return raw_syscall(FUTEX2_REQUEUE, a[0], a[1], a[2], a[3], 0,
				   0);
	return futex2_move(u, pair, a);
}

long flexsc__futex2(struct uthread *u, long nr, const uint64_t a[6])
{
	switch (nr) {
	case FUTEX2_WAKE:
		return futex2_wake(u, a[0], a[1], a[2], a[3]);
	case FUTEX2_REQUEUE:
		return futex2_requeue(u, a);
	default:
		return wait(u, nr, a);
	}
}
