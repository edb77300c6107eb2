/* SPDX-License-Identifier: MIT */
/*
 * A stack of the handler's own. The handler runs there in each case: after an upcall,
 * in SIGURG's handler, at the end of a critical section, and in a wait.
 *
 * It is also the owner's alternate signal stack, so that SIGURG's frame needs no room
 * on the interrupted stack, and so that longjmp() may leave the handler. Code that is
 * on the stack already, such as a handler that is interrupted after it has ended its
 * critical section, continues below: the kernel applies the same rule. Owner only.
 */
#ifndef FLEXSC_EVENTS_STACK_H
#define FLEXSC_EVENTS_STACK_H

struct flexsc_ecb;

/* Install the stack for the calling thread. 0 or -errno. */
int flexsc__stack_begin(struct flexsc_ecb *ecb);
/* Restore the thread's former signal stack, unless the program has set another one. */
void flexsc__stack_end(const struct flexsc_ecb *ecb);
/* Call run() on the handler's stack, or, if there is none, on the current one. */
void flexsc__stack_run(struct flexsc_ecb *ecb, void (*run)(struct flexsc_ecb *ecb));

#endif /* FLEXSC_EVENTS_STACK_H */
