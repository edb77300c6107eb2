/* SPDX-License-Identifier: MIT */
/*
 * flexbench is the Python package behind "flexsc bench" and "flexsc report".
 * Python takes the place of this process, and the option --flexsc tells the
 * package the path of this process' program.
 */
#ifndef FLEXSC_BENCH_H
#define FLEXSC_BENCH_H

/*
 * Run a module of the package with the arguments argv, of which NULL is the
 * last. Returns only on failure: 1, after a line on stderr that begins with
 * "who".
 */
int flexbench_run(const char *who, const char *module, char **argv);

#endif /* FLEXSC_BENCH_H */
