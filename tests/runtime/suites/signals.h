/* SPDX-License-Identifier: MIT */
/*
 * Included before a test of the Open POSIX Test Suite: its functions of signals
 * are study/rtsignal's if the environment variable SIGNALS is set, and
 * libc's otherwise. In both cases its signals are real-time ones. Of the rest it
 * has functions that are made of these.
 */
#ifndef FLEXSC_TESTS_SIGNALS_H
#define FLEXSC_TESTS_SIGNALS_H

#include <errno.h>
#include "study/rtsignal/rtsignal.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* Those whose default action is to end the process. */
#undef SIGHUP
#undef SIGINT
#undef SIGQUIT
#undef SIGILL
#undef SIGTRAP
#undef SIGABRT
#undef SIGBUS
#undef SIGFPE
#undef SIGUSR1
#undef SIGSEGV
#undef SIGUSR2
#undef SIGPIPE
#undef SIGTERM
#undef SIGXCPU
#undef SIGXFSZ
#undef SIGVTALRM
#undef SIGPROF
#undef SIGPOLL
#undef SIGSYS

/* Numbers, as they may be labels of a switch: SIGRTMIN is 34. */
#define SIGHUP		37
#define SIGINT		38
#define SIGQUIT		39
#define SIGILL		40
#define SIGTRAP		41
#define SIGABRT		42
#define SIGBUS		43
#define SIGFPE		44
#define SIGUSR1		45
#define SIGSEGV		46
#define SIGUSR2		47
#define SIGPIPE		48
#define SIGTERM		49
#define SIGXCPU		50
#define SIGXFSZ		51
#define SIGVTALRM	52
#define SIGPROF		53
#define SIGPOLL		54
#define SIGSYS		55

static inline int peers_ours(void)
{
	return getenv("SIGNALS") != NULL;
}

/* Function-like, so the struct keeps its name. */
#define sigaction(signo, action, old)					\
	(peers_ours() ? rtsig_action(signo, action, old) :		\
			(sigaction)(signo, action, old))
#define sigprocmask(how, set, old)					\
	(peers_ours() ? rtsig_procmask(how, set, old) :		\
			(sigprocmask)(how, set, old))
#define sigqueue(pid, signo, value)					\
	(peers_ours() ? rtsig_queue(pid, signo, value) :		\
			(sigqueue)(pid, signo, value))
#define sigpending(set)							\
	(peers_ours() ? rtsig_pending(set) : (sigpending)(set))
#define sigwaitinfo(set, info)						\
	(peers_ours() ? rtsig_waitinfo(set, info) :			\
			(sigwaitinfo)(set, info))
#define sigtimedwait(set, info, timeout)				\
	(peers_ours() ? rtsig_timedwait(set, info, timeout) :	\
			(sigtimedwait)(set, info, timeout))
#define sigsuspend(mask)						\
	(peers_ours() ? rtsig_suspend(mask) : (sigsuspend)(mask))

static inline int peers_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	if (!peers_ours())
		return pthread_sigmask(how, set, old);
	return rtsig_procmask(how, set, old) ? errno : 0;
}

static inline int peers_hold(int how, int signo)
{
	sigset_t set;

	sigemptyset(&set);
	return sigaddset(&set, signo) ? -1 : sigprocmask(how, &set, NULL);
}

static inline int peers_sigwait(const sigset_t *set, int *signo)
{
	if (!peers_ours())
		return sigwait(set, signo);
	*signo = rtsig_waitinfo(set, NULL);
	return *signo < 0 ? errno : 0;
}

static inline void (*peers_signal(int signo, void (*handler)(int)))(int)
{
	struct sigaction action, old;

	if (!peers_ours())
		return signal(signo, handler);
	sigemptyset(&action.sa_mask);
	action.sa_flags = SA_RESTART;
	action.sa_handler = handler;
	return sigaction(signo, &action, &old) ? SIG_ERR : old.sa_handler;
}

#define pthread_sigmask(how, set, old)	peers_sigmask(how, set, old)
#define sighold(signo)			peers_hold(SIG_BLOCK, signo)
#define sigrelse(signo)			peers_hold(SIG_UNBLOCK, signo)
#define signal(signo, handler)		peers_signal(signo, handler)
#define sigwait(set, signo)		peers_sigwait(set, signo)
#define sysconf(name)							\
	((name) == _SC_SIGQUEUE_MAX && peers_ours() ?			\
		 RTSIG_QUEUE_MAX : (sysconf)(name))

#endif /* FLEXSC_TESTS_SIGNALS_H */
