/* SPDX-License-Identifier: MIT */
/*
 * The library's threads that are to be made (lib/pool/own_thread.h). Making a thread takes
 * locks of libc's: for its stack, its thread-local storage, the heap. A user thread that
 * holds one may be queued on a carrier. So neither a carrier, nor a thread that a carrier
 * waits for, may wait for such a lock. The thread that makes spares (spare.h) is the
 * maker: it makes these threads, too, because no other thread waits for it.
 */
#ifndef FLEXSC_RUNTIME_MAKER_H
#define FLEXSC_RUNTIME_MAKER_H

#include <stdbool.h>
#include <stdint.h>

/* The maker begins. Before, the thread that requests another one makes it. */
void flexsc__maker_begin(void);
/* The maker only: make the requested threads. */
void flexsc__maker_make(void);
/* True: the maker may end. False: there is a request. */
bool flexsc__maker_end(void);
/*
 * Any thread: wake the maker. It reads the number of wake-ups, looks for work, and sleeps
 * for ns nanoseconds at most unless the number has grown since.
 */
void flexsc__maker_wake(void);
uint32_t flexsc__maker_woken(void);
void flexsc__maker_sleep(uint32_t before, uint64_t ns);

/* In a forked child. */
void flexsc__maker_forget(void);

#endif /* FLEXSC_RUNTIME_MAKER_H */
