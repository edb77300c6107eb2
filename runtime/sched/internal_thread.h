/* SPDX-License-Identifier: MIT */
/*
 * The runtime's own threads: carriers, the monitor, the maker, and threads of the
 * library (lib/pool/own_thread.h). libc's real functions, not the interposed ones,
 * create and join them. Such a thread doesn't keep the process alive after the
 * program's last thread (thread_count.h). Any thread.
 */
#ifndef FLEXSC_RUNTIME_INTERNAL_THREAD_H
#define FLEXSC_RUNTIME_INTERNAL_THREAD_H

#include <pthread.h>

/*
 * Create a carrier, the monitor or the maker. The thread blocks all signals but libc's
 * SIGSETXID from its first instruction on. Returns 0 or an error number.
 * flexsc__own_join() (lib/pool/own_thread.h) joins it.
 */
int flexsc__internal_service(pthread_t *thread, void *(*run)(void *), void *arg);

#endif /* FLEXSC_RUNTIME_INTERNAL_THREAD_H */
