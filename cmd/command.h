/* SPDX-License-Identifier: MIT */
/*
 * The subcommands of flexsc(1). Each takes "flexsc: " and its name as argv[0]
 * and returns the exit status: 0, 1 for a failure, 2 for a wrong command line.
 */
#ifndef FLEXSC_COMMAND_H
#define FLEXSC_COMMAND_H

int command_bench(int argc, char **argv);
int command_check(int argc, char **argv);
int command_run(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_study(int argc, char **argv);
int command_top(int argc, char **argv);

#endif /* FLEXSC_COMMAND_H */
