/* SPDX-License-Identifier: MIT */
/*
 * Tries system calls in a short-lived child. A seccomp filter may end the process that
 * makes them, and no interface shows in advance what a filter does. Any thread.
 */
#ifndef FLEXSC_TRIAL_H
#define FLEXSC_TRIAL_H

/* A signal ended the child. */
#define TRIAL_KILLED	(-1)
/*
 * No child could be created: memory or processes ran out, or the program called
 * unshare(CLONE_NEWPID).
 */
#define TRIAL_NOT_MADE	(-2)

/*
 * Runs "run" in a child that has a copy of the memory and the caller's filters. Returns
 * the result of "run" (0 to 255), or one of the values above. "run" may make plain
 * system calls only: the copied memory may have libc's locks held by threads that the
 * child lacks.
 */
int flexsc__trial(int (*run)(const void *arg), const void *arg);

#endif /* FLEXSC_TRIAL_H */
