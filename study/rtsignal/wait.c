/* SPDX-License-Identifier: MIT */
/*
 * The owner waits for signals, in a critical section: no handler runs before the
 * wait is over, so none is missed. Signals of the kernel's own are watched by a
 * signalfd meanwhile. Owner only.
 */
#include <errno.h>
#include <flexsc/flexsc.h>
#include "study/rtsignal/rtsignal.h"
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "events/event/critical.h"
#include "queue.h"
#include "signals.h"

/* How long a wait sleeps while the queues are full. */
#define FULL	(SECOND / 100)

static struct signals *const signals = &rtsig__signals;

struct wait {
	uint32_t groups;	/* that are taken */
	sigset_t others;	/* of the kernel's own, that are looked at */
	int (*take_other)(struct wait *wait);	/* a number, 0, -errno */
	siginfo_t *info;	/* NULL: nobody asks */
	uint64_t until;		/* UINT64_MAX: no limit */
};

static int wait_take_own(struct wait *wait, uint32_t group)
{
	const struct queued queued = rtsig__queue_take(group);

	if (wait->info) {
		*wait->info = rtsig__signals_info(group, &queued);
		/* As glibc says of what raise() sends. */
		if (wait->info->si_code == SI_TKILL)
			wait->info->si_code = SI_USER;
	}
	return group_signal(group);
}

/* Full queues don't keep a signal that is waited for in the kernel. */
static int wait_take_kernels(const struct wait *wait)
{
	const sigset_t set = set_with(&(sigset_t){ 0 }, wait->groups);
	int signo = sigtimedwait(&set, wait->info, &(struct timespec){ 0 });

	return signo > 0 ? signo : 0;
}

/* What ends the wait: a number, or -errno; 0: nothing yet. */
static int wait_take(struct wait *wait)
{
	uint32_t ready = rtsig__signals_gather() & wait->groups;
	int ret = 0;

	if (!set_empty(&wait->others))
		ret = wait->take_other(wait);
	if (ret)
		return ret;
	if (ready)
		return wait_take_own(wait, (uint32_t)__builtin_ctz(ready));
	if (signals->full && wait->groups)
		ret = wait_take_kernels(wait);
	if (ret)
		return ret;
	return rtsig__signals_due() ? -EINTR : 0;
}

static uint64_t wait_left(const struct wait *wait)
{
	uint64_t now = time_monotonic();

	if (wait->until == UINT64_MAX)
		return FLEXSC_FOREVER;
	return wait->until > now ? wait->until - now : 0;
}

/* Sleep until there may be something. 1, 0 when it is too late, -errno. */
static int wait_sleep(const struct wait *wait)
{
	uint64_t left = wait_left(wait);
	int ret;

	if (!signals->full)
		return flexsc_ecb_wait(signals->ecb,
				       wait->groups | ~signals->blocked, left);
	/* No event tells of the kernel's signals. */
	ret = flexsc_ecb_wait(signals->ecb, INSIDE,
			      left < FULL ? left : FULL);
	return ret || left <= FULL ? ret : 1;
}

static int wait_run(struct wait *wait)
{
	int ret, any = 1;

	while (!(ret = wait_take(wait)) && any > 0)
		any = wait_sleep(wait);
	if (ret)
		return ret;
	return any ? any : -EAGAIN;
}

/* wait_run() with the kernel's own signals watched. */
static int wait_watching(struct wait *wait)
{
	int fd, event, ret;

	if (set_empty(&wait->others))
		return wait_run(wait);
	ret = wait_take(wait);
	if (ret)
		return ret;
	fd = signalfd(-1, &wait->others, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	event = flexsc_ecb_watch(signals->ecb, fd, POLLIN, SIGNALS, NULL);
	if (event < 0) {
		close(fd);
		return event;
	}
	ret = wait_run(wait);
	flexsc_ecb_close(signals->ecb, (unsigned int)event);
	return ret;
}

/* The owner's ECB, with a critical section that is the only one, or NULL. */
static struct flexsc_ecb *wait_begin(void)
{
	struct flexsc_ecb *ecb = rtsig__signals_own();

	if (!ecb || rtsig__signals_enter())
		return ecb;
	flexsc__critical_leave(ecb);
	errno = EDEADLK;
	return NULL;
}

static int wait_end(int ret)
{
	rtsig__signals_leave();
	if (ret > 0)
		return ret;
	errno = -ret;
	return -1;
}

/* sigwaitinfo(), sigtimedwait(). */

static int wait_take_pending(struct wait *wait)
{
	int signo = sigtimedwait(&wait->others, wait->info,
				 &(struct timespec){ 0 });

	return signo > 0 ? signo : 0;
}

static int wait_for(const sigset_t *set, siginfo_t *info, uint64_t until)
{
	struct wait wait = {
		.take_other = wait_take_pending,
		.info = info,
		.until = until,
	};

	if (!wait_begin())
		return -1;
	wait.groups = set_groups(set);
	wait.others = set_others(set);
	return wait_end(wait_watching(&wait));
}

int rtsig_waitinfo(const sigset_t *set, siginfo_t *info)
{
	return wait_for(set, info, UINT64_MAX);
}

int rtsig_timedwait(const sigset_t *set, siginfo_t *info,
			const struct timespec *timeout)
{
	uint64_t ns;

	if (!timeout)
		return rtsig_waitinfo(set, info);
	if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 ||
	    timeout->tv_nsec >= (long)SECOND) {
		errno = EINVAL;
		return -1;
	}
	ns = (uint64_t)timeout->tv_nsec;
	if ((uint64_t)timeout->tv_sec > (UINT64_MAX >> 1) / SECOND)
		return rtsig_waitinfo(set, info);
	ns += (uint64_t)timeout->tv_sec * SECOND;
	return wait_for(set, info, time_monotonic() + ns);
}

/* sigsuspend(). */

/* Does a signal of the kernel's own do anything? */
static bool is_ignored(int signo)
{
	struct sigaction action;

	sigaction(signo, NULL, &action);
	if (action.sa_handler != SIG_DFL)
		return action.sa_handler == SIG_IGN;
	return signo == SIGCHLD || signo == SIGCONT || signo == SIGWINCH;
}

/* One that is pending is about to be handled, or to be dropped. */
static int wait_see_pending(struct wait *wait)
{
	sigset_t pending;

	sigpending(&pending);
	for (int signo = 1; signo < SIGRTMIN; signo++) {
		const sigset_t one = set_of(1ULL << (signo - 1));

		if (!sigismember(&pending, signo) ||
		    !sigismember(&wait->others, signo))
			continue;
		if (!is_ignored(signo))
			return -EINTR;
		sigtimedwait(&one, NULL, &(struct timespec){ 0 });
	}
	return 0;
}

int rtsig_suspend(const sigset_t *mask)
{
	struct wait wait = {
		.take_other = wait_see_pending,
		.until = UINT64_MAX,
	};
	sigset_t others = set_others(mask), before;
	uint32_t blocked;
	int ret;

	if (!wait_begin())
		return -1;
	blocked = signals->blocked;
	rtsig__signals_block(set_groups(mask));
	/* They stay blocked until the wait is over. */
	pthread_sigmask(SIG_BLOCK, &others, &before);
	wait.others = set_of(set_bits(&before) & ~set_bits(mask));
	wait.others = set_others(&wait.others);
	ret = wait_watching(&wait);
	pthread_sigmask(SIG_UNBLOCK, &wait.others, NULL);
	rtsig__signals_leave();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	rtsig__signals_enter();
	rtsig__signals_block(blocked);
	return wait_end(ret);
}
