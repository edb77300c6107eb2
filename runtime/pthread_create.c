/* SPDX-License-Identifier: MIT */
/*
 * Interposes pthread_create(): the first call starts the runtime, and each creates a
 * user thread. Interposes main(), too, so that the first thread ends as other user
 * threads do.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/base/interpose.h"
#include "runtime/calls/life.h"
#include "runtime/sched/anchored.h"
#include "runtime/sched/host.h"
#include "runtime/sched/stacks.h"
#include "runtime/sched/state.h"
#include "runtime.h"

/*
 * Arguments of a new thread, at the top of the stack that its host will sleep on. They
 * aren't in the heap: malloc() may be the program's own, and a free() in the new thread
 * would make it set up state for a thread that may never need it.
 */
struct birth {
	void *(*start)(void *);
	void *arg;
	void *stack;
	sigmask_t mask;
	bool host_only;
	uint8_t anchored;
	uint32_t filter;
};

static struct birth *uthread_birth_on(void *stack)
{
	return (struct birth *)stack_top(&flexsc__small, stack) - 1;
}

static void uthread_end(void *arg)
{
	flexsc__life_end(arg);
}

/* Does the calling thread have a real-time priority, which carriers lack? */
static bool has_priority(void)
{
	long policy = raw_syscall(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0);

	return policy > 0 && policy != SCHED_BATCH && policy != SCHED_IDLE;
}

/* For is_new() in signals/signals.c. */
static void count_birth(uint32_t n)
{
	if (CONTEXT_SELF_IN_TLS)
		atomic_fetch_add(&flexsc__runtime.births, n);
}

static void *thread_main(void *arg)
{
	struct birth birth = *(struct birth *)arg;
	struct uthread *u = &flexsc__self;
	void *ret;

	/*
	 * Push uthread_end() first: in flexsc__life_begin(), a handler may reach a
	 * cancellation point.
	 */
	pthread_cleanup_push(uthread_end, u);
	flexsc__life_begin(u, birth.stack, birth.mask, birth.anchored,
			   birth.filter);
	count_birth(-1U);
	/*
	 * Enter the runtime, so that no other thread can install a seccomp filter
	 * between filter_is_near() and the system call in has_priority().
	 */
	flexsc__enter(u);
	u->host_only = birth.host_only || filter_is_near(u) ||
		    has_priority();
	flexsc__exit(u);
	ret = birth.start(birth.arg);
	pthread_cleanup_pop(1);
	return ret;
}

/*
 * The program's main(). If a cancellation or pthread_exit() leaves main(), libc ends
 * the thread by a system call that no carrier may make. So a cleanup handler ends the
 * user thread first.
 */
static int (*program_main)(int, char **, char **);

static int first_main(int argc, char **argv, char **environment)
{
	int status;

	pthread_cleanup_push(uthread_end, &flexsc__self);
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

/* Has the program set default attributes for its threads? */
static atomic_bool has_defaults;

EXPORT int pthread_setattr_default_np(const pthread_attr_t *attr)
{
	int err = REAL(pthread_setattr_default_np)(attr);

	if (!err)
		atomic_store(&has_defaults, true);
	return err;
}

static bool mask_of(const pthread_attr_t *attr, sigmask_t *mask)
{
	sigset_t set;

	if (pthread_attr_getsigmask_np(attr, &set))
		return false;
	memcpy(mask, &set, sizeof(*mask));
	return true;
}

static bool default_mask(sigmask_t *mask)
{
	pthread_attr_t attr;
	bool has;

	if (!atomic_load(&has_defaults) || pthread_getattr_default_np(&attr))
		return false;
	has = mask_of(&attr, mask);
	pthread_attr_destroy(&attr);
	return has;
}

/* The signal mask of a new thread. libc applies all other attributes. */
static sigmask_t first_mask(const pthread_attr_t *attr)
{
	struct uthread *u = &flexsc__self;
	sigmask_t mask = u->host.mask;

	if (attr ? mask_of(attr, &mask) : default_mask(&mask))
		return mask;
	if (!u->host.masked)
		signal_mask(SIG_SETMASK, NULL, &mask);
	return mask;
}

/*
 * Inside the runtime no signal moves the calling thread to its host. If it moved with
 * the lock of the free stacks held, its carrier would wait for that lock.
 */
static void *get_park(void)
{
	struct uthread *u = &flexsc__self;
	void *stack;

	flexsc__enter(u);
	stack = flexsc__stack_get(&flexsc__small);
	flexsc__exit(u);
	return stack;
}

static void put_park(void *stack)
{
	struct uthread *u = &flexsc__self;

	flexsc__enter(u);
	flexsc__stack_put(&flexsc__small, stack);
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
	if (atomic_load(&flexsc__runtime.inherited))
		flexsc__bring_to_host();
	birth = uthread_birth_on(stack);
	*birth = (struct birth){ start, arg, stack, first_mask(attr),
				 flexsc__self.host_only,
				 flexsc__self.anchored & ANCHORED_FILTER,
				 flexsc__self.filter };
	count_birth(1);
	err = REAL(pthread_create)(thread, attr, thread_main, birth);
	if (err) {
		count_birth(-1U);
		put_park(stack);
	}
	return err;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg)
{
	if (flexsc__self.strict || !flexsc__runtime_start())
		return REAL(pthread_create)(thread, attr, start, arg);
	return create(thread, attr, start, arg);
}
