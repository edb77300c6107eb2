/* SPDX-License-Identifier: MIT */
/*
 * The end of the process: print the counters, and return user threads to their hosts if
 * they wait for an unconnected socket, such as a listening one.
 *
 * The kernel closes an io_uring some milliseconds after the end of its process, and
 * closes the files that its requests wait for only then. Another process may need a
 * resource of such a file at once: a port to listen on. So at the end these user
 * threads wait on their hosts, without io_uring.
 */
#ifndef FLEXSC_RUNTIME_EXIT_H
#define FLEXSC_RUNTIME_EXIT_H

/* Call this before the process ends. Any thread, any signal handler. */
void flexsc__exit_begins(void);

#endif /* FLEXSC_RUNTIME_EXIT_H */
