/* SPDX-License-Identifier: MIT */
#include "host_stub.h"

#include <sched.h>
#include <setjmp.h>
#include <sys/syscall.h>

#include "lib/files/fds.h"
#include "runtime/calls/perform.h"
#include "runtime/calls/rings.h"
#include "runtime/sched/anchored.h"
#include "runtime/sched/dormant.h"
#include "runtime/sched/host.h"
#include "runtime/sched/state.h"
#include "runtime/sched/sticky.h"
#include "runtime/sched/identity.h"

/* Must the function run on the host, with these arguments? */
static bool cause_needs_host(struct uthread *u, uint16_t cause,
			     const uint64_t args[6])
{
	switch (cause) {
	case CAUSE___sigsetjmp:
		/* A sigsetjmp() that doesn't save the mask may run anywhere. */
		return args[1];
	case CAUSE_setcontext:
	case CAUSE_swapcontext:
		/*
		 * When the function of a makecontext() context returns, libc changes
		 * the signal mask by a call that the runtime doesn't see. So the thread
		 * must never leave its host again.
		 */
		u->host_only = true;
		return true;
	default:
		return true;
	}
}

static bool is_wait(uint16_t cause)
{
	switch (cause) {
	case CAUSE_sigsuspend:
	case CAUSE_pause:
	case CAUSE_sigwait:
	case CAUSE_sigwaitinfo:
	case CAUSE_sigtimedwait:
	case CAUSE_sigpause:
	case CAUSE___sigpause:
	case CAUSE___xpg_sigpause:
	case CAUSE_mq_receive:
	case CAUSE_mq_timedreceive:
	case CAUSE_mq_send:
	case CAUSE_mq_timedsend:
		return true;
	default:
		return false;
	}
}

/*
 * Must the runtime be dormant, without threads of its own, for this function? Programs
 * count the threads of the process when they fork. False for _Fork(): a signal handler
 * may call it, but must not free memory, as ending a thread does.
 */
static bool counts_threads(uint16_t cause)
{
	return cause == CAUSE_fork || cause == CAUSE___fork ||
	       cause == CAUSE_daemon;
}

/* RING() comes last in symbols.def, so its causes are the highest. */
static bool is_ring(uint16_t cause)
{
	return cause >= CAUSE___io_uring_get_cqe;
}

/* Does a liburing function use a ring that belongs to the calling thread? */
static bool uses_owned_ring(uint16_t cause, const uint64_t args[6])
{
	switch (cause) {
	case CAUSE_io_uring_setup:
		return flexsc__ring_call_is_owned(SYS_io_uring_setup, args);
	case CAUSE_io_uring_register:
		return flexsc__ring_call_is_owned(SYS_io_uring_register, args);
	case CAUSE_io_uring_enter:
	case CAUSE_io_uring_enter2:
		return flexsc__ring_call_is_owned(SYS_io_uring_enter, args);
	case CAUSE_io_uring_get_probe:
	case CAUSE_io_uring_queue_init:
	case CAUSE_io_uring_queue_init_mem:
	case CAUSE_io_uring_queue_init_params:
	case CAUSE_io_uring_register_bpf_filter_task:
	case CAUSE_io_uring_register_query:
	case CAUSE_io_uring_register_sync_msg:
		/* The first argument of these functions isn't a ring. */
		return false;
	default:
		return flexsc__ring_is_owned(flexsc__arg_pointer(args[0]));
	}
}

/*
 * Is the caller a vfork() child, which uses u's memory? Such a child must not change
 * the runtime's state (see calls/hook.c).
 */
static bool is_lent(const struct uthread *u)
{
	return u->forks && runtime_is_lent();
}

static void return_to_host_for(struct uthread *u, uint16_t cause,
			  const uint64_t args[6])
{
	u->cause = cause;
	if (is_ring(cause) && uses_owned_ring(cause, args)) {
		flexsc__anchor_for_good(u);
		return;
	}
	if (is_wait(cause))
		flexsc__sticky_wait(u);
	flexsc__return_to_host(u);
}

void *flexsc__go_to_host(const struct stub *stub, const uint64_t args[6])
{
	struct uthread *u = &flexsc__self;

	if (is_lent(u))
		return flexsc__real((enum real)stub->which);
	if (stub->forks) {
		flexsc__fds_share();
		if (!u->forks)
			u->forks = FORKS_NOW;
	}
	if (u->alive && !u->busy && cause_needs_host(u, stub->cause, args)) {
		flexsc__enter(u);
		return_to_host_for(u, stub->cause, args);
		if (counts_threads(stub->cause))
			flexsc__dormant_before_fork(u);
		flexsc__exit(u);
	}
	return flexsc__real((enum real)stub->which);
}

static bool cause_is_inherited(uint16_t cause)
{
	switch (cause) {
	case CAUSE_pthread_setschedparam:
	case CAUSE_pthread_setschedprio:
	case CAUSE_sched_setscheduler:
	case CAUSE_sched_setparam:
	case CAUSE_sched_setattr:
	case CAUSE_setpriority:
	case CAUSE_nice:
		return true;
	default:
		return false;
	}
}

static bool changes_all(uint16_t cause)
{
	return cause >= CAUSE_setuid && cause <= CAUSE_initgroups;
}

struct on_host flexsc__stay_on_host(const struct stub *stub)
{
	struct uthread *u = &flexsc__self;
	struct on_host there = { flexsc__go_to_host(stub, NULL), 0 };

	if (is_lent(u))
		return there;
	if (changes_all(stub->cause)) {
		flexsc__identity_begin();
		there.stay = STAY_CHANGES;
	}
	if (cause_is_inherited(stub->cause))
		atomic_store(&flexsc__runtime.inherited, true);
	if (u->alive)
		there.stay |= flexsc__stay_begin(u, 0, 0).outermost ? STAY_OUTERMOST : 0;
	return there;
}

void flexsc__stayed_on_host(uint64_t stay)
{
	if (stay & STAY_CHANGES)
		flexsc__identity_end();
	flexsc__stay_end(&flexsc__self, (struct stay){ stay & STAY_OUTERMOST });
}

/* Prepare a jump, which may leave handlers and functions that keep u on its host. */
static void leave_for(struct uthread *u, jmp_buf env)
{
	flexsc__stay_left(u, context_jump_target(env));
	/*
	 * The jump may leave a handler that interrupted a cancellation point. The
	 * interrupted call doesn't return then, and can't reset u->point.
	 */
	u->point = false;
	if (!flexsc__runtime.unpatched || !env->__mask_was_saved || u->busy)
		return;
	/* libc restores the mask by a call that the runtime doesn't see. */
	flexsc__enter(u);
	u->cause = CAUSE___sigsetjmp;
	flexsc__return_to_host(u);
	flexsc__exit(u);
}

#define JUMP(symbol)							\
	EXPORT void jump_##symbol(jmp_buf env, int value)		\
		__asm__(#symbol) __attribute__((noreturn));		\
	EXPORT void jump_##symbol(jmp_buf env, int value)		\
	{								\
		struct uthread *u = &flexsc__self;			\
									\
		if (u->alive)						\
			leave_for(u, env);				\
		((void (*)(jmp_buf, int))flexsc__real(REAL_##symbol))(	\
			env, value);					\
		__builtin_unreachable();				\
	}

JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)
