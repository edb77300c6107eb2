/* SPDX-License-Identifier: MIT */
/*
 * Checks memory of the program that the runtime reads instead of the kernel. If the
 * memory is invalid, the call must fail with EFAULT, as in the kernel, and not raise
 * SIGSEGV. Any thread.
 */
#ifndef FLEXSC_RUNTIME_PEEK_H
#define FLEXSC_RUNTIME_PEEK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/syscall.h"
#include "sigset.h"

#define PEEK_PAGE	4096UL

/* Is the address in a frame of the calling thread's stack, and so readable? */
static inline bool peek_on_stack(uint64_t address)
{
	const uint64_t here = (uintptr_t)__builtin_frame_address(0);

	return address - here < PEEK_PAGE;
}

/*
 * Can the kernel read the address? The call passes an invalid "how": rt_sigprocmask(2)
 * copies the signal set first, so the error shows whether copying failed.
 */
static inline bool peek_asks(uint64_t address)
{
	return raw_syscall(SYS_rt_sigprocmask, -1ULL,
			   address & ~(sizeof(sigmask_t) - 1), 0,
			   sizeof(sigmask_t), 0, 0) != -EFAULT;
}

/* Can this many bytes, at most a page, be read at the address? */
static inline bool peek_can_read(uint64_t address, size_t bytes)
{
	uint64_t last = address + bytes - 1;

	if (peek_on_stack(address))
		return true;
	return peek_asks(address) &&
	       (address / PEEK_PAGE == last / PEEK_PAGE || peek_asks(last));
}

/* Can an optional argument be read? A null pointer is valid. */
static inline bool peek_if_given(const void *given, size_t bytes)
{
	return !given || peek_can_read(PTR(given), bytes);
}

#endif /* FLEXSC_RUNTIME_PEEK_H */
