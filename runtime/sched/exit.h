/* SPDX-License-Identifier: MIT */
/*
 * The process's end: the counters are shown, and user threads that wait for other
 * processes go to their hosts for other processes.
 *
 * The kernel closes an io_uring some milliseconds after its process is gone, and only
 * then the files that requests wait for. Another process may need such a file's name at
 * once: a port to listen on. So at the process's end, threads that wait for it go to
 * their hosts and wait there.
 */
#ifndef FLEXSC_RUNTIME_EXIT_H
#define FLEXSC_RUNTIME_EXIT_H

/* Any thread, any signal handler: the process is about to end. */
void flexsc__exit_begins(void);

#endif /* FLEXSC_RUNTIME_EXIT_H */
