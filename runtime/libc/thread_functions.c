/* SPDX-License-Identifier: MIT */
/*
 * The interposed functions by which a thread ends or acts on another one:
 * pthread_exit(), pthread_kill() and the like. pthread_create() is in pthread_create.c.
 * They run on the program's threads.
 */
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/interpose.h"
#include "runtime/calls/affinity.h"
#include "runtime/counters/counters.h"
#include "runtime/sched/host.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/state.h"
#include "runtime/sched/uthreads.h"
#include "runtime/sched/wait.h"
#include "runtime/signals/actions.h"
#include "libc_call.h"

EXPORT void pthread_exit(void *value)
{
	struct uthread *u = &flexsc__self;

	if (u->alive) {
		flexsc__enter(u);
		u->cause = CAUSE_ENDS;
		flexsc__return_to_host(u);
		u->host_only = true;
		flexsc__exit(u);
	}
	REAL(pthread_exit)(value);
	__builtin_unreachable();
}

/*
 * Begin to act on another thread. Until end_on(), that thread can't end, and no signal
 * handler runs on the calling thread. False if "thread" is the calling one, or the
 * runtime doesn't run.
 */
static bool begin_on(pthread_t thread)
{
	struct uthread *self = &flexsc__self;

	if (!runtime_runs() || self->strict || pthread_equal(thread, pthread_self()))
		return false;
	if (self->alive)
		flexsc__enter(self);
	flexsc__uthreads_lock();
	return true;
}

static void end_on(bool begun, struct uthread *wanted)
{
	if (!begun)
		return;
	if (wanted)
		flexsc__want(wanted);
	flexsc__uthreads_unlock();
	if (flexsc__self.alive)
		flexsc__exit(&flexsc__self);
}

/*
 * libc sets its own handler at the first cancellation, and that handler could interrupt
 * the runtime. So first cancel the monitor, on which a cancellation has no effect, and
 * then replace the handler.
 */
static void adopt_cancel(int (*real)(pthread_t))
{
	static atomic_bool adopted;

	if (!flexsc__runtime.unpatched || atomic_load(&adopted) ||
	    atomic_load(&flexsc__runtime.dormant) ||
	    atomic_load(&flexsc__runtime.filtered))
		return;
	real(flexsc__monitor);
	flexsc__signal_adopt(SIGNAL_CANCEL);
	atomic_store(&adopted, true);
}

/*
 * Load the unwinder before the list of user threads is locked. Otherwise
 * pthread_cancel() loads it under that lock, and may wait for the dynamic loader's
 * lock.
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
	 * C1: before the cancellation can have an effect; pairs with C2 in libc_call.c.
	 * u is NULL for a new thread, which isn't a user thread yet.
	 */
	atomic_store(u ? &u->cancelled : &flexsc__anybody_cancelled, true);
	err = real(thread);
	end_on(other, err ? NULL : u);
	return err;
}

/*
 * A signal to the calling thread itself must arrive before the function returns, so
 * return to the host first.
 */
static void return_to_host_for(pthread_t thread)
{
	if (pthread_equal(thread, pthread_self()))
		flexsc__bring_to_host();
}

/*
 * A signal was sent to the thread. Returns its user thread if that has to return to its
 * host for the signal, otherwise NULL. flexsc__signal_sent() does the same for system
 * calls.
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

	return_to_host_for(thread);
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

	return_to_host_for(thread);
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

	if (err || !runtime_runs() || !self->alive || self->busy)
		return err;
	atomic_store(&flexsc__runtime.inherited, true);
	flexsc__enter(self);
	flexsc__uthreads_lock();
	u = flexsc__uthread_of(thread);
	tid = u ? u->host.k.tid : 0;
	flexsc__uthreads_unlock();
	if (tid)
		flexsc__affinity_changed(self, tid);
	flexsc__exit(self);
	return 0;
}

/*
 * A signal to the process may be for the calling thread. So return to the host, unless
 * the thread blocks the signal.
 */
static void return_unless_blocked(int signo)
{
	struct uthread *u = &flexsc__self;

	if (u->alive && !u->busy && signo > 0 && signo <= 64 && !on_host() &&
	    u->host.mask >> (signo - 1) & 1)
		return;
	flexsc__bring_to_host();
}

EXPORT int kill(pid_t pid, int signo)
{
	return_unless_blocked(signo);
	return REAL(kill)(pid, signo);
}

EXPORT int sigqueue(pid_t pid, int signo, const union sigval value)
{
	return_unless_blocked(signo);
	return REAL(sigqueue)(pid, signo, value);
}
