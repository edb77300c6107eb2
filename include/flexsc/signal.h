/* SPDX-License-Identifier: MIT */
/*
 * POSIX real-time signals on SEND (SEND, section 5.2). A signal is queued by
 * stores into memory, and its handler is called by the owner's event control
 * block. The functions do what those without "flexsc_" do, and return what those
 * return: -1, and the reason in errno. So a program uses them once its names are
 * defined anew. Signals below SIGRTMIN are the kernel's as before, and so are
 * signals to other processes.
 *
 *	SIGRTMIN ...	group 0 ..., so the lowest number is handled first
 *	sigqueue()	within the process: a value at the end of its number's
 *			queue, and no system call unless the owner has to be told
 *	sigprocmask()	a store to "notify", and no system call for real-time
 *			signals alone, unless the old set is asked for
 *	sa_mask		groups that don't notify until the handler returns
 *
 * The first thread that sets an action of a real-time signal, or waits, is their
 * owner: handlers run in it, and only it waits. It lives as long as others send.
 * With an ECB of its own, which has no handler, it uses that one, all of whose
 * groups are the signals' from then on; otherwise one is made. Any thread and any
 * signal handler may queue.
 *
 * Real-time signals of other processes, descriptors (F_SETSIG), timers and AIO come
 * from the kernel, by flexsc_ecb_signal(). They are blocked for the kernel in the
 * owner, and have to be in other threads, as they are in those that the owner makes.
 * A child of fork() has the actions and the mask; its first call of one of these
 * functions makes it an owner. Until then signals wait, and so they do after exec(),
 * where they are blocked.
 *
 * What is different:
 *
 *  -	A handler's third argument is NULL.
 *  -	What a handler leaves in the queues waits for its turn: a higher number that
 *	was there before the handler began doesn't interrupt it. One that comes
 *	later does, unless sa_mask has it.
 *  -	A handler that is left by siglongjmp() leaves the mask that it had. Set
 *	another by flexsc_sigprocmask().
 *  -	SA_RESTART and SA_ONSTACK say nothing. A handler interrupts those calls
 *	that one with SA_RESTART does; with the backend kmod if the ECB has
 *	FLEXSC_ECB_INTERRUPTS_CALLS, as one that is made here has.
 *  -	The timer and the overrun of a timer's signal aren't told.
 *  -	sa_mask of a signal below SIGRTMIN doesn't block real-time ones.
 *  -	Between flexsc_ecb_critical_begin() and _end() no handler is called.
 */
#ifndef FLEXSC_SIGNAL_H
#define FLEXSC_SIGNAL_H

#include <signal.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* How many values may be queued: sysconf(_SC_SIGQUEUE_MAX). */
#define FLEXSC_SIGQUEUE_MAX	4096

/*
 * The owner, or the thread that becomes it. Beside what POSIX says EPERM: another
 * thread is the owner; EBUSY: the thread's ECB has a handler,
 * FLEXSC_ECB_BATCHED or FLEXSC_ECB_INTEGER_ONLY; EDEADLK: a wait in a critical section; and errors of
 * flexsc_ecb_create().
 */
int flexsc_sigaction(int signo, const struct sigaction *action,
		     struct sigaction *old);
int flexsc_sigwaitinfo(const sigset_t *set, siginfo_t *info);
int flexsc_sigtimedwait(const sigset_t *set, siginfo_t *info,
			const struct timespec *timeout);
int flexsc_sigsuspend(const sigset_t *mask);

/*
 * Any thread. All but the owner have real-time signals blocked, whatever they
 * ask for.
 */
int flexsc_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int flexsc_sigpending(sigset_t *set);

/* Any thread, any signal handler. */
int flexsc_sigqueue(pid_t pid, int signo, const union sigval value);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FLEXSC_SIGNAL_H */
