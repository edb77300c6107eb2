/* SPDX-License-Identifier: MIT */
/*
 * Memory as a source of events: page faults of other threads (userfaultfd), and the
 * pages that were changed. Owner only.
 *
 * The owner must not fault itself: it would sleep in the kernel until its own handler
 * completes the fault. For the same reason the library doesn't use the userfaultfd's
 * events of fork, mremap and munmap: a call of the owner would wait for the owner.
 */
#include <errno.h>
#include <flexsc/ecb.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/files/private_fd.h"
#include "events/event/critical.h"
#include "events/event/memory.h"
#include "owner.h"
#include "userfault.h"
#include "watch.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#endif

#define WHAT	(FLEXSC_MEMORY_MISSING | FLEXSC_MEMORY_PROTECTED | \
		 FLEXSC_MEMORY_CHANGES | FLEXSC_MEMORY_CALLS)
/* The kernel write-protects pages for these. */
#define TRACKED	(FLEXSC_MEMORY_PROTECTED | FLEXSC_MEMORY_CHANGES)
#define REGIONS	64

/*
 * What a fill without pages copies. UFFDIO_ZEROPAGE isn't used, because it can't
 * protect the page in the same step, so a write in between would be missed.
 */
static const char zeroes[65536];

static bool memory_what(uint32_t what)
{
	return !(what & ~WHAT) &&
	       what & (FLEXSC_MEMORY_MISSING | TRACKED) &&
	       (what & TRACKED) != TRACKED;
}

static int memory_ioctl(const struct memory *memory, unsigned long request, void *arg)
{
	return ioctl(memory->fd, request, arg) ? -errno : 0;
}

static int memory_set_writable(const struct memory *memory, uint64_t begin,
			       uint64_t size, bool writable)
{
	struct uffdio_writeprotect args = {
		.range = { .start = begin, .len = size },
		.mode = writable ? 0 : UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int err;

	/* -EAGAIN: another thread is changing the process's mappings. */
	do
		err = memory_ioctl(memory, UFFDIO_WRITEPROTECT, &args);
	while (err == -EAGAIN);
	return err;
}

static int memory_register(const struct memory *memory, bool unpopulated)
{
	void *begin = (void *)(uintptr_t)memory->begin;
	struct uffdio_register args = {
		.range = { .start = memory->begin, .len = memory->size },
	};

	if (memory->what & FLEXSC_MEMORY_MISSING)
		args.mode |= UFFDIO_REGISTER_MODE_MISSING;
	if (memory->what & TRACKED)
		args.mode |= UFFDIO_REGISTER_MODE_WP;
	/* Before Linux 6.4, only existing pages can be protected. */
	if (!unpopulated && !(memory->what & FLEXSC_MEMORY_MISSING) &&
	    madvise(begin, memory->size, MADV_POPULATE_READ))
		return -errno;
	return memory_ioctl(memory, UFFDIO_REGISTER, &args);
}

/*
 * In a child, which has no ECB, missing pages would be zeroes instead of what the owner
 * fills in. So the child doesn't inherit the memory. The kernel refuses to treat a part
 * of a huge page differently (EINVAL), which shows the size of the pages.
 */
static void memory_keep_from_child(struct memory *memory)
{
	void *begin = (void *)(uintptr_t)memory->begin;

	while (memory->page < memory->size &&
	       madvise(begin, memory->page, MADV_DONTFORK) && errno == EINVAL)
		memory->page *= 2;
	madvise(begin, memory->size, MADV_DONTFORK);
}

/* After registering. */
static int memory_begin(struct memory *memory)
{
	if (memory->what & FLEXSC_MEMORY_MISSING)
		memory_keep_from_child(memory);
	if (!(memory->what & TRACKED))
		return 0;
	return memory_set_writable(memory, memory->begin, memory->size, false);
}

static int memory_open_pagemap(struct flexsc_ecb *ecb)
{
	int fd;

	if (ecb->pagemap)
		return 0;
	fd = flexsc__pagemap_open(NULL, 0);
	if (fd >= 0)
		ecb->pagemap = flexsc__private_fd(fd);
	return fd < 0 ? fd : 0;
}

static int memory_watch(struct flexsc_ecb *ecb, struct memory *memory,
			bool unpopulated, int group, void *data)
{
	int index = memory_register(memory, unpopulated);

	if (!index) {
		index = memory_begin(memory);
		if (!index)
			index = flexsc__watch(ecb, memory->fd, FLEXSC_EVT_MEMORY,
					      POLLIN, group,
					      SOURCE_OWN | SOURCE_MEMORY, data);
		if (index >= 0) {
			ecb->sources[index].own = memory;
			return index;
		}
		flexsc__memory_end(memory);
	}
	/*
	 * Memory that isn't registered may be another source's, which must not end:
	 * the kernel unregisters it by any userfaultfd.
	 */
	close(memory->fd);
	flexsc__memory_drop(ecb, memory);
	return index;
}

static int memory_create(struct flexsc_ecb *ecb, void *begin, size_t size, uint32_t what,
			 int group, void *data)
{
	struct memory *memory;
	bool unpopulated;
	int fd, err = 0;

	if (what & FLEXSC_MEMORY_CHANGES)
		err = memory_open_pagemap(ecb);
	if (err)
		return err;
	fd = flexsc__userfault_open(what, &unpopulated, NULL, 0);
	if (fd < 0)
		return fd;
	memory = flexsc__memory_add(ecb, fd);
	if (!memory) {
		close(fd);
		return -ENOMEM;
	}
	memory->begin = (uintptr_t)begin;
	memory->size = size;
	memory->page = (uint64_t)sysconf(_SC_PAGESIZE);
	memory->what = what;
	return memory_watch(ecb, memory, unpopulated, group, data);
}

int flexsc_ecb_memory(struct flexsc_ecb *ecb, void *begin, size_t size, uint32_t what,
		      int group, void *data)
{
	int ret = flexsc__ecb_check(ecb);

	if (ret)
		return ret;
	if (!memory_what(what))
		return -EINVAL;
	/* A section, because the first event needs the source's memory. */
	critical_enter(ecb);
	ret = memory_create(ecb, begin, size, what, group, data);
	flexsc__critical_leave(ecb);
	return ret;
}

/* Returns the event's memory, or NULL and *err. */
static struct memory *memory_of(const struct flexsc_ecb *ecb, unsigned int event,
				int *err)
{
	*err = flexsc__ecb_check(ecb);
	if (*err)
		return NULL;
	*err = -ENOENT;
	if (event >= ecb->events || !(ecb->sources[event].flags & SOURCE_USED))
		return NULL;
	*err = -EINVAL;
	if (!(ecb->sources[event].flags & SOURCE_MEMORY))
		return NULL;
	*err = 0;
	return ecb->sources[event].own;
}

/* As memory_of(), if the range is inside the memory. */
static const struct memory *memory_with(const struct flexsc_ecb *ecb,
					unsigned int event, uint64_t begin,
					uint64_t size, int *err)
{
	const struct memory *memory = memory_of(ecb, event, err);

	if (!memory || (begin >= memory->begin && size <= memory->size &&
			begin - memory->begin <= memory->size - size))
		return memory;
	*err = -EINVAL;
	return NULL;
}

/*
 * Fill some pages. Returns how many bytes are done; 0: another thread is changing the
 * process's mappings, so try again; or -errno.
 */
static int64_t memory_copy(const struct memory *memory, uint64_t begin, uint64_t size,
			   const void *pages)
{
	struct uffdio_copy copy = {
		.dst = begin,
		.src = (uintptr_t)pages,
		.len = size,
		.mode = (memory->what & TRACKED) ? UFFDIO_COPY_MODE_WP : 0,
	};
	int err = memory_ioctl(memory, UFFDIO_COPY, &copy);

	if (err && err != -EAGAIN)
		return err;
	return copy.copy > 0 ? copy.copy : 0;
}

/*
 * Fill pages from "from", or if "repeat" isn't 0, with copies of that many bytes. A page
 * that can't be filled must not leave its threads asleep: they try again, and find the
 * page that exists (-EEXIST), or no memory any more (-ENOENT). The kernel also returns
 * -ENOENT for a range that consists of several mappings, so then fill single pages.
 */
static int memory_fill(const struct memory *memory, uint64_t at, uint64_t size,
		       const char *from, uint64_t repeat)
{
	const uint64_t end = at + size;
	uint64_t most = repeat ? repeat : size;

	while (at < end) {
		const uint64_t left = end - at, step = left < most ? left : most;
		int64_t done = memory_copy(memory, at, step, from);

		if (done == -ENOENT && step > memory->page) {
			most = memory->page;
			continue;
		}
		if (done == -EEXIST) {
			flexsc__memory_wake(memory, at, memory->page);
			done = (int64_t)memory->page;
		}
		if (done < 0) {
			flexsc__memory_wake(memory, at, left);
			return (int)done;
		}
		at += (uint64_t)done;
		from += repeat ? 0 : done;
	}
	return 0;
}

static int memory_fill_zeroes(const struct memory *memory, uint64_t at, uint64_t size)
{
	void *huge;
	int err;

	if (memory->page <= sizeof(zeroes))
		return memory_fill(memory, at, size, zeroes, sizeof(zeroes));
	huge = mmap(NULL, memory->page, PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (huge == MAP_FAILED) {
		flexsc__memory_wake(memory, at, size);
		return -ENOMEM;
	}
	err = memory_fill(memory, at, size, huge, memory->page);
	munmap(huge, memory->page);
	return err;
}

int flexsc_ecb_memory_fill(struct flexsc_ecb *ecb, unsigned int event, void *begin,
			   size_t size, const void *pages)
{
	const uint64_t at = (uintptr_t)begin;
	int err;
	const struct memory *memory = memory_with(ecb, event, at, size, &err);

	if (!memory)
		return err;
	return pages ? memory_fill(memory, at, size, pages, 0) :
		       memory_fill_zeroes(memory, at, size);
}

int flexsc_ecb_memory_allow(struct flexsc_ecb *ecb, unsigned int event, void *begin,
			    size_t size, int writes)
{
	int err;
	const struct memory *memory =
		memory_with(ecb, event, (uintptr_t)begin, size, &err);

	if (!memory)
		return err;
	if (!(memory->what & FLEXSC_MEMORY_PROTECTED))
		return -EINVAL;
	err = memory_set_writable(memory, (uintptr_t)begin, size, writes);
	if (err && writes)
		flexsc__memory_wake(memory, (uintptr_t)begin, size);
	return err;
}

int flexsc_ecb_memory_changed(struct flexsc_ecb *ecb, unsigned int event,
			      struct flexsc_ecb_range *ranges, unsigned int n)
{
	struct pagemap_region regions[REGIONS];
	unsigned int got = 0;
	struct pagemap pagemap;
	int err;
	const struct memory *memory = memory_of(ecb, event, &err);

	if (!memory)
		return err;
	if (!(memory->what & FLEXSC_MEMORY_CHANGES) || !n || !ranges)
		return -EINVAL;
	pagemap = (struct pagemap){
		.fd = ecb->pagemap,
		.begin = memory->begin,
		.end = memory->begin + memory->size,
		.present = memory->what & FLEXSC_MEMORY_MISSING,
	};
	while (got < n) {
		unsigned int room = n - got < REGIONS ? n - got : REGIONS;
		int ret = flexsc__pagemap_written(&pagemap, regions, room);

		/* Return the ranges that earlier scans have protected again. */
		if (ret < 0 && got)
			break;
		/* The memory, or a part of it, was mapped anew: it isn't tracked. */
		if (ret < 0)
			return ret == -EPERM ? -ENOENT : ret;
		for (int i = 0; i < ret; i++)
			ranges[got++] = (struct flexsc_ecb_range){
				regions[i].begin, regions[i].end,
			};
		if ((unsigned int)ret < room)
			break;
		pagemap.begin = ranges[got - 1].end;
	}
	return (int)got;
}

int flexsc_ecb_memory_probe(uint32_t what, char *why, size_t size)
{
	bool unpopulated;
	int fd, err = 0;

	if (!size)
		why = NULL;
	if (why)
		*why = '\0';
	if (!memory_what(what))
		return -EINVAL;
	fd = flexsc__userfault_open(what, &unpopulated, why, size);
	if (fd < 0)
		return fd;
	close(fd);
	if (what & FLEXSC_MEMORY_CHANGES) {
		fd = flexsc__pagemap_open(why, size);
		err = fd < 0 ? fd : close(fd);
	}
	return err;
}
