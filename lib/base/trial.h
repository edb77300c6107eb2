/* SPDX-License-Identifier: MIT */
/*
 * Trying system calls in a short-lived child. A seccomp filter may end the process at
 * them, and no interface shows what a filter would do. Any thread.
 */
#ifndef FLEXSC_TRIAL_H
#define FLEXSC_TRIAL_H

/* A signal ended the child. */
#define TRIAL_KILLED	(-1)
/*
 * No child could be made, because memory or processes ran out; or none may be made, after
 * unshare(CLONE_NEWPID).
 */
#define TRIAL_NOT_MADE	(-2)

/*
 * Runs "run" in a child that has a copy of the memory and the caller's filters. Returns
 * what "run" returns (0 to 255), or one of the above. "run" makes plain system calls
 * only: libc's locks may be held by threads that the child lacks.
 */
int flexsc__trial(int (*run)(const void *arg), const void *arg);

#endif /* FLEXSC_TRIAL_H */
