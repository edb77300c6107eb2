/* SPDX-License-Identifier: MIT */
/*
 * The library's threads that are to be made (lib/pool/own_thread.h). Making a
 * thread takes locks of libc's: for its stack, its thread-local storage, the heap.
 * A user thread that holds one may be in the queue of a carrier. So neither a
 * carrier, nor a thread that a carrier waits for, may wait for such a lock. The thread
 * that makes spares (spare.h) makes these threads, too, because no other thread waits
 * for it.
 */
#ifndef FLEXSC_RUNTIME_MAKER_H
#define FLEXSC_RUNTIME_MAKER_H

#include <stdbool.h>
#include <stdint.h>

/* The maker begins; until then whoever wants a thread makes it. */
void flexsc__maker_begin(void);
/* The maker only: make what is to be made. */
void flexsc__maker_make(void);
/* The maker ends, after this returns true. False: there is something to make. */
bool flexsc__maker_end(void);
/*
 * Any thread: there is something for the maker to do. The maker reads how often that
 * was, looks for work, and sleeps for ns nanoseconds at most if there was none since.
 */
void flexsc__maker_wake(void);
uint32_t flexsc__maker_woken(void);
void flexsc__maker_sleep(uint32_t before, uint64_t ns);

/* In a forked child. */
void flexsc__maker_forget(void);

#endif /* FLEXSC_RUNTIME_MAKER_H */
