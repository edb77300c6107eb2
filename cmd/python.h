/* SPDX-License-Identifier: MIT */
/*
 * The Python packages behind "flexsc bench" and "flexsc study": flexbench and
 * flexstudy. Python takes the place of this process, and gets the path of this
 * process' program by the option --flexsc.
 */
#ifndef FLEXSC_PYTHON_H
#define FLEXSC_PYTHON_H

/*
 * Run a module of a package with the arguments argv, of which NULL is the last.
 * Returns only on failure: 1, after a line on stderr that begins with "who".
 */
int python_run(const char *who, const char *module, char **argv);

#endif /* FLEXSC_PYTHON_H */
