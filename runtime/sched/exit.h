/* SPDX-License-Identifier: MIT */
/*
 * The process's end. The counters are shown, and user threads that wait for other
 * processes return to their hosts.
 *
 * The kernel closes an io_uring some milliseconds after its process is gone, and only then
 * the files that requests wait for. Another process may need the name of such a file at
 * once: a port to listen on. So these threads wait on their hosts in the end.
 */
#ifndef FLEXSC_RUNTIME_EXIT_H
#define FLEXSC_RUNTIME_EXIT_H

/* Any thread, any signal handler: the process is about to end. */
void flexsc__exit_begins(void);

#endif /* FLEXSC_RUNTIME_EXIT_H */
