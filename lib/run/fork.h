/* SPDX-License-Identifier: MIT */
/* A forked child marks its parent's loops stale. Any thread. */
#ifndef FLEXSC_FORK_H
#define FLEXSC_FORK_H

/* Called before a loop is made, as often as one likes. 0 or -errno. */
int flexsc__fork_prepare(void);

#endif /* FLEXSC_FORK_H */
