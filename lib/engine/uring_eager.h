/* SPDX-License-Identifier: MIT */
/*
 * Reads of a file that a posted open has just opened by name. It may be a FIFO, a
 * terminal or another device, where a read by io_uring might wait for ever, or do
 * what the plain call doesn't. To find out costs a system call for each file. So
 * io_uring is told to read only what is there at once (RWF_NOWAIT): that waits
 * for nothing, and nearly always it is all. Otherwise the kernel is asked what the
 * descriptor is of, and the call goes on as any other:
 *
 *	eager	-> done		all was read, or the file's end was seen
 *	eager	-> the ring	nothing was there; the descriptor waits as
 *				io_uring does
 *	eager	-> the pool	nothing was there, or a part: of a file on a disk
 *				the rest has to be read
 *
 * Position. Such a read is executed while the owner enters the kernel, and does
 * not take the lock of the file's position. So a descriptor has FD_OPENED, which
 * an eager read takes away and its good end gives back; any call that goes another
 * way takes it away for good. Threads get calls after the ring has those reads.
 *
 * The end of a file. A read that was cut short for what isn't in memory ends
 * where a page of the file does. One that ends elsewhere has seen the file's end.
 *
 * An offset. pread() of a FIFO fails, and io_uring would take from it. An advice
 * that changes nothing, but fails for FIFOs, goes first, linked.
 *
 * Owner only.
 */
#ifndef FLEXSC_URING_EAGER_H
#define FLEXSC_URING_EAGER_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;

/* Fill a request for a SUBMITTED read; false: it has to go another way. */
bool flexsc__uring_eager(struct flexsc_loop *loop, uint32_t index);
/* It has ended. */
void flexsc__uring_eager_end(struct flexsc_loop *loop, uint32_t index,
			     int32_t res);

#endif /* FLEXSC_URING_EAGER_H */
