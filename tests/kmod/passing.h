/* SPDX-License-Identifier: MIT */
/* Open files that processes pass to each other through a socket (SCM_RIGHTS). */
#ifndef FLEXSC_TESTS_PASSING_H
#define FLEXSC_TESTS_PASSING_H

/* 0, or -errno. It doesn't wait. */
int pass_file(int socket, int fd);
/* A new descriptor of the next file, or -errno. It doesn't wait. */
int take_file(int socket);

#endif /* FLEXSC_TESTS_PASSING_H */
