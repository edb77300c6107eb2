/* SPDX-License-Identifier: MIT */
/*
 * libc's count of threads. Any thread.
 *
 * libc counts threads, and ends the process with the last one. The runtime's threads
 * must not count. So each takes itself off the count when it begins, and puts itself
 * back right before libc takes it off. The count is never less than the number of the
 * program's threads, and the thread that makes it 0 ends the process. A thread of the
 * runtime that begins after the program's last thread has ended makes the count 0. It
 * ends the process with the status of that last thread. A last thread in strict mode may
 * still run then: in that case the process ends with the last thread itself.
 */
#ifndef FLEXSC_RUNTIME_THREAD_COUNT_H
#define FLEXSC_RUNTIME_THREAD_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Called before the first thread of the runtime, also in a forked child, which has none. */
void flexsc__count_begin(void);

/* A thread of the runtime leaves libc's count, and joins it again right before its end. */
void flexsc__count_leave(void);
void flexsc__count_join(void);

/* Call these around the creation of a thread of the runtime. */
void flexsc__count_making(void);
void flexsc__count_made(bool succeeded);

/*
 * Does libc count threads besides the calling one and the runtime's? Waits while a
 * thread of the runtime is being created or counted. May be true by mistake while one
 * ends.
 */
bool flexsc__count_others(void);

/* The calling thread of the program ends; libc takes it off the count afterwards. */
void flexsc__count_program_ends(void);
/*
 * The calling thread of the program ends by syscall(SYS_exit), which libc doesn't see:
 * take the thread off the count. Returns unless it was the last one. Call exit(2) then.
 */
void flexsc__count_program_ends_by_call(uint32_t status);

/*
 * The runtime begins to watch a thread of the program, or stops although the thread goes
 * on. The process lasts until a watched thread has died, even if libc no longer counts
 * that thread.
 */
void flexsc__count_program_watched(bool begins);
/*
 * A watched thread has died, without a notice to libc. status: as in wait(2). counts:
 * libc still counts the thread, so take it off the count.
 */
void flexsc__count_program_died(bool counts, int status);

#endif /* FLEXSC_RUNTIME_THREAD_COUNT_H */
