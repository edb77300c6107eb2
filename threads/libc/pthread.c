/* SPDX-License-Identifier: MIT */
/*
 * The interposed functions of threads: how user threads begin and end, and what
 * one does to another. And the runtime's own threads, which libc makes as well.
 */
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../run/carrier.h"
#include "../report/counters.h"
#include "../run/home.h"
#include "../run/monitor.h"
#include "../run/park.h"
#include "real.h"
#include "../runtime.h"
#include "../signals/signals.h"
#include "../run/stacks.h"
#include "unpatched.h"
#include "../run/wait.h"
#include "../base/interpose.h"
#include "libc_call.h"

static void come_home(void)
{
	struct uthread *u = &flexsc__self;

	if (!u->alive || u->busy)
		return;
	flexsc__enter(u);
	flexsc__come_home(u);
	flexsc__exit(u);
}

struct birth {
	void *(*start)(void *);
	void *arg;
	void *stack;
	sigmask_t mask;
	bool rooted;
};

static void end(void *arg)
{
	flexsc__uthread_end(arg);
}

/* Over other threads of the machine, which a carrier hasn't. */
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

	free(arg);
	flexsc__uthread_begin(u, birth.stack, birth.mask);
	pthread_cleanup_push(end, u);
	u->rooted = birth.rooted || has_priority();
	flexsc__enter(u);
	if (!u->rooted)
		flexsc__leave(u);
	flexsc__exit(u);
	ret = birth.start(birth.arg);
	pthread_cleanup_pop(1);
	return ret;
}

/*
 * main(), which ends the first thread like others if it is left without a
 * return. What follows there is a system call that no carrier may make.
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

/* Under its lock nobody is moved home: the carrier would wait for the lock. */
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
	struct birth *birth = malloc(sizeof(*birth));
	int err = EAGAIN;

	if (!birth)
		return err;
	if (atomic_load(&flexsc__home_inherited))
		come_home();
	*birth = (struct birth){ start, arg, get_park(),
				 inherited_mask(attr),
				 flexsc__self.rooted };
	if (birth->stack)
		err = REAL(pthread_create)(thread, attr, thread_main, birth);
	if (err) {
		put_park(birth->stack);
		free(birth);
	}
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

/*
 * libc ends the process with its last thread. Those of the runtime don't
 * count; what counts them is there for debuggers.
 */
static void count_thread(int n)
{
	_Atomic unsigned int *threads = flexsc__real_count();

	if (threads)
		atomic_fetch_add(threads, (unsigned int)n);
}

static void *runtime_main(void *arg)
{
	struct birth birth = *(struct birth *)arg;
	void *ret;

	free(arg);
	ret = birth.start(birth.arg);
	count_thread(1);
	return ret;
}

/* On a stack of the runtime's, unless everything is to be as libc has it. */
static int create_on_own(pthread_t *thread, const pthread_attr_t *attr,
			 struct birth *birth)
{
	pthread_attr_t own;
	size_t bytes;
	void *stack;
	int err;

	if (!attr)
		return REAL(pthread_create)(thread, NULL, runtime_main, birth);
	stack = flexsc__stack_get(&bytes);
	if (!stack)
		return EAGAIN;
	/* It isn't destroyed: what it refers to is the caller's. */
	own = *attr;
	pthread_attr_setstack(&own, stack, bytes);
	err = REAL(pthread_create)(thread, &own, runtime_main, birth);
	if (err)
		flexsc__stack_put(stack);
	return err;
}

int flexsc__runtime_thread(pthread_t *thread, const pthread_attr_t *attr,
			   void *(*start)(void *), void *arg)
{
	struct birth *birth = malloc(sizeof(*birth));
	int err;

	if (!birth)
		return EAGAIN;
	*birth = (struct birth){ .start = start, .arg = arg };
	count_thread(-1);
	err = create_on_own(thread, attr, birth);
	if (err) {
		count_thread(1);
		free(birth);
	}
	return err;
}

int flexsc__runtime_join(pthread_t thread, void **value)
{
	void *stack = flexsc__stack_of(thread);
	int err = pthread_join(thread, value);

	if (!err)
		flexsc__stack_put(stack);
	return err;
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
 * What one does to another thread, which may end of it, but not before all is
 * done. False: it is the caller, or there is no runtime. In between are no
 * handlers.
 */
static bool begin_on(pthread_t thread)
{
	struct uthread *self = &flexsc__self;

	if (!flexsc__runtime_runs() || pthread_equal(thread, pthread_self()))
		return false;
	if (self->alive)
		flexsc__enter(self);
	flexsc__runtime_hold();
	return true;
}

static void end_on(bool begun, struct uthread *wanted)
{
	if (!begun)
		return;
	if (wanted)
		flexsc__want(wanted);
	flexsc__runtime_release();
	if (flexsc__self.alive)
		flexsc__exit(&flexsc__self);
}

/*
 * libc sets its handler with the first cancellation, which may interrupt the
 * runtime: so that is one without effect.
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

/* What pthread_cancel() loads first, which may wait for the dynamic loader. */
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
	/* C1: before it can have an effect. A new thread isn't one of ours yet. */
	atomic_store(u ? &u->cancelled : &flexsc__anybody_cancelled, true);
	err = real(thread);
	end_on(other, err ? NULL : u);
	return err;
}

/* A signal to oneself arrives before these return. */
static void come_home_for(pthread_t thread)
{
	if (pthread_equal(thread, pthread_self()))
		come_home();
}

/*
 * The kernel has the signal, for the other's home. By whatever the caller does
 * next, the other may learn of it: no call of its that follows may be earlier.
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

/* Only then it may be for the caller itself. */
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
