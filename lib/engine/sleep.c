/* SPDX-License-Identifier: MIT */
#include "sleep.h"

#include "lib/base/clock.h"
#include "lib/base/compiler.h"
#include "lib/base/futex.h"
#include "lib/files/local_stat.h"
#include "lib/loop/event.h"
#include "lib/loop/loop.h"
#include "lib/loop/stats.h"
#include "lib/files/closing.h"
#include "lib/pool/pool.h"

static inline int64_t rest_make(const struct flexsc_entry *entry)
{
	return raw_syscall(entry->nr, entry->args[0], entry->args[1],
			   entry->args[2], entry->args[3], entry->args[4],
			   entry->args[5]);
}

static COLD int64_t rest_make_closing(const struct flexsc_entry *entry)
{
	int64_t ret;

	flexsc__closing_begin(entry);
	ret = rest_make(entry);
	flexsc__closing_end(entry, ret);
	return ret;
}

void flexsc__engine_inline(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);

	loop_assert_owner(loop);
	entry_begin_alone(entry);
	count(&loop->stats->by_inline, 1);
	count_shared(&loop->stats->mode_switches, 1);
	if (closes(entry)) {
		call_done(loop, index, rest_make_closing(entry));
		return;
	}
	call_done(loop, index, rest_make(entry));
}

bool flexsc__engine_look(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	int64_t ret;

	loop_assert_owner(loop);
	if (!flexsc__stat_make(entry, &ret))
		return false;
	entry_begin_alone(entry);
	count(&loop->stats->by_inline, 1);
	count_shared(&loop->stats->mode_switches, 1);
	call_done(loop, index, ret);
	return true;
}

/*
 * ThreadSanitizer runs a program's signal handlers only inside the libc functions that
 * it replaces, such as clock_gettime(). The engines sleep in system calls of their own,
 * so a handler that stops the loop would never run. If __tsan_acquire() exists, the
 * program is sanitized: wake every TSAN_NS, and call one of those functions. Don't test
 * for __tsan_init() instead. "flexsc run" recognizes sanitized programs by that name,
 * and would refuse every program that contains the library.
 */
#define TSAN_NS		(SECOND / 20)
extern void __tsan_acquire(void *address) __attribute__((weak));

static COLD uint64_t sleep_limit(struct flexsc_loop *loop)
{
	uint64_t limit = flexsc__pool_check(loop);

	if (!__tsan_acquire)
		return limit;
	time_monotonic();
	return limit < TSAN_NS ? limit : TSAN_NS;
}

/*
 * Don't sleep. The thread whose work was found may not have called loop_notify() yet, so
 * set "notified" for it: otherwise the next turn wouldn't collect the work.
 */
static COLD uint64_t sleep_not(struct flexsc_loop *loop)
{
	atomic_store(&loop->sleeping, AWAKE);
	atomic_store_explicit(&loop->notified, true, memory_order_relaxed);
	return 0;
}

/* See loop_notify(). */
uint64_t flexsc__sleep_begin(struct flexsc_loop *loop, uint64_t ns)
{
	loop_assert_owner(loop);
	if (loop_pool(loop) || __tsan_acquire) {
		uint64_t limit = sleep_limit(loop);

		if (limit < ns)
			ns = limit;
	}
	atomic_store(&loop->sleeping, ASLEEP);
	return flexsc__loop_ready(loop) ? sleep_not(loop) : ns;
}

static COLD void sleep_learn(struct flexsc_loop *loop)
{
	patience_wakes(&loop->patience, time_monotonic());
}

void flexsc__sleep_end(struct flexsc_loop *loop)
{
	/*
	 * Relaxed: a thread that still reads ASLEEP wakes the owner, although it is
	 * awake already. That is harmless.
	 */
	atomic_store_explicit(&loop->sleeping, AWAKE, memory_order_relaxed);
	count(&loop->stats->wakeups, 1);
	if (unlikely(loop->patience.since))
		sleep_learn(loop);
}

uint64_t flexsc__engine_spin(struct flexsc_loop *loop, uint64_t ns)
{
	struct patience *patience = &loop->patience;
	uint64_t begin, passed = 0;

	if (!patience->most)
		return ns;
	begin = time_monotonic();
	do {
		if (flexsc__loop_stirs(loop))
			return 0;
		/*
		 * The owner may poll forever, so check the progress of the pool here as
		 * well.
		 */
		flexsc__pool_check(loop);
		cpu_relax();
		passed = time_monotonic() - begin;
		if (passed >= ns)
			return 0;
	} while (passed < patience->now);
	patience_sleeps(patience, begin);
	return ns == FLEXSC_FOREVER ? ns : ns - passed;
}

void flexsc__engine_sleep(struct flexsc_loop *loop, uint64_t ns)
{
	uint32_t bell;

	if (ns)
		ns = flexsc__engine_spin(loop, ns);
	if (!ns)
		return;
	bell = atomic_load(&loop->bell);
	ns = flexsc__sleep_begin(loop, ns);
	if (!ns)
		return;
	futex_wait(&loop->bell, bell, ns);
	count_shared(&loop->stats->mode_switches, asks_take());
	flexsc__sleep_end(loop);
}

void flexsc__engine_ring(struct flexsc_loop *loop)
{
	atomic_fetch_add(&loop->bell, 1);
	futex_wake(&loop->bell);
	count_shared(&loop->stats->mode_switches, asks_take());
}
