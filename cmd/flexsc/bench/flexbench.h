/* SPDX-License-Identifier: MIT */
/*
 * flexbench is the Python package behind "flexsc bench" and "flexsc report". It
 * takes this process' place, and is told by --flexsc which command that was.
 */
#ifndef FLEXSC_BENCH_FLEXBENCH_H
#define FLEXSC_BENCH_FLEXBENCH_H

/*
 * Run a module of the package with these arguments, of which NULL is the last.
 * Returns only if that fails: 1, after a line on stderr that begins with who.
 */
int flexbench_run(const char *who, const char *module, char **argv);

#endif /* FLEXSC_BENCH_FLEXBENCH_H */
