/* SPDX-License-Identifier: MIT */
/*
 * The Python packages behind "flexsc bench" and "flexsc study": flexbench and
 * flexstudy. Python replaces this process, and the option --flexsc passes the
 * path of this process's program.
 */
#ifndef FLEXSC_PYTHON_H
#define FLEXSC_PYTHON_H

/*
 * Run a module of a package with the arguments argv, which end with NULL.
 * Returns only on failure: 1, after a message on stderr that begins with "who".
 */
int python_run(const char *who, const char *module, char **argv);

#endif /* FLEXSC_PYTHON_H */
