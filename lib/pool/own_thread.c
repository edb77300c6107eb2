/* SPDX-License-Identifier: MIT */
#include "own_thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/syscall.h"

/* Enough for flexsc_loop_work(), and too small for a huge page. */
#define STACK		(1024 * 1024)

static int own_thread_attributes(pthread_attr_t *attr, const cpu_set_t *cores)
{
	int err = pthread_attr_init(attr);

	if (err)
		return err;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/*
	 * A program with very large thread-local storage needs more: then libc's
	 * default size is used.
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
 * musl has no such attribute: a thread inherits its creator's cores, which are restored
 * afterwards.
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
 * A new thread blocks all signals except those from 32 to SIGRTMIN, which libc uses
 * between threads: setuid() waits for every thread's answer.
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

int flexsc__own_thread(pthread_t *thread, void *(*run)(void *), void *arg,
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

/*
 * There is no need to wait: a program's thread that holds libc's lock is a kernel
 * thread, which runs on and releases it.
 */
int flexsc__own_thread_later(struct own_birth *birth)
{
	if (birth->joins)
		flexsc__own_join(*birth->thread);
	return flexsc__own_thread(birth->thread, birth->run, birth->arg,
				  birth->cores);
}

void flexsc__own_join(pthread_t thread)
{
	pthread_join(thread, NULL);
}
