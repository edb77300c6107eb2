/* SPDX-License-Identifier: MIT */
/*
 * The interposed functions of threads: how user threads begin and end, and what
 * one thread does to another. Also the runtime's own threads, which libc makes
 * as well.
 */
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../calls/affinity.h"
#include "../run/carrier.h"
#include "../report/counters.h"
#include "../run/home.h"
#include "../run/monitor.h"
#include "../run/park.h"
#include "../run/own_thread.h"
#include "../runtime.h"
#include "../signals/actions.h"
#include "../run/stacks.h"
#include "unpatched.h"
#include "../run/wait.h"
#include "../base/interpose.h"
#include "libc_call.h"
#include "../run/uthreads.h"

static void come_home(void)
{
	struct uthread *u = &flexsc__self;

	if (!u->alive || u->busy)
		return;
	flexsc__enter(u);
	flexsc__come_home(u);
	flexsc__exit(u);
}

/*
 * What a new thread needs to know. It lies at the top of the stack that its
 * kernel thread will be parked on, and not in the heap: malloc() may be the
 * program's own, and a free() in the new thread would make that prepare for a
 * thread that perhaps never uses it.
 */
struct birth {
	void *(*start)(void *);
	void *arg;
	void *stack;
	sigmask_t mask;
	bool rooted;
};

static struct birth *birth_on(void *stack)
{
	return (struct birth *)((char *)stack + PARK_BYTES) - 1;
}

static void end(void *arg)
{
	flexsc__uthread_end(arg);
}

/* Does the caller have a real-time priority, which carriers lack? */
static bool has_priority(void)
{
	long policy = raw_syscall(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0);

	return policy > 0 && policy != SCHED_BATCH && policy != SCHED_IDLE;
}

static void *thread_main(void *arg)
{
	struct birth birth = *(struct birth *)arg;
	struct uthread *u = &flexsc__self;
	void *ret;

	flexsc__uthread_begin(u, birth.stack, birth.mask);
	pthread_cleanup_push(end, u);
	u->rooted = birth.rooted || has_priority();
	ret = birth.start(birth.arg);
	pthread_cleanup_pop(1);
	return ret;
}

/*
 * main(). The first thread ends like others if a cancellation or pthread_exit()
 * leaves main(); after that libc makes a system call that no carrier may make.
 */
static int (*program_main)(int, char **, char **);

static int first_main(int argc, char **argv, char **environment)
{
	int status;

	pthread_cleanup_push(end, &flexsc__self);
	status = program_main(argc, argv, environment);
	pthread_cleanup_pop(0);
	return status;
}

EXPORT int __libc_start_main(int (*main)(int, char **, char **), int argc,
			     char **argv, void (*init)(void),
			     void (*fini)(void), void (*rtld_fini)(void),
			     void *stack);
EXPORT int __libc_start_main(int (*main)(int, char **, char **), int argc,
			     char **argv, void (*init)(void),
			     void (*fini)(void), void (*rtld_fini)(void),
			     void *stack)
{
	program_main = main;
	return REAL(__libc_start_main)(first_main, argc, argv, init, fini,
				       rtld_fini, stack);
}

static sigmask_t inherited_mask(const pthread_attr_t *attr)
{
	struct uthread *u = &flexsc__self;
	sigmask_t mask = u->home.mask;
	sigset_t set;

	if (attr && !pthread_attr_getsigmask_np(attr, &set)) {
		memcpy(&mask, &set, sizeof(mask));
		return mask;
	}
	if (!u->home.masked)
		raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, 0, PTR(&mask),
			    sizeof(mask), 0, 0);
	return mask;
}

/*
 * Inside the runtime the caller isn't moved home. If it were, with the lock of
 * the free stacks held, its carrier would wait for that lock.
 */
static void *get_park(void)
{
	struct uthread *u = &flexsc__self;
	void *stack;

	flexsc__enter(u);
	stack = flexsc__park_get();
	flexsc__exit(u);
	return stack;
}

static void put_park(void *stack)
{
	struct uthread *u = &flexsc__self;

	flexsc__enter(u);
	flexsc__park_put(stack);
	flexsc__exit(u);
}

static int create(pthread_t *thread, const pthread_attr_t *attr,
		  void *(*start)(void *), void *arg)
{
	void *stack = get_park();
	struct birth *birth;
	int err;

	if (!stack)
		return EAGAIN;
	if (atomic_load(&flexsc__home_inherited))
		come_home();
	birth = birth_on(stack);
	*birth = (struct birth){ start, arg, stack, inherited_mask(attr),
				 flexsc__self.rooted };
	err = REAL(pthread_create)(thread, attr, thread_main, birth);
	if (err)
		put_park(stack);
	return err;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg)
{
	if (flexsc__runtime_maker())
		return flexsc__runtime_thread(thread, attr, start, arg);
	if (!flexsc__runtime_start())
		return REAL(pthread_create)(thread, attr, start, arg);
	return create(thread, attr, start, arg);
}

EXPORT void pthread_exit(void *value)
{
	struct uthread *u = &flexsc__self;

	if (u->alive) {
		flexsc__enter(u);
		u->cause = CAUSE_ENDS;
		flexsc__come_home(u);
		u->rooted = true;
		flexsc__exit(u);
	}
	REAL(pthread_exit)(value);
	__builtin_unreachable();
}

/*
 * Begin to do something to another thread: until end_on() that thread can't
 * end, and no signal handler runs here. False if the thread is the caller, or
 * there is no runtime.
 */
static bool begin_on(pthread_t thread)
{
	struct uthread *self = &flexsc__self;

	if (!flexsc__runtime_runs() || pthread_equal(thread, pthread_self()))
		return false;
	if (self->alive)
		flexsc__enter(self);
	flexsc__uthreads_hold();
	return true;
}

static void end_on(bool begun, struct uthread *wanted)
{
	if (!begun)
		return;
	if (wanted)
		flexsc__want(wanted);
	flexsc__uthreads_release();
	if (flexsc__self.alive)
		flexsc__exit(&flexsc__self);
}

/*
 * libc sets its handler with the first cancellation, which might interrupt the
 * runtime. So the first one is of the monitor, on which it has no effect.
 */
static void adopt_cancel(int (*real)(pthread_t))
{
	static atomic_bool adopted;

	if (!flexsc__unpatched || atomic_load(&adopted))
		return;
	real(flexsc__monitor);
	flexsc__signal_adopt(SIGNAL_CANCEL);
	atomic_store(&adopted, true);
}

/*
 * pthread_cancel() loads the unwinder first, which may wait for the dynamic
 * loader's lock.
 */
static void load_unwinder(void)
{
	static atomic_bool loaded;
	void *frame;

	if (!atomic_load_explicit(&loaded, memory_order_relaxed))
		backtrace(&frame, 1);
	atomic_store_explicit(&loaded, true, memory_order_relaxed);
}

EXPORT int pthread_cancel(pthread_t thread)
{
	int (*real)(pthread_t) = REAL(pthread_cancel);
	struct uthread *u = &flexsc__self;
	bool other;
	int err;

	load_unwinder();
	other = begin_on(thread);
	if (other) {
		adopt_cancel(real);
		u = flexsc__uthread_of(thread);
	}
	/*
	 * C1: before the cancellation can have an effect; pairs with C2 in
	 * own.c. A new thread isn't a user thread yet.
	 */
	atomic_store(u ? &u->cancelled : &flexsc__anybody_cancelled, true);
	err = real(thread);
	end_on(other, err ? NULL : u);
	return err;
}

/* A signal to the caller itself arrives before the function returns. */
static void come_home_for(pthread_t thread)
{
	if (pthread_equal(thread, pthread_self()))
		come_home();
}

/*
 * The kernel has queued the signal for the other thread's home. That thread is
 * wanted there at once: the caller may tell it so next, and none of its calls
 * after that may come before its handler.
 */
static struct uthread *to_learn(pthread_t thread, int signo, int err)
{
	if (err || !flexsc__signal_has_handler(signo))
		return NULL;
	return flexsc__uthread_of(thread);
}

EXPORT int pthread_kill(pthread_t thread, int signo)
{
	int (*real)(pthread_t, int) = REAL(pthread_kill);
	bool other;
	int err;

	come_home_for(thread);
	other = begin_on(thread);
	err = real(thread, signo);
	end_on(other, other ? to_learn(thread, signo, err) : NULL);
	return err;
}

EXPORT int pthread_sigqueue(pthread_t thread, int signo,
			    const union sigval value)
{
	int (*real)(pthread_t, int, const union sigval) =
		REAL(pthread_sigqueue);
	bool other;
	int err;

	come_home_for(thread);
	other = begin_on(thread);
	err = real(thread, signo, value);
	end_on(other, other ? to_learn(thread, signo, err) : NULL);
	return err;
}

EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size,
				  const cpu_set_t *set)
{
	int err = REAL(pthread_setaffinity_np)(thread, size, set);
	struct uthread *self = &flexsc__self, *u;
	int32_t tid;

	if (err || !flexsc__runtime_runs() || !self->alive || self->busy)
		return err;
	atomic_store(&flexsc__home_inherited, true);
	flexsc__enter(self);
	flexsc__uthreads_hold();
	u = flexsc__uthread_of(thread);
	tid = u ? u->home.k.tid : 0;
	flexsc__uthreads_release();
	if (tid)
		flexsc__affinity_changed(self, tid);
	flexsc__exit(self);
	return 0;
}

/* A signal that the caller doesn't block may be for the caller itself. */
static void come_home_unless_blocked(int signo)
{
	struct uthread *u = &flexsc__self;

	if (u->alive && !u->busy && signo > 0 && signo <= 64 && !at_home() &&
	    u->home.mask >> (signo - 1) & 1)
		return;
	come_home();
}

EXPORT int kill(pid_t pid, int signo)
{
	come_home_unless_blocked(signo);
	return REAL(kill)(pid, signo);
}

EXPORT int sigqueue(pid_t pid, int signo, const union sigval value)
{
	come_home_unless_blocked(signo);
	return REAL(sigqueue)(pid, signo, value);
}
