/* SPDX-License-Identifier: MIT */
/*
 * The runtime's own threads: carriers, the monitor, the maker, and those that the library
 * makes (lib/pool/own_thread.h). libc's real functions, in front of which the preloaded
 * library stands, make and join them. Such a thread doesn't keep the process alive when
 * the program's last thread ends (thread_count.h). Any thread.
 */
#ifndef FLEXSC_RUNTIME_INTERNAL_THREAD_H
#define FLEXSC_RUNTIME_INTERNAL_THREAD_H

#include <pthread.h>

/*
 * Make a carrier or the monitor, which from its first instruction on blocks all
 * signals but libc's SIGSETXID. Returns 0 or an error number.
 * lib/pool/own_thread.h has flexsc__own_join(), for it as well.
 */
int flexsc__internal_service(pthread_t *thread, void *(*run)(void *), void *arg);

#endif /* FLEXSC_RUNTIME_INTERNAL_THREAD_H */
