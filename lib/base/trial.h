/* SPDX-License-Identifier: MIT */
/*
 * Tries system calls in a short-lived child. A seccomp filter may end the process that
 * makes such a call, and no interface shows in advance what a filter does. Any thread.
 */
#ifndef FLEXSC_TRIAL_H
#define FLEXSC_TRIAL_H

/* Result: a signal ended the child. */
#define TRIAL_KILLED	(-1)
/*
 * Result: no child could be created. Memory or processes ran out, or the program called
 * unshare(CLONE_NEWPID).
 */
#define TRIAL_NOT_MADE	(-2)

/*
 * Calls "run" in a child that has a copy of the memory and the caller's filters.
 * Returns the result of "run" (0 to 255), or one of the values above. "run" may only
 * make plain system calls: in the copied memory, libc's locks may be held by threads
 * that don't exist in the child.
 */
int flexsc__trial(int (*run)(const void *arg), const void *arg);

#endif /* FLEXSC_TRIAL_H */
