/* SPDX-License-Identifier: MIT */
/*
 * The end of the process: print the counters, and call user threads that wait for other
 * processes to their hosts.
 *
 * The kernel closes an io_uring some milliseconds after the end of its process, and
 * only then the files that requests wait for. Another process may need a resource of
 * such a file at once: a port to listen on. So these threads wait on their hosts in the
 * end.
 */
#ifndef FLEXSC_RUNTIME_EXIT_H
#define FLEXSC_RUNTIME_EXIT_H

/* Call this before the process ends. Any thread, any signal handler. */
void flexsc__exit_begins(void);

#endif /* FLEXSC_RUNTIME_EXIT_H */
