/* SPDX-License-Identifier: MIT */
#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/checks.h"
#include "events/event/critical.h"
#include "events/event/take.h"
#include "queue.h"

/* No notification, or handlers that aren't any function. */
#define UNFIT	(FLEXSC_ECB_BATCHED | FLEXSC_ECB_INTEGER_ONLY)

struct signals rtsig__signals;
static struct signals *const signals = &rtsig__signals;

enum signals_whose rtsig__signals_whose(void)
{
	struct flexsc_ecb *ecb = __atomic_load_n(&signals->ecb,
						 __ATOMIC_ACQUIRE);

	if (!ecb)
		return SIGNALS_NOBODYS;
	return ecb == flexsc__ecb_self ? SIGNALS_OWN : SIGNALS_OTHERS;
}

void rtsig__signals_tell(uint32_t groups)
{
	for (; groups; groups &= groups - 1)
		flexsc_ecb_post(signals->ecb,
				signals->events[__builtin_ctz(groups)], 1);
}

/* U3 is at the end of the critical section. */
static void signals_say(uint32_t but)
{
	__atomic_store_n(&signals->ecb->control->notify,
			 ~signals->blocked & ~but, __ATOMIC_RELAXED);
}

void rtsig__signals_block(uint32_t groups)
{
	signals->blocked = groups & INSIDE;
	signals_say(0);
}

/* What there is. */

/* The kernel's signal is queued behind the process' own. */
static void signal_bring(const struct flexsc_ecb_event *event, uint32_t entry)
{
	const struct queued queued = {
		.code = (int32_t)(event->payload[0] >> 32),
		.pid = (pid_t)(uint32_t)event->payload[1],
		.uid = (uid_t)(event->payload[1] >> 32),
		.value.sival_ptr = (void *)(uintptr_t)event->payload[2],
	};

	rtsig__queue_push(signal_group((int)(uint32_t)event->payload[0]),
			   entry, &queued);
}

/* False: there is no room, so the rest stays in the kernel. */
static bool signals_bring(void)
{
	struct flexsc_ecb_event event;

	while (control_pending(signals->ecb->control) & OUTSIDE) {
		uint32_t entry = rtsig__queue_get();

		if (!entry)
			return false;
		if (flexsc__take(signals->ecb, OUTSIDE, &event) &&
		    event.type == FLEXSC_EVT_SIGNAL)
			signal_bring(&event, entry);
		else
			rtsig__queue_put(entry);
	}
	return true;
}

uint32_t rtsig__signals_gather(void)
{
	struct flexsc_ecb_event event;

	while (control_pending(signals->ecb->control) & INSIDE)
		flexsc__take(signals->ecb, INSIDE, &event);
	/* A thread that takes a signal, and so makes room, gathers again. */
	signals->full = !signals_bring();
	signals_say(signals->full ? OUTSIDE : 0);
	return rtsig__queue_ready();
}

/* Signals of a group that is ignored are no more. */
static uint32_t signals_ignore(uint32_t groups)
{
	for (uint32_t left = groups; left; left &= left - 1) {
		uint32_t group = (uint32_t)__builtin_ctz(left);

		if (signals->actions[group].action.sa_handler == SIG_IGN)
			while (rtsig__queue_ready() & 1U << group)
				rtsig__queue_take(group);
	}
	return groups & rtsig__queue_ready();
}

uint32_t rtsig__signals_due(void)
{
	return signals_ignore(rtsig__signals_gather() & ~signals->blocked);
}

/* Handling. */

/* The default action of a real-time signal. */
static void signal_end_process(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	signal(signo, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(signo);
}

/* A descriptor's signal has its band and the descriptor in their place. */
_Static_assert(offsetof(siginfo_t, si_band) == offsetof(siginfo_t, si_pid) &&
	       offsetof(siginfo_t, si_fd) == offsetof(siginfo_t, si_value),
	       "as the event's payload has them");

siginfo_t rtsig__signals_info(uint32_t group, const struct queued *queued)
{
	siginfo_t info = {
		.si_signo = group_signal(group),
		.si_code = queued->code,
	};

	info.si_pid = queued->pid;
	info.si_uid = queued->uid;
	info.si_value = queued->value;
	return info;
}

static void signal_call(const struct sigaction *action, uint32_t group,
			const struct queued *queued)
{
	siginfo_t info;

	if (!(action->sa_flags & SA_SIGINFO)) {
		action->sa_handler(group_signal(group));
		return;
	}
	info = rtsig__signals_info(group, queued);
	action->sa_sigaction(info.si_signo, &info, NULL);
}

/*
 * The handler runs outside of the critical section, so that signals which it
 * doesn't block interrupt it.
 */
static void signal_run(const struct action *action, uint32_t group,
		       const struct queued *queued)
{
	struct flexsc_ecb *ecb = signals->ecb;
	sigset_t others = set_others(&action->action.sa_mask), before;
	int err = errno;

	if (action->blocks_others)
		pthread_sigmask(SIG_BLOCK, &others, &before);
	flexsc__critical_leave(ecb);
	signal_call(&action->action, group, queued);
	critical_enter(ecb);
	if (action->blocks_others)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = err;
}

static void signal_handle(uint32_t group)
{
	const struct queued queued = rtsig__queue_take(group);
	struct action *set = &signals->actions[group];
	const struct action action = *set;
	uint32_t blocked = signals->blocked;

	if (action.action.sa_handler == SIG_DFL) {
		signal_end_process(group_signal(group));
		return;
	}
	if (action.action.sa_flags & (int)SA_RESETHAND) {
		set->action.sa_handler = SIG_DFL;
		set->action.sa_flags &= ~SA_SIGINFO;
	}
	rtsig__signals_block(blocked | action.blocks);
	signal_run(&action, group, &queued);
	rtsig__signals_block(blocked);
}

static void signals_handle(void)
{
	uint32_t due;

	while ((due = rtsig__signals_due()))
		signal_handle((uint32_t)__builtin_ctz(due));
}

/*
 * The ECB's handler. If SIGURG's called it, that is blocked, and couldn't
 * interrupt the program's handlers.
 */
static void signals_notified(struct flexsc_ecb *ecb, void *arg)
{
	const sigset_t urgent = set_of(1ULL << (SIGURG - 1));
	sigset_t before;

	if (!rtsig__signals_due())
		return;
	pthread_sigmask(SIG_UNBLOCK, &urgent, &before);
	signals_handle();
	if (sigismember(&before, SIGURG))
		pthread_sigmask(SIG_BLOCK, &urgent, NULL);
}

bool rtsig__signals_enter(void)
{
	uint32_t *critical = &signals->ecb->control->critical;
	bool only = !__atomic_load_n(critical, __ATOMIC_RELAXED);

	critical_enter(signals->ecb);
	return only;
}

void rtsig__signals_leave(void)
{
	RULE(signals->ecb->control->critical == 1);
	signals_handle();
	flexsc__critical_leave(signals->ecb);
}

/* A thread becomes the owner. */

/* The ECB is destroyed, or this is a forked child. */
static void signals_over(void)
{
	__atomic_store_n(&signals->ecb, NULL, __ATOMIC_RELEASE);
}

static void signals_forget(struct flexsc_ecb *ecb, int n)
{
	for (int i = 0; i < n; i++)
		flexsc_ecb_forget(ecb, signals->events[i]);
}

static int signals_make_events(struct flexsc_ecb *ecb)
{
	const sigset_t all = set_with(&(sigset_t){ 0 }, INSIDE);
	int event;

	for (int i = 0; i < SIGNALS; i++) {
		event = flexsc_ecb_user(ecb, i, NULL);
		if (event < 0) {
			signals_forget(ecb, i);
			return event;
		}
		signals->events[i] = (unsigned int)event;
	}
	event = flexsc_ecb_signal(ecb, &all, SIGNALS, NULL);
	if (event >= 0)
		return 0;
	signals_forget(ecb, SIGNALS);
	return event;
}

/* The thread's ECB, or a new one. */
static int signals_ecb(struct flexsc_ecb **ecb)
{
	const struct flexsc_ecb_options options = {
		.size = sizeof(options),
		.events = 2 * SIGNALS,
		.flags = FLEXSC_ECB_INTERRUPTS_CALLS,
	};

	*ecb = flexsc__ecb_self;
	if (!*ecb)
		return flexsc_ecb_create(ecb, &options);
	return (*ecb)->handler || (*ecb)->flags & UNFIT ? -EBUSY : 0;
}

static int signals_begin(struct flexsc_ecb *ecb)
{
	sigset_t mask;
	int err;

	/* From here on all real-time signals are blocked in the kernel. */
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	err = signals_make_events(ecb);
	if (err)
		return err;
	if (!signals->before)
		signals->blocked = set_groups(&mask);
	signals->before = true;
	signals->pid = getpid();
	signals->uid = getuid();
	rtsig__queue_reset();
	ecb->over = signals_over;
	ecb->handler = signals_notified;
	__atomic_store_n(&signals->ecb, ecb, __ATOMIC_RELEASE);
	flexsc_ecb_notify(ecb, ~signals->blocked);
	return 0;
}

struct flexsc_ecb *rtsig__signals_own(void)
{
	struct flexsc_ecb *ecb = signals->ecb, *had = flexsc__ecb_self;
	enum signals_whose whose = rtsig__signals_whose();
	int err = whose == SIGNALS_OTHERS ? -EPERM : 0;

	if (whose == SIGNALS_NOBODYS) {
		err = signals_ecb(&ecb);
		if (!err)
			err = signals_begin(ecb);
		if (err && ecb && !had)
			flexsc_ecb_destroy(ecb);
	}
	if (!err)
		return ecb;
	errno = -err;
	return NULL;
}
