/* SPDX-License-Identifier: MIT */
/*
 * A process that may do what it likes, and make any system call: it is nobody,
 * in an empty folder, with namespaces of its own and little of everything, and
 * whatever it has started ends with it.
 */
#ifndef FLEXSC_TESTS_CELL_H
#define FLEXSC_TESTS_CELL_H

/* Called once, as root. */
void cell_init(void);
/* Run it, until it ends; it has some seconds. It is a failure if it can't be
   ended. Its standard files are /dev/null. */
void cell_run(void (*inside)(void));

#endif /* FLEXSC_TESTS_CELL_H */
