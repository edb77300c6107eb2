/* SPDX-License-Identifier: MIT */
/*
 * Sleeping on a word, and a lock made of it. Usable by every thread; wake is
 * usable in signal handlers. Raw system calls only, so that a program whose
 * libc futexes are served elsewhere can use the library underneath.
 */
#ifndef FLEXSC_FUTEX_H
#define FLEXSC_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "syscall.h"

/*
 * Sleep while *word == value, at most ns nanoseconds (UINT64_MAX: forever).
 * 0 woken, or -EAGAIN, -ETIMEDOUT, -EINTR.
 */
static inline long futex_wait(_Atomic uint32_t *word, uint32_t value,
			      uint64_t ns)
{
	struct timespec limit = {
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};

	return raw_syscall(SYS_futex, PTR(word), FUTEX_WAIT_PRIVATE, value,
			   ns == UINT64_MAX ? 0 : PTR(&limit), 0, 0);
}

static inline void futex_wake(_Atomic uint32_t *word)
{
	raw_syscall(SYS_futex, PTR(word), FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* 0 free, 1 held, 2 held and somebody may sleep for it. */
struct lock {
	_Atomic uint32_t word;
};

/* False: somebody has it. */
static inline bool lock_at_once(struct lock *lock)
{
	uint32_t was = 0;

	/* L1: acquires what the holder before released at L2. */
	return atomic_compare_exchange_strong_explicit(&lock->word, &was, 1,
						       memory_order_acquire,
						       memory_order_relaxed);
}

static inline void lock(struct lock *lock)
{
	if (lock_at_once(lock))
		return;
	while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire))
		futex_wait(&lock->word, 2, UINT64_MAX);
}

static inline void unlock(struct lock *lock)
{
	/* L2: pairs with L1. */
	if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2)
		futex_wake(&lock->word);
}

#endif /* FLEXSC_FUTEX_H */
