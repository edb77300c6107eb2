/* SPDX-License-Identifier: MIT */
#include "thread_count.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/syscall.h"
#include "runtime/base/interpose.h"
#include "anchored.h"
#include "state.h"

/*
 * made: threads of the runtime that were created; grows after libc has counted the
 * thread. left: those that have left libc's count; grows before that count drops.
 * unsettled: threads for which only one of the counts, libc's or ours, has changed.
 * While it is 0, libc's count includes (made - left) threads of the runtime; otherwise
 * it may include more.
 */
static _Atomic unsigned int made, left, unsettled;

/* Interval of checks whether "unsettled" is 0, or the mutex below is free, in ns. */
#define LOOK_NS		20000

/*
 * Robust. A thread of the runtime that ends locks this mutex before it joins libc's
 * count, and never unlocks it: the kernel does, after libc has decremented the count.
 * Otherwise, libc's decrement could be the last one, and libc would end the process with
 * status 0. Other threads hold the mutex while they change the count, or find it at 0.
 * Not covered: a strict thread that libc takes off the count meanwhile, as the last one.
 *
 * Emulators such as qemu-x86_64 unlock no robust mutex, so there none is used.
 */
static pthread_mutex_t changes;
static bool has_robust;

/*
 * How long a thread of the program waits for the mutex, in ns. The thread that ends may
 * need a lock of libc's, and a handler may have interrupted the program's thread while it
 * held that lock.
 */
#define CHANGES_NS	2000000000U

/*
 * If the program's thread that ended most recently called exit(2) directly: its status,
 * with BY_CALL set. If the kernel has ended that thread by SIGKILL: BY_KILL. Otherwise 0.
 */
static _Atomic uint64_t last_end;

#define BY_CALL		(1ULL << 32)
#define BY_KILL		(1ULL << 33)

/* Watched threads whose end isn't in last_end yet. libc's count may lack them. */
static _Atomic unsigned int watched;

/* Take the caller off libc's count. True: the count is 0, so the process must end. */
static bool take_off_count(void)
{
	_Atomic unsigned int *threads = flexsc__real_count();

	return threads && atomic_fetch_sub(threads, 1) == 1;
}

/*
 * The count is 0. Returns if a watched thread is left: the process ends with that thread.
 * flexsc__count_program_died() decrements "watched" before it loads the count. Other
 * callers decrement the count before this function loads "watched". So one caller finds
 * both at 0, and the status of the thread that has died.
 */
static void end_process(void)
{
	uint64_t end;

	if (atomic_load(&watched))
		return;
	end = atomic_load(&last_end);
	if (end & BY_CALL)
		raw_syscall(SYS_exit_group, (uint32_t)end, 0, 0, 0, 0, 0);
	if (end & BY_KILL)
		raw_syscall(SYS_kill,
			    (uint64_t)raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0),
			    SIGKILL, 0, 0, 0, 0);
	exit(EXIT_SUCCESS);
}

static bool changes_taken(int err)
{
	if (err == EOWNERDEAD)
		pthread_mutex_consistent(&changes);
	return !err || err == EOWNERDEAD;
}

/*
 * For threads of the program, which a filter may forbid any call: a wait without calls
 * then. False: it took too long.
 */
static bool changes_lock_soon(void)
{
	const uint64_t until = time_monotonic() + CHANGES_NS;
	const struct timespec moment = { 0, LOOK_NS };
	int err;

	if (!has_robust)
		return false;
	while ((err = REAL(pthread_mutex_trylock)(&changes)) == EBUSY &&
	       time_monotonic() < until)
		if (!filter_is_near(&flexsc__self))
			raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
	return changes_taken(err);
}

static void changes_lock(void)
{
	if (has_robust)
		changes_taken(REAL(pthread_mutex_lock)(&changes));
}

static void changes_unlock(void)
{
	if (has_robust)
		REAL(pthread_mutex_unlock)(&changes);
}

void flexsc__count_program_ends(void)
{
	atomic_store(&last_end, 0);
}

void flexsc__count_program_ends_by_call(uint32_t status)
{
	atomic_store(&last_end, BY_CALL | status);
	/* The caller ends now, so the kernel unlocks the mutex. */
	changes_lock_soon();
	if (take_off_count())
		end_process();
}

void flexsc__count_program_watched(bool begins)
{
	atomic_fetch_add(&watched, begins ? 1 : -1U);
}

void flexsc__count_program_died(bool counts, int status)
{
	_Atomic unsigned int *threads = flexsc__real_count();
	const bool locked = changes_lock_soon();

	atomic_store(&last_end, WIFEXITED(status) ?
					BY_CALL | (uint32_t)WEXITSTATUS(status) :
					BY_KILL);
	atomic_fetch_sub(&watched, 1);
	/* If libc has decremented the count to 0, the thread died in exit(3). */
	if (counts ? take_off_count() : threads && !atomic_load(threads))
		end_process();
	if (locked)
		changes_unlock();
}

void flexsc__count_leave(void)
{
	bool last;

	changes_lock();
	atomic_fetch_add(&unsettled, 1);
	atomic_fetch_add(&left, 1);
	last = take_off_count();
	atomic_fetch_sub(&unsettled, 1);
	if (last)
		end_process();
	changes_unlock();
}

void flexsc__count_join(void)
{
	_Atomic unsigned int *threads = flexsc__real_count();

	changes_lock();
	if (threads)
		atomic_fetch_add(threads, 1);
}

/*
 * This wait may be long, because a thread may lose its processor while it is unsettled.
 */
static void wait_until_settled(void)
{
	const struct timespec moment = { 0, LOOK_NS };

	while (atomic_load(&unsettled))
		raw_syscall(SYS_nanosleep, PTR(&moment), 0, 0, 0, 0, 0);
}

bool flexsc__count_others(void)
{
	_Atomic unsigned int *threads = flexsc__real_count();
	unsigned int begun, over, all;
	bool locked;

	if (!threads)
		return true;
	/* Otherwise libc may still count a thread of the runtime that ends. */
	locked = changes_lock_soon();
	do {
		wait_until_settled();
		begun = atomic_load(&made);
		over = atomic_load(&left);
		all = atomic_load(threads);
	} while (atomic_load(&unsettled) || atomic_load(&made) != begun ||
		 atomic_load(&left) != over);
	if (locked)
		changes_unlock();
	return (int)(all - (begun - over)) > 1;
}

void flexsc__count_making(void)
{
	atomic_fetch_add(&unsettled, 1);
}

void flexsc__count_made(bool succeeded)
{
	if (succeeded)
		atomic_fetch_add(&made, 1);
	atomic_fetch_sub(&unsettled, 1);
}

/* A filter may forbid the call below. Emulators have no filters. */
static bool kernel_has_robust(void)
{
	void *head = NULL;
	size_t size;

	return !flexsc__runtime.sends ||
	       (!raw_syscall(SYS_get_robust_list, 0, PTR(&head), PTR(&size), 0, 0, 0) &&
		head);
}

void flexsc__count_begin(void)
{
	static bool tried;
	pthread_mutexattr_t attr;

	if (!tried)
		has_robust = kernel_has_robust();
	tried = true;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&changes, &attr);
	pthread_mutexattr_destroy(&attr);
	atomic_store(&made, 0);
	atomic_store(&left, 0);
	atomic_store(&unsettled, 0);
	atomic_store(&watched, 0);
	atomic_store(&last_end, 0);
}
