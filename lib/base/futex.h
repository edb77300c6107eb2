/* SPDX-License-Identifier: MIT */
/*
 * Sleeping on a futex word, and a lock built on it. Any thread may use both; signal
 * handlers may wake. Only raw system calls are used: under flexsc run, libc's futex
 * calls are served by the runtime, which is built on this library.
 */
#ifndef FLEXSC_FUTEX_H
#define FLEXSC_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "checks.h"
#include "ask.h"

/*
 * Sleep while *word == value, for at most ns nanoseconds (UINT64_MAX: forever). Returns
 * 0 when woken, or -EAGAIN, -ETIMEDOUT, -EINTR.
 */
static inline long futex_wait(_Atomic uint32_t *word, uint32_t value,
			      uint64_t ns)
{
	struct timespec limit = {
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};

	return ask(SYS_futex, PTR(word), FUTEX_WAIT_PRIVATE, value,
		   ns == UINT64_MAX ? 0 : PTR(&limit), 0, 0);
}

static inline void futex_wake(_Atomic uint32_t *word)
{
	ask(SYS_futex, PTR(word), FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static inline void futex_wake_all(_Atomic uint32_t *word)
{
	ask(SYS_futex, PTR(word), FUTEX_WAKE_PRIVATE, INT32_MAX, 0, 0, 0);
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * A lock's word is 0: free, 1: held, or 2: held, and other threads may be sleeping
 * until it is free. Builds with -Dchecks record the kernel thread that holds it.
 */
struct lock {
	_Atomic uint32_t word;
#ifdef FLEXSC_CHECKS
	_Atomic int32_t holder;
#endif
};

#ifdef FLEXSC_CHECKS

static inline int32_t lock_self(void)
{
	return (int32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static inline void lock_note(struct lock *lock)
{
	atomic_store_explicit(&lock->holder, lock_self(),
			      memory_order_relaxed);
}

static inline bool lock_is_held(struct lock *lock)
{
	return atomic_load_explicit(&lock->holder, memory_order_relaxed) ==
	       lock_self();
}

static inline void lock_forget(struct lock *lock)
{
	RULE(lock_is_held(lock));
	atomic_store_explicit(&lock->holder, 0, memory_order_relaxed);
}

#define lock_assert_held(lock)	RULE(lock_is_held(lock))

#else

static inline void lock_note(struct lock *lock)
{
}

static inline void lock_forget(struct lock *lock)
{
}

#define lock_assert_held(lock)	((void)(lock))

#endif

/* Takes the lock if it is free. False: another thread holds it. */
static inline bool lock_at_once(struct lock *lock)
{
	uint32_t was = 0;

	/* L1: acquires what the previous holder released with L2. */
	if (!atomic_compare_exchange_strong_explicit(&lock->word, &was, 1,
						     memory_order_acquire,
						     memory_order_relaxed))
		return false;
	lock_note(lock);
	return true;
}

static inline void lock(struct lock *lock)
{
	if (lock_at_once(lock))
		return;
	while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire))
		futex_wait(&lock->word, 2, UINT64_MAX);
	lock_note(lock);
}

static inline void unlock(struct lock *lock)
{
	lock_forget(lock);
	/* L2: releases what this holder wrote; pairs with L1. */
	if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2)
		futex_wake(&lock->word);
}

#endif /* FLEXSC_FUTEX_H */
