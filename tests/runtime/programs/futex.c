/* SPDX-License-Identifier: MIT */
/* futex(2), called directly by programs. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "threads.h"

#define THREADS	8

static _Atomic uint32_t first, second;
static atomic_int waiting, woken;

static long futex(_Atomic uint32_t *word, int op, uint32_t value, uintptr_t more,
		  _Atomic uint32_t *other, uint32_t bits)
{
	long ret = syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value,
			   more, other, bits);

	return ret < 0 ? -errno : ret;
}

static long wake(_Atomic uint32_t *word, uint32_t n)
{
	return futex(word, FUTEX_WAKE, n, 0, NULL, 0);
}

static void *await(void *arg)
{
	waiting++;
	CHECK_EQ(futex(arg, FUTEX_WAIT, 0, 0, NULL, 0), 0);
	woken++;
	return NULL;
}

/* A thread that has set "waiting" may not be waiting yet. */
static void await_waiters(int n)
{
	while (waiting < n)
		usleep(1000);
	settle();
	await_quiet();
}

static void start_waiters(pthread_t *threads, _Atomic uint32_t *word, int n)
{
	waiting = 0;
	start_all(threads, n, await, (void *)word);
	await_waiters(n);
}

static void expect_woken(int n)
{
	while (woken < n)
		usleep(1000);
	settle();
	CHECK_EQ(woken, n);
}

TEST(a_wake_wakes_the_number_asked_for)
{
	pthread_t threads[THREADS];

	CHECK_EQ(wake(&first, 1), 0);
	start_waiters(threads, &first, THREADS);
	CHECK_EQ(wake(&second, THREADS), 0);
	CHECK_EQ(wake(&first, 3), 3);
	expect_woken(3);
	CHECK_EQ(wake(&first, INT32_MAX), THREADS - 3);
	join_all(threads, THREADS);
}

TEST(a_wait_for_a_changed_word_fails)
{
	const struct timespec soon = { 0, 20000000 }, wrong = { 0, -1 };
	uint64_t begin = now_ns();

	CHECK_EQ(futex(&first, FUTEX_WAIT, 1, 0, NULL, 0), -EAGAIN);
	CHECK_EQ(futex(&first, FUTEX_WAIT, 0, (uintptr_t)&wrong, NULL, 0),
		 -EINVAL);
	CHECK_EQ(futex(&first, FUTEX_WAIT, 0, (uintptr_t)&soon, NULL, 0),
		 -ETIMEDOUT);
	CHECK(now_ns() - begin >= 20 * MS);
	CHECK_EQ(futex(&first, FUTEX_WAIT_BITSET, 0, 0, NULL, 0), -EINVAL);
	CHECK_EQ(futex(&first, FUTEX_WAKE_BITSET, 1, 0, NULL, 0), -EINVAL);
	CHECK_EQ(futex(NULL, FUTEX_WAIT, 0, 0, NULL, 0), -EFAULT);
	CHECK_EQ(futex((_Atomic uint32_t *)((char *)&first + 1), FUTEX_WAIT, 0,
		       0, NULL, 0), -EINVAL);
}

static void *await_bit(void *arg)
{
	waiting++;
	CHECK_EQ(futex(&first, FUTEX_WAIT_BITSET, 0, 0, NULL,
		       1U << (uintptr_t)arg), 0);
	woken++;
	return NULL;
}

TEST(bits_select_the_waiters_to_wake)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		threads[i] = start(await_bit, (void *)i);
	await_waiters(4);
	CHECK_EQ(futex(&first, FUTEX_WAKE_BITSET, INT32_MAX, 0, NULL, 16), 0);
	CHECK_EQ(futex(&first, FUTEX_WAKE_BITSET, INT32_MAX, 0, NULL, 5), 2);
	expect_woken(2);
	CHECK_EQ(futex(&first, FUTEX_WAKE_BITSET, 1, 0, NULL, 10), 1);
	CHECK_EQ(wake(&first, INT32_MAX), 1);
	join_all(threads, 4);
}

TEST(waiters_are_moved_to_another_word)
{
	pthread_t threads[THREADS];

	start_waiters(threads, &first, THREADS);
	CHECK_EQ(futex(&first, FUTEX_CMP_REQUEUE, 1, INT32_MAX, &second, 1),
		 -EAGAIN);
	CHECK_EQ(futex(&first, FUTEX_CMP_REQUEUE, 1, 2, &second, 0), 3);
	expect_woken(1);
	CHECK_EQ(wake(&second, INT32_MAX), 2);
	expect_woken(3);
	CHECK_EQ(futex(&first, FUTEX_REQUEUE, 2, INT32_MAX, &second, 0),
		 THREADS - 3);
	expect_woken(5);
	CHECK_EQ(wake(&first, INT32_MAX), 0);
	CHECK_EQ(wake(&second, INT32_MAX), THREADS - 5);
	join_all(threads, THREADS);
}

#define OP(op, arg, cmp, with) \
	FUTEX_OP((FUTEX_OP_##op), arg, FUTEX_OP_CMP_##cmp, with)

/*
 * Checks the value that one operation leaves in "second", and the threads that it
 * wakes.
 */
static void operate(uint32_t before, uint32_t code, uint32_t after, int also)
{
	pthread_t a[2], b[2];

	woken = 0;
	first = 0;
	second = 0;
	start_waiters(a, &first, 2);
	start_waiters(b, &second, 2);
	second = before;
	CHECK_EQ(futex(&first, FUTEX_WAKE_OP, 1, 2, &second, code), 1 + also);
	CHECK_EQ(second, after);
	expect_woken(1 + also);
	CHECK_EQ(wake(&first, 2), 1);
	CHECK_EQ(wake(&second, 2), 2 - also);
	join_all(a, 2);
	join_all(b, 2);
}

TEST(a_wake_may_change_a_word_and_wake_others)
{
	operate(5, OP(SET, 7, EQ, 5), 7, 2);
	operate(5, OP(ADD, 3, NE, 5), 8, 0);
	operate(6, OP(OR, 9, LT, 7), 15, 2);
	operate(15, OP(ANDN, 6, GT, 15), 9, 0);
	operate(5, OP(XOR, 1, GE, 5), 4, 2);
	operate(0, OP(SET | FUTEX_OP_OPARG_SHIFT, 4, LE, 0), 16, 2);
	operate((uint32_t)-3, OP(ADD, 0xfff, LT, 0), (uint32_t)-4, 2);
	CHECK_EQ(futex(&first, FUTEX_WAKE_OP, 1, 1, &second, 7U << 28),
		 -ENOSYS);
}

static void *cancelled(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	waiting++;
	futex(&first, FUTEX_WAIT, 0, 0, NULL, 0);
	return arg;
}

TEST(a_wait_is_cancelled_at_any_moment)
{
	for (int i = 0; i < 20; i++) {
		pthread_t thread;

		waiting = 0;
		thread = start(cancelled, NULL);
		while (!waiting)
			usleep(100);
		usleep((unsigned int)i * 300);
		CHECK_EQ(pthread_cancel(thread), 0);
		CHECK(join(thread) == PTHREAD_CANCELED);
		CHECK_EQ(wake(&first, 1), 0);
	}
}

/* The newer calls, by their numbers, because headers and kernel may lack them. */

#define CALL_WAITV	449
#define CALL_WAKE	454
#define CALL_WAIT	455
#define CALL_REQUEUE	456
#define PRIVATE		(FUTEX_32 | FUTEX_PRIVATE_FLAG)
#define ALL_BITS	0xffffffffUL

static long newer(long nr, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
	long ret = syscall(nr, a, b, c, d, 0, CLOCK_MONOTONIC);

	return ret < 0 ? -errno : ret;
}

static long newer_wake(_Atomic uint32_t *word, uintptr_t n)
{
	return newer(CALL_WAKE, (uintptr_t)word, ALL_BITS, n, PRIVATE);
}

static struct futex_waitv element(_Atomic uint32_t *word)
{
	return (struct futex_waitv){ .uaddr = (uintptr_t)word,
				     .flags = PRIVATE };
}

static long wait_by(long nr)
{
	struct futex_waitv both[2] = { element(&second), element(&first) };

	switch (nr) {
	case CALL_WAITV:
		/* Returns the index of the futex that was woken. */
		return newer(nr, (uintptr_t)both, 2, 0, 0) - 1;
	case CALL_WAIT:
		return newer(nr, (uintptr_t)&first, 0, ALL_BITS, PRIVATE);
	default:
		return futex(&first, FUTEX_WAIT, 0, 0, NULL, 0);
	}
}

static void *await_by(void *arg)
{
	waiting++;
	CHECK_EQ(wait_by((long)arg), 0);
	woken++;
	return NULL;
}

static void need_newer(void)
{
	if (newer_wake(&first, 1) == -ENOSYS)
		SKIP("futex_wake() came with Linux 6.7");
}

static void wakes_each(long (*wake_by)(_Atomic uint32_t *word, uintptr_t n))
{
	static const long ways[] = { SYS_futex, CALL_WAIT, CALL_WAITV };
	pthread_t threads[3];

	waiting = 0;
	woken = 0;
	for (int i = 0; i < 3; i++)
		threads[i] = start(await_by, (void *)ways[i]);
	await_waiters(3);
	CHECK_EQ(wake_by(&first, 2), 2);
	expect_woken(2);
	CHECK_EQ(wake_by(&first, 2), 1);
	join_all(threads, 3);
	CHECK_EQ(wake_by(&first, 1), 0);
}

static long older_wake(_Atomic uint32_t *word, uintptr_t n)
{
	return wake(word, (uint32_t)n);
}

TEST(newer_calls_and_older_ones_wake_each_other)
{
	need_newer();
	wakes_each(older_wake);
	wakes_each(newer_wake);
}

TEST(newer_calls_move_waiters)
{
	struct futex_waitv pair[2] = { element(&first), element(&second) };
	pthread_t threads[THREADS];

	need_newer();
	start_waiters(threads, &first, THREADS);
	pair[0].val = 1;
	CHECK_EQ(newer(CALL_REQUEUE, (uintptr_t)pair, 0, 1, 1), -EAGAIN);
	pair[0].val = 0;
	CHECK_EQ(newer(CALL_REQUEUE, (uintptr_t)pair, 0, 1, 2), 3);
	expect_woken(1);
	CHECK_EQ(newer_wake(&second, THREADS), 2);
	expect_woken(3);
	CHECK_EQ(wake(&first, THREADS), THREADS - 3);
	join_all(threads, THREADS);
}

static void *cancelled_newer(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	waiting++;
	wait_by((long)arg);
	return arg;
}

TEST(newer_calls_fail_and_time_out_as_older_ones)
{
	struct futex_waitv wrong = element(&first);
	struct timespec past = { 0, 0 };
	pthread_t thread;

	need_newer();
	CHECK_EQ(newer(CALL_WAITV, 8, 1, 0, 0), -EFAULT);
	CHECK_EQ(newer(CALL_WAITV, (uintptr_t)&wrong, 129, 0, 0), -EINVAL);
	CHECK_EQ(newer(CALL_WAITV, (uintptr_t)&wrong, 1, 0, (uintptr_t)&past),
		 -ETIMEDOUT);
	wrong.val = 1;
	CHECK_EQ(newer(CALL_WAITV, (uintptr_t)&wrong, 1, 0, 0), -EAGAIN);
	wrong.flags = 0x1000;
	CHECK_EQ(newer(CALL_WAITV, (uintptr_t)&wrong, 1, 0, 0), -EINVAL);
	CHECK_EQ(newer(CALL_WAKE, (uintptr_t)&first, 0, 1, PRIVATE), -EINVAL);
	CHECK_EQ(newer(CALL_WAKE, (uintptr_t)&first + 1, 1, 1, PRIVATE),
		 -EINVAL);
	CHECK_EQ(newer(CALL_WAKE, (uintptr_t)&first, 1ULL << 32, 1, PRIVATE),
		 -EINVAL);
	CHECK_EQ(newer(CALL_REQUEUE, 8, 0, 1, 1), -EFAULT);
	waiting = 0;
	thread = start(cancelled_newer, (void *)CALL_WAITV);
	while (!waiting)
		usleep(1000);
	settle();
	CHECK_EQ(pthread_cancel(thread), 0);
	CHECK(join(thread) == PTHREAD_CANCELED);
	CHECK_EQ(wake(&first, 1), 0);
}

/* Memory that isn't mapped, or has the wrong permissions or alignment. */

static char *pages;

static void is_refused(_Atomic uint32_t *bad)
{
	const struct timespec soon = { 0, 1000000 };

	CHECK_EQ(futex(bad, FUTEX_WAIT, 0, 0, NULL, 0), -EFAULT);
	CHECK_EQ(futex(bad, FUTEX_WAIT, 0, (uintptr_t)&soon, NULL, 0), -EFAULT);
	CHECK_EQ(futex(bad, FUTEX_WAIT_BITSET, 0, 0, NULL, 1), -EFAULT);
	CHECK_EQ(futex(bad, FUTEX_WAIT_BITSET, 0, 0, NULL, 0), -EINVAL);
	CHECK_EQ(futex(bad, FUTEX_CMP_REQUEUE, 1, 1, &second, 0), -EFAULT);
	CHECK_EQ(futex(&first, FUTEX_WAKE_OP, 1, 1, bad, OP(ADD, 1, EQ, 0)),
		 -EFAULT);
}

static void *refuse(void *arg)
{
	_Atomic uint32_t *words = (void *)pages, *last = words + 1023;
	_Atomic uint32_t *kernel_s = (void *)(uintptr_t)(1ULL << 63);
	/* Nothing is mapped at such low addresses. */
	_Atomic uint32_t *lowest = (void *)8192;
	_Atomic uint32_t *odd = (void *)((char *)&second + 2);

	is_refused(words + 1024);
	is_refused(lowest);
	is_refused(kernel_s);
	CHECK_EQ(wake(words + 1024, 1), 0);
	CHECK_EQ(wake(kernel_s, 1), -EFAULT);
	CHECK_EQ(futex(&first, FUTEX_REQUEUE, 1, 1, kernel_s, 0), -EFAULT);
	CHECK_EQ(futex(&first, FUTEX_CMP_REQUEUE, 1, 1, odd, 0), -EINVAL);
	CHECK_EQ(futex(&first, FUTEX_WAKE_OP, 1, 1, odd, 0), -EINVAL);
	/* A word that can only be read can be waited for. */
	CHECK_EQ(futex(last, FUTEX_WAIT, 1, 0, NULL, 0), -EAGAIN);
	CHECK_EQ(futex(last, FUTEX_CMP_REQUEUE, 1, 1, &second, 1), -EAGAIN);
	CHECK_EQ(futex(&first, FUTEX_WAKE_OP, 1, 1, last, OP(ADD, 1, EQ, 0)),
		 -EFAULT);
	CHECK_EQ(*last, 0);
	return arg;
}

static void *refuse_on_a_carrier(void *arg)
{
	usleep(100);
	return refuse(arg);
}

TEST(an_unmapped_word_is_refused)
{
	sigset_t all;

	/* One readable page, and one without access. */
	pages = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	CHECK_EQ(mprotect(pages + 4096, 4096, PROT_NONE), 0);
	join(start(refuse_on_a_carrier, NULL));
	sigfillset(&all);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, NULL), 0);
	refuse(NULL);
}
