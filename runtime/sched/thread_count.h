/* SPDX-License-Identifier: MIT */
/*
 * libc's count of threads. Any thread.
 *
 * libc counts threads, and ends the process with the last one. The runtime's threads must
 * not count. Each takes itself off the count when it begins, and puts itself back right
 * before libc takes it off. So the count is never less than the number of the program's
 * threads, and the thread that makes it 0 ends the process. If a thread of the runtime's
 * begins only after the program's last thread has ended, it makes the count 0, and uses
 * that thread's status.
 */
#ifndef FLEXSC_RUNTIME_THREAD_COUNT_H
#define FLEXSC_RUNTIME_THREAD_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/* A thread of the runtime's leaves libc's count, and joins it again before it ends. */
void flexsc__count_leave(void);
void flexsc__count_join(void);

/* Around the making of such a thread. */
void flexsc__count_making(void);
void flexsc__count_made(bool succeeded);

/*
 * Does libc count threads other than the calling one and the runtime's own? libc counts
 * the calling thread. Waits for threads of the runtime's that are just being made or
 * counted. May be true by mistake while one ends.
 */
bool flexsc__count_others(void);

/*
 * A thread of the program's ends, and libc takes it off its count next; or by the
 * system call, which libc doesn't see. The second function returns unless the thread
 * was the last one on the count.
 */
void flexsc__count_program_ends(void);
void flexsc__count_program_ends_by_call(uint32_t status);

/* In a forked child, which has no threads of the runtime's. */
void flexsc__count_forked(void);

#endif /* FLEXSC_RUNTIME_THREAD_COUNT_H */
