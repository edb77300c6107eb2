/* SPDX-License-Identifier: MIT */
/*
 * Signals of user threads.
 *
 * A sleeping host keeps its user thread's signal mask. So the kernel itself chooses the
 * thread that gets a signal, and /proc and kill(2) work as without this library. The
 * runtime keeps the program's handlers in a table and gives the kernel a handler of its
 * own. That handler acts by the kernel thread that the signal came to:
 *
 *	a host, outside the runtime
 *			run the program's handler
 *	a sleeping host	send the signal to this kernel thread again, block all
 *			signals on it, and call the user thread to its host;
 *			there the signal arrives
 *	a host whose user thread is inside the runtime
 *			as a sleeping host; the signal arrives when the user
 *			thread exits from the runtime
 *	a carrier	move a user thread that faults to its host, where it
 *			faults again; send a SIGPIPE to the host of the user
 *			thread whose write raised it; for SIGSETXID run libc's
 *			handler with the carrier's own TLS
 *
 * Faults and writes raise some signals, which other processes may also send to the
 * process; then they reach a carrier by chance. The kernel has the runtime's handler for
 * them even if the program has none, so that the carrier can pass such a signal on to the
 * host of the user thread that it runs.
 *
 * If that user thread blocks the signal, the carrier gives it back to the process, and
 * blocks it until it runs a user thread that doesn't. A host that handles it or waits for
 * it gets it then.
 *
 * The kernel ends a process that faults with the signal blocked. So a carrier must not
 * block a fault's signal that its user thread doesn't block. A carrier that has unblocked
 * SIGPIPE doesn't block it before one was sent, so that the SIGPIPE of a posted write
 * doesn't stay pending.
 *
 * A SIGPIPE that a write raised and one that the process sent to itself look alike. If a
 * write raised it, there is an EPIPE: in the registers of the interrupted user thread, or
 * as the result of a posted call. A carrier finds that result with its next look at
 * complete calls.
 *
 * A signal that is sent again is queued behind those that came meanwhile, but real-time
 * signals must be handled in order. So only a token is sent again; host.first has the
 * siginfo that it stands for. Each handler that runs takes the siginfo in host.first and
 * leaves its own there, until the token arrives and empties host.first.
 *
 * A SIGSETXID that is queued with a mark calls a user thread from a carrier to its host.
 * The runtime's handler moves the user thread from inside the signal frame, and the
 * interrupted program continues on its host when the handler returns. The frame is on a
 * signal stack of the carrier's, because the user thread may have little stack left. The
 * user thread takes that stack along, and the carrier gets another.
 */
#ifndef FLEXSC_RUNTIME_SIGNALS_H
#define FLEXSC_RUNTIME_SIGNALS_H

#include <signal.h>

#include "runtime/base/sigset.h"
#include "runtime/sched/uthread.h"

/* Replace all handlers by the runtime's. Once, at the start. */
void flexsc__signal_init(void);
/*
 * A call of u's that its host didn't make raised a signal: raise it at u's
 * host.
 */
void flexsc__signal_self(struct uthread *u, int signo);

/*
 * User thread, inside the runtime: the kernel has queued a signal for the thread tid. If
 * that is another user thread's host, the user thread is wanted there at once, because
 * the caller may notify it next, and none of its calls after that may come before its
 * handler.
 */
void flexsc__signal_sent(int32_t tid, int signo);

#endif /* FLEXSC_RUNTIME_SIGNALS_H */
