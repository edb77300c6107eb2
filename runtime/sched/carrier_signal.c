/* SPDX-License-Identifier: MIT */
#include "carrier_signal.h"

#include <errno.h>
#include <time.h>

#include "stacks.h"

#define POPULATE_WRITE	23	/* MADV_POPULATE_WRITE, missing in old headers */

/*
 * The runtime marks its SIGSETXIDs with the address of one of these bytes: those of
 * flexsc__signal_stuck() with "mark_stuck", all others with "mark".
 */
static char mark, mark_stuck;

void flexsc__signal_stack(struct carrier *c)
{
	stack_t stack = { .ss_flags = SS_DISABLE };

	c->stack = flexsc__stack_get(&flexsc__small);
	if (c->stack) {
		stack = (stack_t){ c->stack, 0, flexsc__small.bytes };
		/*
		 * Linux since 5.14: allocate the stack's memory now. If a cgroup's
		 * limit forbids the memory for a signal's frame later, the kernel ends
		 * the process by SIGSEGV.
		 */
		raw_syscall(SYS_madvise, PTR(c->stack), flexsc__small.bytes,
			    POPULATE_WRITE, 0, 0, 0);
	}
	raw_syscall(SYS_sigaltstack, PTR(&stack), 0, 0, 0, 0, 0);
}

void flexsc__signal_fini(struct carrier *c)
{
	const sigmask_t all = ~0ULL;
	const stack_t none = { .ss_flags = SS_DISABLE };

	signal_mask(SIG_SETMASK, &all, NULL);
	raw_syscall(SYS_sigaltstack, PTR(&none), 0, 0, 0, 0, 0);
	flexsc__stack_put(&flexsc__small, c->stack);
	if (c->kept_timer >= 0)
		raw_syscall(SYS_timer_delete, (uint64_t)c->kept_timer, 0, 0, 0,
			    0, 0);
}

void flexsc__signal_unblock(struct carrier *c, sigmask_t but)
{
	sigmask_t these = atomic_load(&c->blocked) & ~but;

	if (!these)
		return;
	/*
	 * Clear the bits before unblocking: a handler that passes a signal on sets the
	 * signal's bit again, and that bit must stay set.
	 */
	atomic_fetch_and(&c->blocked, ~these);
	signal_mask(SIG_UNBLOCK, &these, NULL);
	/* By now a thread has received any SIGPIPE that was sent to the process. */
	if (these & SIGNAL_BIT(SIGPIPE))
		atomic_store(&c->pipe_came, false);
}

void flexsc__signal_pipe(struct carrier *c)
{
	const sigmask_t this = SIGNAL_BIT(SIGPIPE);
	siginfo_t info = { .si_signo = SIGPIPE, .si_code = SI_QUEUE };
	bool sent = !c->pipe_broke;

	atomic_store(&c->pipe_came, false);
	c->pipe_broke = false;
	if (!sent)
		return;
	info.si_pid = (pid_t)signal_process();
	info.si_uid = (uid_t)raw_syscall(SYS_getuid, 0, 0, 0, 0, 0, 0);
	atomic_fetch_or(&c->blocked, this);
	signal_mask(SIG_BLOCK, &this, NULL);
	signal_queue_process(SIGPIPE, &info);
}

bool flexsc__signal_is_marked(const siginfo_t *info)
{
	return (info->si_code == SI_QUEUE || info->si_code == SI_TIMER) &&
	       (info->si_ptr == &mark || info->si_ptr == &mark_stuck);
}

struct stuck flexsc__signal_noted(struct carrier *c, const siginfo_t *info)
{
	struct stuck stuck = { .nr = -1 };

	if (info->si_ptr != &mark_stuck)
		return stuck;
	stuck = c->stuck;
	/* T2: from here on the monitor may write c->stuck again; pairs with T1. */
	atomic_store(&c->called, false);
	return stuck;
}

static bool carrier_call_to_host(const struct carrier *c, char *is)
{
	siginfo_t info = { .si_signo = SIGNAL_SETXID, .si_code = SI_QUEUE };

	info.si_pid = (pid_t)signal_process();
	info.si_ptr = is;
	return signal_queue(c->k.tid, SIGNAL_SETXID, &info);
}

void flexsc__signal_carrier(const struct carrier *c)
{
	carrier_call_to_host(c, &mark);
}

void flexsc__signal_stuck(struct carrier *c)
{
	atomic_store(&c->called, true);
	/* If sending fails (RLIMIT_SIGPENDING), no handler will clear "called". */
	if (!carrier_call_to_host(c, &mark_stuck))
		atomic_store(&c->called, false);
}

bool flexsc__signal_running(const struct carrier *c)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1 };

	return c->kept_timer >= 0 &&
	       !raw_syscall(SYS_timer_settime, (uint64_t)c->kept_timer, 0,
			    PTR(&soon), 0, 0, 0);
}

int flexsc__signal_timer(const struct carrier *c)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGNAL_SETXID,
				  .sigev_value.sival_ptr = &mark };
	int timer;

	event._sigev_un._tid = c->k.tid;
	if (raw_syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, PTR(&event),
			PTR(&timer), 0, 0, 0))
		return -1;
	return timer;
}
