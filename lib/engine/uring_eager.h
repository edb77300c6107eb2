/* SPDX-License-Identifier: MIT */
/*
 * Eager reads: reads of a file that a posted open has just opened by name. Owner only.
 *
 * The file may be a FIFO, a terminal or another device, where a read by io_uring might
 * wait forever, or do what the plain call doesn't. To look up the kind of file costs a
 * system call. So the request has RWF_NOWAIT: io_uring transfers only what is in memory,
 * which nearly always is everything. Linux rejects RWF_NOWAIT for FIFOs opened by name,
 * for terminals and for most other devices, before a byte is lost. If the read isn't
 * complete, the library looks up the kind of file, and the call goes on as any other:
 *
 *	eager	-> done		all was read, or the file's end was seen
 *	eager	-> eager	read() got a part
 *	eager	-> the ring	nothing was in memory; io_uring waits as the
 *				plain call does
 *	eager	-> the pool	a part of a file on a disk isn't in memory
 *
 * Position. io_uring doesn't take the lock of the file's position, so there is one
 * eager read() of a descriptor at a time, and no other call at its position. An eager
 * read() exchanges the fact FD_OPENED for FD_READING. When it is complete it exchanges
 * them back, unless the descriptor was closed meanwhile. A call that goes another way
 * removes both for good. The ring gets its requests before syscall threads get calls. An
 * eager read() whose request the kernel doesn't take goes another way, too. Linux before
 * 5.19 takes none while the ring has no room for results.
 *
 * The end of a file. A read that stops at what isn't in memory stops at the end of a
 * page of the file. So a pread() that stopped elsewhere has seen the file's end. The
 * position of a read() isn't known, because the program may have moved it by a plain
 * call. So read() goes on eagerly until it returns 0.
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
/*
 * Submit the requests before syscall threads get calls. Each eager read() that the kernel
 * doesn't take goes another way.
 */
void flexsc__uring_eager_submit(struct flexsc_loop *loop);
/* The request of an eager read has this result. */
void flexsc__uring_eager_end(struct flexsc_loop *loop, uint32_t index,
			     int32_t res);

#endif /* FLEXSC_URING_EAGER_H */
