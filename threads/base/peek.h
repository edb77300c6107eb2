/* SPDX-License-Identifier: MIT */
/*
 * What the runtime reads in the kernel's place may not be there: the call has
 * to fail with EFAULT then, and not the program by SIGSEGV. Any thread.
 */
#ifndef FLEXSC_THREADS_PEEK_H
#define FLEXSC_THREADS_PEEK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/syscall.h"
#include "../run/uthread.h"

#define PEEK_PAGE	4096UL

/*
 * Is it in one of the frames of who called? Then it can be read. Of anything
 * else only the kernel can say.
 */
static inline bool peek_on_stack(uint64_t address)
{
	const uint64_t here = (uintptr_t)__builtin_frame_address(0);

	return address - here < PEEK_PAGE;
}

/* It copies a set of signals before it finds that it is to do nothing with it. */
static inline bool peek_asks(uint64_t address)
{
	return raw_syscall(SYS_rt_sigprocmask, -1ULL,
			   address & ~(sizeof(sigmask_t) - 1), 0,
			   sizeof(sigmask_t), 0, 0) != -EFAULT;
}

/* So many bytes; a page's at most. */
static inline bool peek_can_read(uint64_t address, size_t bytes)
{
	uint64_t last = address + bytes - 1;

	if (peek_on_stack(address))
		return true;
	return peek_asks(address) &&
	       (address / PEEK_PAGE == last / PEEK_PAGE || peek_asks(last));
}

#endif /* FLEXSC_THREADS_PEEK_H */
