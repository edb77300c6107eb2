/* SPDX-License-Identifier: MIT */
#include "calls.h"

#include <signal.h>

#include "runtime/base/peek.h"
#include "runtime/base/sigset.h"
#include "runtime/sched/host.h"
#include "perform.h"

/* The signals that libc never lets the program block. */
#define LIBC_S		(SIGNAL_BIT(SIGNAL_CANCEL) | \
			 SIGNAL_BIT(SIGNAL_SETXID))

/*
 * Does the set have all signals, except perhaps libc's own? libc blocks such a set only
 * briefly.
 */
static bool is_all(sigmask_t set)
{
	return (set | LIBC_S) == ~0ULL;
}

static sigmask_t changed(uint64_t how, sigmask_t mask, sigmask_t set)
{
	const sigmask_t never = SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP);

	switch (how) {
	case SIG_BLOCK:
		return (mask | set) & ~never;
	case SIG_UNBLOCK:
		return mask & ~set;
	default:
		return set & ~never;
	}
}

/*
 * While a user thread is away from its host, host.mask is its signal mask. The kernel
 * must get each change, so the call is made on the host. If all signals are blocked,
 * which libc does only briefly, only host.mask changes: a signal that arrives at the
 * host meanwhile makes the user thread return to its host, where host.mask blocks the
 * signal.
 */
long flexsc__sigmask(struct uthread *u, const uint64_t args[6])
{
	const sigmask_t *set = (void *)(uintptr_t)args[1];
	sigmask_t *old = (void *)(uintptr_t)args[2], original = u->host.mask, next;

	if (on_host() || args[3] != sizeof(sigmask_t) ||
	    args[0] > SIG_SETMASK || !peek_if_given(set, sizeof(*set)) ||
	    !peek_if_given(old, sizeof(*old)))
		return flexsc__perform_go_to_host(u, SYS_rt_sigprocmask, args);
	next = set ? changed(args[0], original, *set) : original;
	if (next != original && next != u->host.sleep_mask &&
	    !(args[0] == SIG_BLOCK && is_all(*set)))
		return flexsc__perform_go_to_host(u, SYS_rt_sigprocmask, args);
	u->host.mask = next;
	if (old)
		*old = original;
	return 0;
}
