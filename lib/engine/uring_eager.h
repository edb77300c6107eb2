/* SPDX-License-Identifier: MIT */
/*
 * Reads of a file that a posted open has just opened by name. The file may be a
 * FIFO, a terminal or another device, where a read by io_uring might wait for
 * ever, or do what the plain call doesn't. To find out costs a system call. So
 * the request has RWF_NOWAIT, with which io_uring transfers only what is in
 * memory. Nearly always that is all. Linux rejects RWF_NOWAIT for FIFOs opened by
 * name, for terminals and for most other devices, before they lose a byte.
 * Otherwise the library looks up the kind of file, and the call goes on as any
 * other:
 *
 *	eager	-> done		all was read, or the file's end was seen
 *	eager	-> eager	a part was read
 *	eager	-> the ring	nothing was there; the descriptor waits as
 *				io_uring does
 *	eager	-> the pool	a part of a file on a disk isn't in memory
 *
 * Position. Such a read is executed while the owner enters the kernel, and does
 * not take the lock of the file's position. So an eager read exchanges FD_OPENED
 * for FD_READING, and its good end exchanges them back, unless the descriptor was
 * closed meanwhile; any call that goes another way takes away both for good.
 * Threads get calls after the ring has those reads.
 *
 * The end of a file. A read of what isn't in memory ends where a page of the file
 * does. So pread() has seen the end if it stopped elsewhere. Of a read() the
 * position isn't known, because the program may have moved it by a plain call. The
 * rest of that is read in the same way until a read returns 0.
 *
 * Owner only.
 */
#ifndef FLEXSC_URING_EAGER_H
#define FLEXSC_URING_EAGER_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;
struct io_uring_sqe;

/* Fill a request for a SUBMITTED read; false: it has to go another way. */
bool flexsc__uring_eager(struct flexsc_loop *loop, uint32_t index);
/* Make the request of a BUSY read that goes on eager. */
void flexsc__uring_eager_request(struct flexsc_loop *loop,
				 struct io_uring_sqe *sqe);
/* It has ended. */
void flexsc__uring_eager_end(struct flexsc_loop *loop, uint32_t index,
			     int32_t res);

#endif /* FLEXSC_URING_EAGER_H */
