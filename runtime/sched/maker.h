/* SPDX-License-Identifier: MIT */
/*
 * Requests for threads of the library (lib/pool/own_thread.h). Creating a thread takes
 * locks of libc's: for its stack, its thread-local storage, the heap. A user thread
 * that holds such a lock may be queued on a carrier. So neither a carrier, nor a thread
 * that a carrier waits for, may wait for such a lock. The maker is the thread that
 * creates spares (spare.h). The maker creates these threads, too, because no other
 * thread waits for it.
 */
#ifndef FLEXSC_RUNTIME_MAKER_H
#define FLEXSC_RUNTIME_MAKER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The maker begins. Before that, each thread that requests a thread creates it itself.
 */
void flexsc__maker_begin(void);
/* The maker only: create the requested threads. */
void flexsc__maker_make(void);
/* The maker only: try to end. False: there are requests. */
bool flexsc__maker_end(void);
/*
 * Wake-ups of the maker. Any thread wakes it. The maker reads the number of wake-ups,
 * looks for work, and sleeps until the number has grown, or for ns nanoseconds at most.
 */
void flexsc__maker_wake(void);
uint32_t flexsc__maker_woken(void);
void flexsc__maker_sleep(uint32_t before, uint64_t ns);

/* Called in a forked child, which has no maker. */
void flexsc__maker_forget(void);

#endif /* FLEXSC_RUNTIME_MAKER_H */
