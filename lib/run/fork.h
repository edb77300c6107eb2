/* SPDX-License-Identifier: MIT */
/* What a forked child does to its parent's loops. Any thread. */
#ifndef FLEXSC_FORK_H
#define FLEXSC_FORK_H

/* Before the first loop is made, and as often as you like. 0 or -errno. */
int flexsc__fork_prepare(void);

#endif /* FLEXSC_FORK_H */
