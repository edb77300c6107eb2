/* SPDX-License-Identifier: MIT */
/*
 * The runtime's own threads: carriers, the monitor, the maker, and those that the library
 * makes (lib/pool/own_thread.h). libc's real functions, in front of which the preloaded
 * library stands, make and join them. Such a thread doesn't keep the process alive when
 * the program's last thread ends. Any thread.
 */
#ifndef FLEXSC_RUNTIME_INTERNAL_THREAD_H
#define FLEXSC_RUNTIME_INTERNAL_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Make a carrier or the monitor, which from its first instruction on blocks all
 * signals but libc's SIGSETXID. Returns 0 or an error number.
 * lib/pool/own_thread.h has flexsc__own_join(), for it as well.
 */
int flexsc__internal_service(pthread_t *thread, void *(*run)(void *), void *arg);

/*
 * Does libc count threads other than the calling one and the runtime's own? libc counts
 * the calling thread. Waits for threads of the runtime's that are just being made or
 * counted. May be true by mistake while one ends.
 */
bool flexsc__internal_others(void);

/*
 * A thread of the program's ends, and libc takes it off its count next; or by the
 * system call, which libc doesn't see. The second function returns unless the thread
 * was the last one on the count.
 */
void flexsc__internal_program_ends(void);
void flexsc__internal_program_ends_by_call(uint32_t status);

/* In a forked child, which has no threads of the runtime's. */
void flexsc__internal_forked(void);

#endif /* FLEXSC_RUNTIME_INTERNAL_THREAD_H */
