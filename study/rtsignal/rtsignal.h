/* SPDX-License-Identifier: MIT */
/*
 * These functions set errno, unlike the library's: rtsig_NAME() does and returns what
 * POSIX' sigNAME() does, so that a program may use it under that name.
 *
 * They implement POSIX real-time signals on an event control block (SEND, section
 * 5.2). A signal is queued by stores into memory, and the owner's ECB calls its handler.
 * Signals below SIGRTMIN, and signals to other processes, go to the kernel.
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
 *	another by rtsig_procmask().
 *  -	SA_RESTART and SA_ONSTACK say nothing. A handler interrupts those calls
 *	that one with SA_RESTART does; with the backend kmod if the ECB has
 *	FLEXSC_ECB_INTERRUPTS_CALLS, as one that is made here has.
 *  -	The timer and the overrun of a timer's signal aren't told.
 *  -	sa_mask of a signal below SIGRTMIN doesn't block real-time ones.
 *  -	Between flexsc_ecb_critical_begin() and _end() no handler is called.
 */
#ifndef STUDY_RTSIGNAL_H
#define STUDY_RTSIGNAL_H

#include <signal.h>
#include <sys/types.h>
#include <time.h>

/* How many values may be queued: sysconf(_SC_SIGQUEUE_MAX). */
#define RTSIG_QUEUE_MAX	4096

/*
 * The owner, or the thread that becomes it. Beside what POSIX says EPERM: another
 * thread is the owner; EBUSY: the thread's ECB has a handler,
 * FLEXSC_ECB_BATCHED or FLEXSC_ECB_INTEGER_ONLY; EDEADLK: a wait in a critical section; and errors of
 * flexsc_ecb_create().
 */
int rtsig_action(int signo, const struct sigaction *action,
		     struct sigaction *old);
int rtsig_waitinfo(const sigset_t *set, siginfo_t *info);
int rtsig_timedwait(const sigset_t *set, siginfo_t *info,
			const struct timespec *timeout);
int rtsig_suspend(const sigset_t *mask);

/*
 * Any thread. All but the owner have real-time signals blocked, whatever they
 * ask for.
 */
int rtsig_procmask(int how, const sigset_t *set, sigset_t *old);
int rtsig_pending(sigset_t *set);

/* Any thread, any signal handler. */
int rtsig_queue(pid_t pid, int signo, const union sigval value);

#endif /* STUDY_RTSIGNAL_H */
