/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/checks.h"
#include "ecb.h"
#include "source.h"

#define FAULTS	(sizeof(((struct memory *)0)->faults) / sizeof(struct uffd_msg))

struct memory *flexsc__memory_add(struct flexsc_ecb *ecb, int fd)
{
	struct memory *memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	memory->fd = fd;
	memory->next = ecb->memories;
	if (memory->next)
		memory->next->prev = memory;
	ecb->memories = memory;
	return memory;
}

void flexsc__memory_drop(struct flexsc_ecb *ecb, struct memory *memory)
{
	if (memory->prev)
		memory->prev->next = memory->next;
	else
		ecb->memories = memory->next;
	if (memory->next)
		memory->next->prev = memory->prev;
	munmap(memory, sizeof(*memory));
}

static bool memory_read(struct memory *memory)
{
	ssize_t size = read(memory->fd, memory->faults, sizeof(memory->faults));

	memory->taken = 0;
	memory->read = size > 0 ? (uint32_t)size / sizeof(struct uffd_msg) : 0;
	memory->news = memory->read == FAULTS;
	return memory->read;
}

static void memory_describe(struct flexsc_ecb_event *event,
			    const struct uffd_msg *fault)
{
	const uint64_t flags = fault->arg.pagefault.flags;

	event->ready = POLLIN;
	event->payload[0] = fault->arg.pagefault.address;
	event->payload[1] = (flags & UFFD_PAGEFAULT_FLAG_WP) ? FLEXSC_MEMORY_PROTECTED :
							     FLEXSC_MEMORY_MISSING;
	if (flags & UFFD_PAGEFAULT_FLAG_WRITE)
		event->payload[1] |= FLEXSC_MEMORY_WRITE;
	event->payload[2] = fault->arg.pagefault.feat.ptid;
}

/*
 * Hand out one fault, and put the slot on its list again if more were read, or may be
 * waiting. A read that wasn't full has emptied the userfaultfd, and a later fault is a
 * new event. If read faults are still left then, both become one event, whose bits show
 * the new one.
 */
bool flexsc__memory_take(struct flexsc_ecb *ecb, struct flexsc_ecb_event *event)
{
	struct memory *memory = ecb->sources[event->event].own;

	memory->news |= event->ready;
	if (memory->taken == memory->read && !memory_read(memory))
		return false;
	memory_describe(event, &memory->faults[memory->taken]);
	memory->taken++;
	if (memory->taken < memory->read || memory->news)
		flexsc__source_again(ecb, event->event);
	return true;
}

void flexsc__memory_wake(const struct memory *memory, uint64_t begin, uint64_t size)
{
	struct uffdio_range range = { .start = begin, .len = size };

	ioctl(memory->fd, UFFDIO_WAKE, &range);
}

void flexsc__memory_end(const struct memory *memory)
{
	struct uffdio_range range = {
		.start = memory->begin,
		.len = memory->size,
	};

	/* It fails if the memory was unmapped. Its threads wait nevertheless. */
	ioctl(memory->fd, UFFDIO_UNREGISTER, &range);
	if (memory->what & FLEXSC_MEMORY_MISSING)
		madvise((void *)(uintptr_t)memory->begin, memory->size,
			MADV_DOFORK);
	/*
	 * Wake the threads only after unregistering, which waits for faults that are
	 * about to sleep.
	 */
	flexsc__memory_wake(memory, memory->begin, memory->size);
}
