/* SPDX-License-Identifier: MIT */
/* Actions, the mask, and signals that are sent or pending. */
#include <errno.h>
#include "study/rtsignal/rtsignal.h"
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "events/event/critical.h"
#include "queue.h"
#include "signals.h"

static struct signals *const signals = &rtsig__signals;

/* Actions. */

static void action_set(uint32_t group, const struct sigaction *to)
{
	struct action *action = &signals->actions[group];
	const sigset_t others = set_others(&to->sa_mask);

	action->action = *to;
	action->blocks = set_groups(&to->sa_mask);
	if (!(to->sa_flags & SA_NODEFER))
		action->blocks |= 1U << group;
	action->blocks_others = !set_empty(&others);
}

/* What is queued and ignored from now on is forgotten, even if it is blocked. */
static void action_ignore(uint32_t group)
{
	while (rtsig__signals_gather() & 1U << group)
		rtsig__queue_take(group);
}

int rtsig_action(int signo, const struct sigaction *action,
		     struct sigaction *old)
{
	uint32_t group = signal_group(signo);
	struct flexsc_ecb *ecb;
	bool only;

	if (!is_realtime(signo))
		return sigaction(signo, action, old);
	ecb = rtsig__signals_own();
	if (!ecb)
		return -1;
	only = rtsig__signals_enter();
	if (old)
		*old = signals->actions[group].action;
	if (action)
		action_set(group, action);
	if (only && action && action->sa_handler == SIG_IGN)
		action_ignore(group);
	flexsc__critical_leave(ecb);
	return 0;
}

/* The mask. */

/* The kernel's part of the mask; real-time signals stay blocked there. */
static int mask_kernel(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t others;
	int err;

	if (set) {
		others = set_others(set);
		if (how == SIG_SETMASK)
			others = set_with(&others, INSIDE);
		/* The kernel's mask stays as it is: no system call. */
		if (!old && set_empty(&others))
			return 0;
	}
	err = pthread_sigmask(how, set ? &others : NULL, old);
	if (!err)
		return 0;
	errno = err;
	return -1;
}

static uint32_t mask_changed(int how, uint32_t groups)
{
	if (how == SIG_BLOCK)
		return signals->blocked | groups;
	return how == SIG_UNBLOCK ? signals->blocked & ~groups : groups;
}

static void mask_set(uint32_t blocked)
{
	uint32_t others = signals->blocked & ~blocked;
	bool only = rtsig__signals_enter();

	rtsig__signals_block(blocked);
	if (only) {
		rtsig__signals_leave();
		return;
	}
	rtsig__signals_tell(others);
	flexsc__critical_leave(signals->ecb);
}

static int mask_own(int how, const sigset_t *set, sigset_t *old)
{
	uint32_t blocked = signals->blocked;

	if (set && how != SIG_BLOCK && how != SIG_UNBLOCK &&
	    how != SIG_SETMASK) {
		errno = EINVAL;
		return -1;
	}
	if (mask_kernel(how, set, old))
		return -1;
	if (set)
		mask_set(mask_changed(how, set_groups(set)));
	if (old) {
		*old = set_with(old, blocked);
		sigdelset(old, SIGURG);
	}
	return 0;
}

int rtsig_procmask(int how, const sigset_t *set, sigset_t *old)
{
	enum signals_whose whose = rtsig__signals_whose();

	if (whose == SIGNALS_OTHERS)
		return mask_kernel(how, set, old);
	if (whose == SIGNALS_NOBODYS && !signals->before)
		return sigprocmask(how, set, old);
	if (!rtsig__signals_own())
		return -1;
	return mask_own(how, set, old);
}

/* Signals that are sent, and pending. */

int rtsig_pending(sigset_t *set)
{
	uint32_t groups;

	if (sigpending(set))
		return -1;
	groups = set_groups(set) | rtsig__queue_pending();
	*set = set_with(set, groups);
	return 0;
}

/* A signal that the owner sends itself is handled when this returns. */
static void signal_send(uint32_t group, uint32_t entry,
			const struct queued *queued)
{
	bool own = rtsig__signals_whose() == SIGNALS_OWN;
	bool only = own && rtsig__signals_enter();

	rtsig__queue_push(group, entry, queued);
	if (only) {
		rtsig__signals_leave();
		return;
	}
	rtsig__signals_tell(1U << group);
	if (own)
		flexsc__critical_leave(signals->ecb);
}

int rtsig_queue(pid_t pid, int signo, const union sigval value)
{
	const struct queued queued = {
		.code = SI_QUEUE,
		.pid = pid,
		.uid = signals->uid,
		.value = value,
	};
	uint32_t entry;

	if (!is_realtime(signo) ||
	    rtsig__signals_whose() == SIGNALS_NOBODYS || pid != signals->pid)
		return sigqueue(pid, signo, value);
	entry = rtsig__queue_get();
	if (!entry) {
		errno = EAGAIN;
		return -1;
	}
	signal_send(signal_group(signo), entry, &queued);
	return 0;
}
