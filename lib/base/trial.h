/* SPDX-License-Identifier: MIT */
/*
 * System calls are tried in a short-lived child, because a seccomp filter may end
 * the process at them and no interface shows what a filter would do. Any thread.
 */
#ifndef FLEXSC_TRIAL_H
#define FLEXSC_TRIAL_H

/* The child was ended by a signal, or gave no status. */
#define TRIAL_KILLED	(-1)
/* There was no child: the limit of processes, or unshare(CLONE_NEWPID). */
#define TRIAL_NOT_MADE	(-2)

/*
 * What "run" returns (0 to 255) in a child with a copy of the memory and of the
 * caller's filters; or one of the above. "run" makes plain system calls only.
 */
int flexsc__trial(int (*run)(const void *arg), const void *arg);

#endif /* FLEXSC_TRIAL_H */
