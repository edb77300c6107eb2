/* SPDX-License-Identifier: MIT */
#include "own_thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/syscall.h"

/*
 * The size of a stack. It suffices for flexsc_loop_work(). It is smaller than a huge
 * page, so no stack takes a whole huge page.
 */
#define STACK		(1024 * 1024)

static int own_thread_attributes(pthread_attr_t *attr, const cpu_set_t *cores)
{
	int err = pthread_attr_init(attr);

	if (err)
		return err;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/*
	 * Ignore an error: if the program's thread-local storage is too large
	 * for STACK, the stack gets libc's default size.
	 */
	pthread_attr_setstacksize(attr, STACK);
#endif
#ifdef __GLIBC__
	if (cores)
		pthread_attr_setaffinity_np(attr, sizeof(*cores), cores);
#endif
	return 0;
}

#ifndef __GLIBC__
static long own_cores(long nr, const cpu_set_t *cores)
{
	return raw_syscall(nr, 0, sizeof(*cores), PTR(cores), 0, 0, 0);
}
#endif

/*
 * Create a thread on "cores". musl has no thread attribute for cores. So there, the
 * creator moves to the cores, creates the thread, which inherits them, and moves back.
 */
static int own_thread_create(pthread_t *thread, const pthread_attr_t *attr,
			     void *(*run)(void *), void *arg,
			     const cpu_set_t *cores)
{
#ifdef __GLIBC__
	return pthread_create(thread, attr, run, arg);
#else
	cpu_set_t before = { 0 };
	bool moved = cores && own_cores(SYS_sched_getaffinity, &before) > 0 &&
		     !own_cores(SYS_sched_setaffinity, cores);
	int err = pthread_create(thread, attr, run, arg);

	if (moved)
		own_cores(SYS_sched_setaffinity, &before);
	return err;
#endif
}

/*
 * Block all signals except numbers 32 to SIGRTMIN - 1; the new thread inherits the
 * mask. libc sends those signals to the threads of the process, for example in
 * setuid(), and waits until each thread has handled them.
 */
static void block_signals(uint64_t *before)
{
	uint64_t most = ~(((1ULL << (SIGRTMIN - 32)) - 1) << 31);

	raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, PTR(&most), PTR(before),
		    sizeof(most), 0, 0);
}

static void restore_signals(const uint64_t *before)
{
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(before), 0,
		    sizeof(*before), 0, 0);
}

static int own_thread_on(pthread_t *thread, void *(*run)(void *), void *arg,
			 const cpu_set_t *cores)
{
	pthread_attr_t attr;
	uint64_t before;
	int err = own_thread_attributes(&attr, cores);

	if (err)
		return -err;
	block_signals(&before);
	err = own_thread_create(thread, &attr, run, arg, cores);
	if (err == EINVAL)
		err = own_thread_create(thread, NULL, run, arg, cores);
	restore_signals(&before);
	pthread_attr_destroy(&attr);
	return -err;
}

/* If a filter forbids sched_setaffinity(), the thread may use all of its creator's cores. */
int flexsc__own_thread(pthread_t *thread, void *(*run)(void *), void *arg,
		  const cpu_set_t *cores)
{
	int err = own_thread_on(thread, run, arg, cores);

	if (cores && (err == -EPERM || err == -ENOSYS))
		err = own_thread_on(thread, run, arg, NULL);
	return err;
}

/*
 * Create the thread at once. Creating it may wait for libc's lock, which is harmless
 * outside flexsc run: the thread that holds the lock is a kernel thread, so it
 * continues and releases the lock.
 */
int flexsc__own_thread_later(struct own_birth *birth)
{
	return own_birth_make(birth);
}

void flexsc__own_join(pthread_t thread)
{
	pthread_join(thread, NULL);
}
