/* SPDX-License-Identifier: MIT */
/*
 * The published counters. They are in a memfd, which disappears with the process in
 * every case, even if it is killed. Other processes of the same user find the memfd in
 * /proc/PID/fd. If no descriptor is free, or RLIMIT_FSIZE is too low, the counters are in
 * private memory, which only flexsc_loop_stats() reads.
 */
#include "stats.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/compiler.h"
#include "lib/base/ask.h"
#include "lib/files/fds.h"
#include "lib/files/private_fd.h"
#include "lib/base/syscall.h"
#include "loop.h"

_Static_assert(sizeof(struct flexsc_stats_page) <= FLEXSC_STATS_CORES,
	       "the counters overlap");

/* The size of the counters in the memfd. */
static size_t stats_size(const struct flexsc_loop *loop)
{
	return loop->options.kernel_cores ?
		       FLEXSC_STATS_CORES + sizeof(struct flexsc_stats_cores) :
		       sizeof(struct flexsc_stats_page);
}

/*
 * Returns the size in whole pages: TSan forgets the accesses to a page only if all of
 * the page is unmapped, and may otherwise report races with the page's next user.
 */
static size_t stats_mapped(const struct flexsc_loop *loop)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (stats_size(loop) + page - 1) / page * page;
}

int flexsc__stats_init(struct flexsc_loop *loop)
{
	struct flexsc_stats_page *page = MAP_FAILED;

	loop->stats_fd = flexsc__private_memfd(FLEXSC_STATS_NAME,
					       stats_size(loop));
	if (loop->stats_fd >= 0)
		page = mmap(NULL, stats_mapped(loop), PROT_READ | PROT_WRITE,
			    MAP_SHARED, loop->stats_fd, 0);
	if (page == MAP_FAILED)
		page = mmap(NULL, stats_mapped(loop), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -ENOMEM;
	/* MADV_DONTFORK: a forked child must not change its parent's counters. */
	madvise(page, stats_mapped(loop), MADV_DONTFORK);
	loop->page = page;
	loop->stats = &page->stats;
	if (loop->options.kernel_cores)
		loop->stats_cores = (void *)((char *)page + FLEXSC_STATS_CORES);
	page->size = sizeof(*page);
	page->tid = (int32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	return 0;
}

void flexsc__stats_fini(struct flexsc_loop *loop)
{
	if (loop->page)
		munmap(loop->page, stats_mapped(loop));
	if (loop->stats_fd >= 0)
		flexsc__private_fd_close(loop->stats_fd);
}

/* Publish how much memory the loop has committed. */
static void stats_refresh(const struct flexsc_loop *loop,
			  struct flexsc_stats *stats)
{
	stats_set(&stats->entries, loop->entries.count);
	stats_set(&stats->max_entries, loop->entries.max);
	stats_set(&stats->bytes,
		  arena_bytes(&loop->entries) + arena_bytes(&loop->calls) +
		      arena_bytes(&loop->staged) +
		      arena_bytes(&loop->wheel.timers));
}

/* Publish all counters: see stats_publish(). Owner only. */
void flexsc__stats_publish(const struct flexsc_loop *loop)
{
	if (!loop->page->magic) {
		strncpy(loop->page->engine, loop->engine->name,
			sizeof(loop->page->engine) - 1);
		stats_set(&loop->page->magic, FLEXSC_STATS_MAGIC);
	}
	stats_refresh(loop, loop->stats);
	stats_count(loop);
}

COLD void flexsc__stats_executed(struct flexsc_loop *loop, uint64_t calls)
{
	const int core = sched_getcpu();

	if (core >= 0 && core < (int)FLEXSC_STATS_CORES_MAX)
		count_shared(&loop->stats_cores->by_thread[core], calls);
}

void flexsc__stats_batch(struct flexsc_loop *loop, uint32_t calls)
{
	if (flexsc__asks)
		count_shared(&loop->stats->mode_switches, asks_take());
	count(&loop->stats->batches, 1);
	count(&loop->stats->batched, calls);
}

int flexsc_loop_stats(const struct flexsc_loop *loop,
		      struct flexsc_stats *stats, size_t size)
{
	const uint64_t *from;
	uint64_t *to = (uint64_t *)stats;

	if (!loop)
		return -ENXIO;
	if (!stats)
		return -EINVAL;
	if (loop->stale)
		return -ESTALE;
	if (pthread_equal(pthread_self(), loop->owner))
		flexsc__stats_publish(loop);
	from = (const uint64_t *)loop->stats;
	if (size > sizeof(*stats)) {
		memset((char *)stats + sizeof(*stats), 0,
		       size - sizeof(*stats));
		size = sizeof(*stats);
	}
	for (size_t i = 0; i < size / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	return 0;
}

COLD void flexsc__stats_unreported(struct flexsc_loop *loop, int64_t ret)
{
	if (ret < 0)
		count(&loop->stats->failed_unseen, 1);
}
