/* SPDX-License-Identifier: MIT */
#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime/arch/frame.h"
#include "runtime/counters/counters.h"
#include "runtime/sched/adopt.h"
#include "runtime/sched/anchored.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/carrier_signal.h"
#include "runtime/sched/host.h"
#include "runtime/sched/identity.h"
#include "runtime/sched/resent_signals.h"
#include "runtime/sched/stacks.h"
#include "runtime/sched/state.h"
#include "runtime/sched/sticky.h"
#include "runtime/sched/uthreads.h"
#include "runtime/sched/wait.h"
#include "actions.h"

/* Signals that arrive. */

/*
 * libc sends SIGNAL_CANCEL to a thread if its cancellation is enabled and asynchronous,
 * as in a cancellation point. When the signal arrives, the user thread may have left
 * that call, disabled cancellation, and begun another call. The handler of libc 2.36
 * tests the type again, but not whether cancellation is enabled. So with cancellation
 * disabled, the handler must see the type "deferred".
 */
static void run_action(int signo, siginfo_t *info, ucontext_t *context)
{
	int state = PTHREAD_CANCEL_ENABLE, type;

	if (signo == SIGNAL_CANCEL) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		pthread_setcancelstate(state, NULL);
	}
	if (state == PTHREAD_CANCEL_DISABLE)
		pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	flexsc__action_run(signo, info, context);
	if (state == PTHREAD_CANCEL_DISABLE)
		pthread_setcanceltype(type, NULL);
}

static void handle(struct uthread *u, int signo, siginfo_t *info,
		   ucontext_t *context)
{
	bool restarts = flexsc__action_flags(signo) & SA_RESTART;
	bool busy = u->busy, site = u->site, point = u->point;
	uint8_t handled = restarts ? HANDLED_RESTART : HANDLED_INTERRUPT;
	uint8_t before = u->handled;
	uintptr_t low = (uintptr_t)context->uc_stack.ss_sp;
	struct stay stay;

	/*
	 * The frame restores this kernel thread's mask and signal stack, so the user
	 * thread stays on its host until the handler has ended.
	 */
	flexsc__stay_left(u, frame_sp(context));
	stay = flexsc__stay_begin(u, low, low + context->uc_stack.ss_size);
	flexsc__resent_give(u, signo, info);
	if (signo == SIGTRAP && signal_is_fault(signo, info) && u->host.trap)
		frame_set_trap(context, u->host.trap);
	u->host.trap = 0;
	/* The handler may jump away, so the thread must be outside the runtime. */
	u->busy = false;
	u->site = false;
	u->point = false;
	run_action(signo, info, context);
	flexsc__enter(u);
	flexsc__return_to_host(u);
	flexsc__exit(u);
	flexsc__stay_end(u, stay);
	u->busy = busy;
	u->site = site;
	u->point = point;
	/*
	 * Calls that the handler made have changed u->handled, so set it for the
	 * interrupted call again.
	 */
	u->handled = before > handled ? before : handled;
}

/*
 * Send the signal to this kernel thread again, and block it until the user thread is on
 * its host and outside the runtime.
 */
static void postpone(struct uthread *u, int signo, siginfo_t *info,
		     ucontext_t *context)
{
	sigmask_t all = ~(1ULL << (SIGNAL_SETXID - 1));

	flexsc__resent_keep(u, signo, info);
	signal_queue(u->host.k.tid, signo, info);
	if (!u->host.masked) {
		memcpy(&u->host.mask, &context->uc_sigmask, sizeof(all));
		u->host.masked = true;
	}
	memcpy(&context->uc_sigmask, &all, sizeof(all));
	flexsc__want(u);
}

static struct uthread *user_of(struct kthread *k)
{
	return (struct uthread *)((char *)k - offsetof(struct uthread,
						       host.k));
}

/*
 * libc's handler finds its thread's data by the thread pointer. While a user thread
 * runs here, the thread pointer is the user thread's. So the carrier's is set for the
 * handler.
 */
static void setxid(const struct kthread *k, int signo, siginfo_t *info,
		   ucontext_t *context)
{
	uint64_t tp = context_tp();

	context_set_tp(k->tp);
	flexsc__action_run(signo, info, context);
	context_set_tp(tp);
	flexsc__identity_changed(k->carrier);
}

/*
 * If the signal's frame is on the carrier's signal stack, the user thread takes that
 * stack to its host. All signals are blocked until the carrier has another stack.
 * Otherwise the next signal's frame would overwrite this one.
 */
static void signal_go_to_host(struct kthread *k, struct uthread *u)
{
	struct carrier *c = k->carrier;
	char *stack = c->stack;

	if (stack && (char *)u->sp >= stack &&
	    (char *)u->sp < stack + flexsc__small.bytes) {
		u->host.borrowed = stack;
		flexsc__signal_stack(c);
	}
	/*
	 * The carrier doesn't return from its handler, so restore the carrier's mask
	 * here.
	 */
	signal_mask(SIG_SETMASK, &c->open, NULL);
	counters_return(u->cause);
	flexsc__send_to_host(u);
}

/* Is the interrupted call the one that the monitor found? */
static bool call_is_noted(const struct stuck *stuck, const ucontext_t *context)
{
	return stuck->nr >= 0 &&
	       frame_is_in(context, stuck->sp, stuck->pc, stuck->args);
}

/*
 * The signal that called u to its host interrupted a call that the kernel doesn't
 * restart after a handler. The program sent no signal and must not see EINTR, so the
 * call is restarted here. A relative time limit begins anew. close(2) isn't restarted:
 * it has closed the descriptor, and returns 0.
 */
static void restart_call(const struct stuck *stuck, ucontext_t *context)
{
	long nr = stuck->nr;
	uint64_t first = stuck->args[0];

	if (frame_result(context) != -EINTR ||
	    (!call_is_noted(stuck, context) && !frame_call(context, &nr, &first)))
		return;
	if (nr == SYS_close)
		frame_set_result(context, 0);
	else
		frame_make_again(context, nr, first);
}

static void move_to_host(struct kthread *k, struct uthread *u,
		      ucontext_t *context, const struct stuck *stuck)
{
	sigmask_t mask;

	flexsc__enter(u);
	memcpy(&k->carrier->open, &context->uc_sigmask, sizeof(mask));
	flexsc__suspend(u, signal_go_to_host);
	if (stuck && u->cause != CAUSE_SIGNAL && !atomic_load(&u->wanted))
		restart_call(stuck, context);
	mask = flexsc__settle_in_frame(u);
	/*
	 * The frame has the carrier's mask and signal stack, but the handler returns on
	 * the host. So replace both by those of the user thread.
	 */
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	raw_syscall(SYS_sigaltstack, 0, PTR(&context->uc_stack), 0, 0, 0, 0);
}

static void called_to_host(struct kthread *k, const siginfo_t *info,
			ucontext_t *context)
{
	struct uthread *u = k->current;
	struct carrier *c = k->carrier;
	const struct stuck stuck = flexsc__signal_noted(c, info);

	/* A busy user thread is suspended, or will be soon, so it needn't be moved. */
	if (!u || u->busy)
		return;
	if (atomic_load(&u->wanted))
		u->cause = CAUSE_SIGNAL;
	else if (carrier_is_ward(c) ||
		 atomic_load(&c->preempt) == c->k.counters->switches)
		u->cause = CAUSE_KEPT;
	else if (atomic_load(&u->anchored))
		u->cause = CAUSE_ANCHORED;
	else
		return;
	if (u->cause == CAUSE_KEPT && stuck.nr >= 0) {
		flexsc__sticky_stuck(u);
	} else if (u->cause == CAUSE_KEPT) {
		u->computes_on_host = true;
		atomic_store_explicit(&u->slow, UTHREAD_SLOW, memory_order_relaxed);
	}
	move_to_host(k, u, context, &stuck);
}

/*
 * A fault of the program happens again on the host, where mask and signal stack are as
 * natively and where a handler may jump away. Signals that come after their instruction
 * (arch/frame.h) don't happen again, so they are sent to the host, like the SIGABRT of
 * an abort() that libc calls itself.
 */
static void fault(struct kthread *k, int signo, siginfo_t *info,
		  ucontext_t *context)
{
	struct uthread *u = k->current;

	if (!u || u->busy) {
		flexsc__action_run(signo, info, context);
		return;
	}
	u->host.trap = frame_trap(context);
	u->cause = CAUSE_FAULT;
	move_to_host(k, u, context, NULL);
	if (frame_is_past(signo) || signo == SIGABRT)
		signal_queue(u->host.k.tid, signo, info);
}

static siginfo_t passed_on(const siginfo_t *info)
{
	siginfo_t copy = *info;

	if (copy.si_code >= 0 || copy.si_code == SI_TKILL)
		copy.si_code = SI_QUEUE;
	return copy;
}

/*
 * Send the signal to the process again. From the end of the handler on, block it on
 * this kernel thread, so that another thread gets it.
 */
static void give_back(int signo, const siginfo_t *info, ucontext_t *context)
{
	siginfo_t copy = passed_on(info);
	sigmask_t mask;

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	mask |= SIGNAL_BIT(signo);
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	signal_queue_process(signo, &copy);
}

/*
 * A carrier received a signal to the process: pass the signal on to its user thread's
 * host, or return it to the process. Takes no lock, because the interrupted user thread
 * may hold any. A signal of kill(2) arrives as if sent by sigqueue(3), with the same
 * sender, because rt_sigqueueinfo(2) rejects kill(2)'s code for another thread.
 */
static void pass_on(struct kthread *k, int signo, siginfo_t *info,
		    ucontext_t *context)
{
	const struct uthread *u = k->current;
	siginfo_t copy = passed_on(info);

	if (!u || u->host.sleep_mask & SIGNAL_BIT(signo)) {
		atomic_fetch_or(&k->carrier->blocked, SIGNAL_BIT(signo));
		give_back(signo, info, context);
	} else {
		signal_queue(u->host.k.tid, signo, &copy);
	}
}

/*
 * Does the fault end the process, because its signal has the default action or is
 * blocked?
 */
static bool is_final(const struct kthread *k, int signo)
{
	const struct uthread *u = k->current;

	return flexsc__action_is_default(signo) ||
	       (u && u->host.sleep_mask & SIGNAL_BIT(signo) & SIGNAL_FAULTS);
}

/*
 * A carrier received a SIGPIPE that a write raised, or that the process sent to itself.
 * If the signal interrupted a user thread's own code, and the registers show EPIPE,
 * libc itself has written to a pipe without readers, for example for stdio. That call
 * is over, so the signal is sent to the user thread's host. Without EPIPE the process
 * sent the signal, so it is passed on. If the signal interrupted the runtime, a posted
 * call may have raised it. The carrier finds out whether a call has ended with EPIPE
 * when it next collects completions; calls/hook.c raises the signal for that call's
 * user thread.
 */
static void broken_pipe(struct kthread *k, siginfo_t *info,
			ucontext_t *context)
{
	struct uthread *u = k->current;

	if (!u || u->busy) {
		atomic_store(&k->carrier->pipe_came, true);
		/*
		 * Wake the carrier, because it may have read pipe_came already and be
		 * about to sleep. A carrier that is starting has no loop.
		 */
		if (k->carrier->loop)
			flexsc_loop_wake(k->carrier->loop, NULL);
		return;
	}
	if (frame_result(context) != -EPIPE) {
		pass_on(k, SIGPIPE, info, context);
		return;
	}
	u->cause = CAUSE_SIGNAL;
	move_to_host(k, u, context, NULL);
	signal_queue(u->host.k.tid, SIGPIPE, info);
}

/* Did the thread itself raise the signal, by an abort() that libc calls? */
static bool aborts(int signo, const siginfo_t *info)
{
	return signo == SIGABRT && info->si_code == SI_TKILL &&
	       info->si_pid == signal_process();
}

static void on_carrier(struct kthread *k, int signo, siginfo_t *info,
		       ucontext_t *context)
{
	flexsc__adopt_gate(k->carrier);
	if (signal_is_fault(signo, info) && is_final(k, signo))
		flexsc__action_end(signo, info, context);
	else if (signal_is_fault(signo, info) || (aborts(signo, info) && k->current))
		fault(k, signo, info, context);
	else if (signo == SIGPIPE && info->si_code == SI_USER &&
		 info->si_pid == signal_process())
		broken_pipe(k, info, context);
	else if (signo != SIGNAL_SETXID)
		pass_on(k, signo, info, context);
	else if (flexsc__signal_is_marked(info))
		called_to_host(k, info, context);
	else
		setxid(k, signo, info, context);
}

/*
 * libc's handler changes the users or groups of this kernel thread, and then makes a
 * futex wake-up. Run the handler inside the runtime, so that the user thread doesn't
 * leave its host at this wake-up.
 */
static void setxid_on_host(struct uthread *u, int signo, siginfo_t *info,
			   ucontext_t *context)
{
	const bool asleep = u->host.away, outside = !u->busy && !asleep;

	if (!filter_is_near(u))
		flexsc__identity_await();
	if (outside)
		flexsc__enter(u);
	atomic_store(&u->host.handles, asleep);
	u->host.changes = true;
	flexsc__action_run(signo, info, context);
	u->host.changes = false;
	atomic_store(&u->host.handles, false);
	if (outside)
		flexsc__exit(u);
}

static void on_a_host(struct kthread *k, int signo, siginfo_t *info,
		      ucontext_t *context)
{
	struct uthread *u = user_of(k);

	if (signo == SIGNAL_SETXID) {
		if (!flexsc__signal_is_marked(info))
			setxid_on_host(u, signo, info, context);
	} else if (u->host.changes && aborts(signo, info)) {
		/* The kernel threads' users differ, so libc ends the process. */
		flexsc__action_run(signo, info, context);
	} else if (u->host.away || (u->busy && !signal_is_fault(signo, info))) {
		postpone(u, signo, info, context);
	} else {
		handle(u, signo, info, context);
	}
}

/*
 * Did a carrier create the calling thread, and has the thread not set its own mask yet?
 * Until then it has the carrier's mask.
 */
static bool is_new(int signo)
{
	if (!(runtime_raised() & SIGNAL_BIT(signo)))
		return false;
	if (CONTEXT_SELF_IN_TLS)
		return !flexsc__self.alive && atomic_load(&flexsc__runtime.births);
	/* The creator's self. */
	return kthread_is_carrier(context_self_if_any());
}

static void signal_arrive(int signo, siginfo_t *info, void *frame)
{
	ucontext_t *context = frame;
	struct kthread *k;

	/* Test this first, because kthread_known() may make a call. */
	if (flexsc__self.strict) {
		flexsc__action_run(signo, info, context);
		return;
	}
	k = kthread_known();
	if (k && k->carrier)
		on_carrier(k, signo, info, context);
	else if (!k && is_new(signo) && !signal_is_fault(signo, info))
		give_back(signo, info, context);
	else if (!k || (signal_is_fault(signo, info) && flexsc__action_is_default(signo)))
		flexsc__action_run(signo, info, context);
	else
		on_a_host(k, signo, info, context);
}

void flexsc__signal_self(struct uthread *u, int signo)
{
	if (flexsc__action_ignores(signo))
		return;
	u->cause = CAUSE_SIGNAL;
	flexsc__return_to_host(u);
	/* The handler runs when the user thread exits from the runtime. */
	raw_syscall(SYS_tgkill, (uint64_t)signal_process(), (uint64_t)u->host.k.tid,
		    (uint64_t)signo, 0, 0, 0);
}

void flexsc__signal_sent(int32_t tid, int signo)
{
	struct uthread *u;

	if (!flexsc__signal_has_handler(signo))
		return;
	flexsc__uthreads_lock();
	u = flexsc__uthread_with(tid);
	if (u)
		flexsc__want(u);
	flexsc__uthreads_unlock();
}

void flexsc__signal_init(void)
{
	flexsc__actions_init(signal_arrive);
}
