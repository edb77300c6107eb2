/* SPDX-License-Identifier: MIT */
/*
 * Signals of user threads.
 *
 * A sleeping host keeps its user thread's signal mask. So the kernel itself chooses the
 * thread that gets a signal, and /proc and kill(2) work as without this library. The
 * runtime keeps the program's handlers in a table and gives the kernel a handler of its
 * own. What that handler does depends on the kernel thread that received the signal:
 *
 *	a host whose user thread is there, outside the runtime
 *			run the program's handler
 *	a host whose user thread is there, inside the runtime
 *			send the signal to this kernel thread again, and block all
 *			signals here until the user thread exits from the runtime
 *	a sleeping host	the same, and call the user thread to its host, where the
 *			signal then arrives
 *	a carrier	fault: move the user thread to its host, where the fault
 *			happens again
 *			SIGPIPE of a write: send it to the host of the user thread
 *			SIGSETXID: run libc's handler with the carrier's own TLS
 *
 * Carriers don't block the signals that faults and writes raise. Other processes may
 * send such signals to the process, too, and a carrier may then receive them. Therefore
 * the kernel has the runtime's handler for them even if the program has none. The
 * carrier passes the signal on to the host of the user thread that it runs.
 *
 * If that user thread blocks the signal, the carrier sends it to the process again, and
 * blocks it until it runs a user thread that doesn't. Meanwhile a host that handles the
 * signal or waits for it gets it.
 *
 * The kernel ends a process that faults with the signal blocked. So a carrier must not
 * block a fault's signal that its user thread doesn't block. A carrier that has
 * unblocked SIGPIPE blocks it again only when one was sent. Otherwise the SIGPIPE of a
 * posted write would stay pending.
 *
 * A SIGPIPE that a write raised looks like one that the process sent to itself. But
 * after a write there is an EPIPE: in the registers of the interrupted user thread, or
 * as the result of a posted call. A carrier finds that result when it next looks for
 * completions.
 *
 * A signal that is sent again is queued behind those that came meanwhile, but real-time
 * signals must be handled in order. So only a token is sent again, and host.first keeps
 * the siginfo that the token stands for. Each handler that runs takes the siginfo in
 * host.first and leaves its own there, until the token arrives and empties host.first.
 *
 * A SIGSETXID that is queued with a mark calls a user thread from a carrier to its
 * host. The runtime's handler moves the user thread from inside the signal frame. When
 * the handler returns, the interrupted code continues on the host. The frame is on a
 * signal stack of the carrier, because the user thread may have little stack left. The
 * user thread takes that stack along, and the carrier gets another.
 */
#ifndef FLEXSC_RUNTIME_SIGNALS_H
#define FLEXSC_RUNTIME_SIGNALS_H

#include <signal.h>

#include "runtime/base/sigset.h"
#include "runtime/sched/uthread.h"

/* Replace all handlers by the runtime's. Once, at the start. */
void flexsc__signal_init(void);
/* Another thread made u's call, which raised this signal: raise it at u's host. */
void flexsc__signal_self(struct uthread *u, int signo);

/*
 * User thread, inside the runtime: the kernel has queued a signal for the thread tid.
 * If tid is the host of another user thread, call that user thread to its host at once.
 * The caller may notify that user thread next, and the handler must run before any call
 * that the user thread makes after that.
 */
void flexsc__signal_sent(int32_t tid, int signo);

#endif /* FLEXSC_RUNTIME_SIGNALS_H */
