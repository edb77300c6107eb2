/* SPDX-License-Identifier: MIT */
/*
 * A process that may behave arbitrarily, and make any system call. The process is
 * user nobody, in an empty directory, with its own namespaces and low resource
 * limits. When it ends, all processes that it has started end.
 */
#ifndef FLEXSC_TESTS_CELL_H
#define FLEXSC_TESTS_CELL_H

/* Called once, as root. */
void cell_init(void);
/*
 * Runs "inside" in such a process, for at most some seconds. Fails if the process
 * can't be ended. Its standard files are /dev/null.
 */
void cell_run(void (*inside)(void));

#endif /* FLEXSC_TESTS_CELL_H */
