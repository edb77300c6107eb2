/* SPDX-License-Identifier: MIT */
/*
 * Signals of user threads.
 *
 * A parked kernel thread keeps its user thread's signal mask, so the kernel
 * itself chooses who gets a signal, and /proc and kill(2) see what they would
 * see without this library. The program's handlers are kept here; the kernel
 * has one of ours, which runs on the kernel thread that the signal came to:
 *
 *	at home		the program's handler, in its thread, as ever
 *	a parked home	sends the signal to itself again, blocks all signals,
 *			and calls its user thread home; it arrives there
 *	a home whose user thread is inside the runtime
 *			the same; it arrives when that is left
 *	a carrier	only faults, which belong to who runs there and
 *			happen once more at home, SIGPIPE, which goes there
 *			with who wrote, and SIGSETXID: libc's handler
 *			with the carrier's own TLS
 *
 * What faults and writes raise may also be sent, to the process. For these
 * signals the kernel has our handler even if the program has none, so that a
 * carrier that gets one can pass it on: to the home of who runs there, if that
 * one doesn't block it; else back to the process, and the carrier blocks it
 * until it runs somebody who doesn't. A home that takes it or waits for it gets
 * it, now or later. A carrier blocks nothing that who runs there doesn't: a
 * fault that is blocked ends the process, as natively. SIGPIPE it doesn't block
 * before one was sent: what a write raises then goes no further. What the kernel
 * raises and what the process sends itself look the same: the former comes with
 * EPIPE, to who runs there, or by a call that was posted; that is seen when the
 * calls are looked at that are complete.
 *
 * What is sent again comes after what was queued meanwhile. So for signals that
 * queue it is a token: home.first has what it stands for, each handler gets
 * what is there, and leaves there what came to it; the token ends that.
 *
 * A user thread that runs on a carrier is called home by SIGSETXID, queued
 * with a mark: it moves, from inside our handler, and the interrupted program
 * goes on at home, by the same signal frame. The frame is on a signal stack of
 * the carrier's, for the user thread may have none left of its own; it takes
 * that stack along, and the carrier gets another.
 */
#ifndef FLEXSC_THREADS_SIGNALS_H
#define FLEXSC_THREADS_SIGNALS_H

#include <signal.h>

#include "../run/uthread.h"

#define SIGNAL_BIT(signo)	(1ULL << ((signo) - 1))
/* What instructions raise. */
#define SIGNAL_FAULTS	(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | \
			 SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGILL) | \
			 SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS))
/* What somebody raises by what he does has to reach him. */
#define SIGNAL_RAISED	(SIGNAL_FAULTS | SIGNAL_BIT(SIGPIPE))

#define SIGNAL_CANCEL	32	/* glibc's */
#define SIGNAL_SETXID	33

/* Put ours in the place of all handlers there are. Once, at the start. */
void flexsc__signal_init(void);
/* In a forked child. */
void flexsc__signal_forked(void);

/* The program's mask comes to u's home: what is blocked waits there as it is. */
void flexsc__signal_unmask(struct uthread *u, sigmask_t mask);

/* The calling carrier gets a stack for the signals that reach it. */
void flexsc__signal_stack(struct carrier *c);

/* The calling carrier blocks no more of SIGNAL_RAISED than these. */
void flexsc__signal_unblock(struct carrier *c, sigmask_t but);

/*
 * The calling carrier, on its own stack. A SIGPIPE has come, before those calls
 * were looked at that are complete by now: if none of them has raised it, it was
 * sent.
 */
void flexsc__signal_pipe(struct carrier *c);

/* rt_sigaction(2), as the program makes it. */
long flexsc__signal_action(const uint64_t args[6]);

/* rt_sigprocmask(2), as a user thread makes it. */
long flexsc__signal_mask(struct uthread *u, const uint64_t args[6]);

/* A call of u's that its home didn't make is one that raises a signal. */
void flexsc__signal_self(struct uthread *u, int signo);

/* The kernel's struct sigaction. */
struct action {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	sigmask_t mask;
};

/* Where libc has handlers return to. */
uint64_t flexsc__signal_restorer(void);

/* libc has set a handler of its own, unseen. */
void flexsc__signal_adopt(int signo);

/* Has the program a handler for it? */
bool flexsc__signal_has_handler(int signo);

/* Any thread: u, which seems to run on this carrier, is wanted at home. */
void flexsc__signal_carrier(const struct carrier *c);

/* The monitor: who keeps this carrier is, from the call that is in c->stuck. */
void flexsc__signal_stuck(struct carrier *c);
/*
 * The same for who runs, at the next tick of its processor: the kernel looks at
 * such timers where it returns to the program, so no call is interrupted, not
 * even one that begins in this moment. False: there is no timer.
 */
bool flexsc__signal_running(const struct carrier *c);

/* For that, the calling carrier's; negative: there is none. */
int flexsc__signal_timer(const struct carrier *c);

#endif /* FLEXSC_THREADS_SIGNALS_H */
