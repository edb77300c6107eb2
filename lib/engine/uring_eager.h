/* SPDX-License-Identifier: MIT */
/*
 * Eager reads: reads of a file that a posted open has just opened by name. Owner only.
 *
 * The file may be a FIFO, a terminal or another device, where a read by io_uring might
 * wait forever or behave unlike the plain call. Querying the kind of file costs a
 * system call. So the request has RWF_NOWAIT: io_uring transfers only data in the page
 * cache, which nearly always is all of it. Linux rejects RWF_NOWAIT for FIFOs opened by
 * name, for terminals and for most other devices, before a byte is lost. If the read
 * isn't complete, the library queries the kind of file, and the call continues like any
 * other:
 *
 *	eager	-> done		all was read, or the end of the file was seen
 *	eager	-> eager	read() got a part
 *	eager	-> the ring	no data was in memory; io_uring waits as the
 *				plain call does
 *	eager	-> the pool	a part of a file on a disk isn't in memory
 *
 * Position. io_uring reads at the file's position without locking it. So while an eager
 * read() of a descriptor is pending, no other call that uses the position may begin. An
 * eager read() replaces the fact FD_OPENED with FD_READING. On completion it restores
 * FD_OPENED, unless the descriptor was closed in between. A call that continues in the
 * ring or the pool removes both facts permanently. Eager requests are submitted, and a
 * polling kernel thread has consumed them, before the pool gets calls. If the kernel
 * doesn't consume the request of an eager read(), the call continues in the ring or the
 * pool, too: Linux before 5.13 consumes no requests while it holds back results because
 * the completion queue is full.
 *
 * The end of a file. A read that stops because data isn't in memory stops at the end of
 * a page of the file. So a pread() that stopped elsewhere has reached the end of the
 * file. The position of a read() is unknown, because the program may have moved it with
 * a plain call. So read() continues eagerly until it returns 0.
 */
#ifndef FLEXSC_URING_EAGER_H
#define FLEXSC_URING_EAGER_H

#include <stdbool.h>
#include <stdint.h>

struct flexsc_loop;
struct io_uring_sqe;

/* Fill a request for a SUBMITTED read; false: the read can't be eager. */
bool flexsc__uring_eager(struct flexsc_loop *loop, uint32_t index);
/* Issue the request of a BUSY read that continues eagerly. */
void flexsc__uring_eager_request(struct flexsc_loop *loop,
				 struct io_uring_sqe *sqe);
/*
 * Submit the requests, before the pool gets calls. An eager read() that the kernel
 * doesn't consume continues in the ring or the pool.
 */
void flexsc__uring_eager_submit(struct flexsc_loop *loop);
/* Called when the request of an eager read has completed with this result. */
void flexsc__uring_eager_end(struct flexsc_loop *loop, uint32_t index,
			     int32_t res);

#endif /* FLEXSC_URING_EAGER_H */
