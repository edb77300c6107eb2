/* SPDX-License-Identifier: MIT */
/*
 * The kmod engine: the kernel module executes entries where they are, in
 * memory that it shares with us: see <linux/flexsc.h>. Waiting executes them on
 * the owner's own thread; what may sleep is left to syscall threads: see
 * kmod_threads.c.
 *
 * Owner only, but for wake.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "../pool/cancelpoint.h"
#include "../base/cores.h"
#include "../loop/engine.h"
#include "../calls/fds.h"
#include "../calls/partial.h"
#include "../pool/pool.h"
#include "../calls/refine.h"
#include "../calls/table.h"
#include "kmod.h"

#define DEVICE		"/dev/flexsc"
#define IDLE_MS		2000	/* then a thread ends */

/* Submitting. */

/*
 * May it wait with a part done, and can't go on with the rest? On the owner's
 * thread it would end with that part, if the thread is needed.
 */
static bool waits_for_all(const struct flexsc_entry *entry,
			  const struct table_row *row)
{
	const uint32_t fd = (uint32_t)entry->args[0];

	if (row->poll == POLL_WRITE)
		return !flexsc__partial(entry);
	switch (entry->nr) {
	case SYS_recvfrom:
		if (entry->args[3] & MSG_WAITALL)
			return true;
		break;
	case SYS_recvmsg:
		if (entry->args[2] & MSG_WAITALL)
			return true;
		break;
	default:
		if (flexsc__fds_kind(fd) == FD_TERMINAL)
			return true;
	}
	return flexsc__fds_wants_more(fd);
}

/* Where the kernel may execute it: FLEXSC_* of flexsc_entry.nargs. */
static unsigned int place_of(const struct flexsc_entry *entry,
			     const struct table_row *row, enum call_class class)
{
	if (class == CLASS_FAST)
		return 0;
	if (class == CLASS_DISK)
		return FLEXSC_MAY_SLEEP;
	if (row->poll == POLL_NONE || waits_for_all(entry, row))
		return FLEXSC_MAY_SLEEP | FLEXSC_ASIDE;
	if (row->poll == POLL_READ)
		return FLEXSC_MAY_SLEEP | FLEXSC_IF_READABLE;
	return FLEXSC_MAY_SLEEP | FLEXSC_IF_WRITABLE;
}

/* Have what is submitted executed. If that fails the next wait says so. */
static void kick(struct kmod *kmod)
{
	if (command(kmod, FLEXSC_IOC_KICK, 0) == FLEXSC_WAIT_MORE)
		__atomic_store_n(&kmod->no_more,
				 !flexsc__kmod_thread_create(kmod),
				 __ATOMIC_RELAXED);
}

/* The ring is full of entries that were cancelled, and posted again. */
static COLD void make_room(struct kmod *kmod)
{
	while (kmod->shared->tail -
		       __atomic_load_n(&kmod->shared->head, __ATOMIC_ACQUIRE) >
	       kmod->mask)
		kick(kmod);
}

static inline void push(struct kmod *kmod, uint32_t index)
{
	uint32_t tail = kmod->shared->tail;

	if (tail - __atomic_load_n(&kmod->shared->head, __ATOMIC_RELAXED) >
	    kmod->mask)
		make_room(kmod);
	kmod->ring[tail & kmod->mask] = index;
	/* U4: pairs with the kernel's E4. */
	__atomic_store_n(&kmod->shared->tail, tail + 1, __ATOMIC_RELEASE);
}

/* Has the kernel not taken all there is? */
static bool is_submitted(const struct kmod *kmod)
{
	return kmod->shared->tail !=
	       __atomic_load_n(&kmod->shared->head, __ATOMIC_RELAXED);
}

/*
 * Does no thread look at the ring? The kernel sets needs_kick, then looks at
 * tail once more; so here it is the other way round, with a full barrier.
 */
static bool needs_kick(const struct kmod *kmod)
{
	__atomic_fetch_add(&kmod->shared->tail, 0, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&kmod->shared->needs_kick, __ATOMIC_RELAXED);
}

/*
 * Is nothing else there, nor anybody who looks for work? Then a single call
 * that can't block is a plain one: a visit to the kernel that is more than the
 * call gains nothing.
 */
static bool is_lone(const struct kmod *kmod)
{
	return !is_submitted(kmod) &&
	       __atomic_load_n(&kmod->shared->needs_kick, __ATOMIC_RELAXED);
}

static void place(struct flexsc_loop *loop, uint32_t index, bool lone)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	const struct table_row *row = flexsc__table_row(entry->nr);
	enum call_class class = flexsc__refine(row, entry);

	if (lone && class == CLASS_FAST)
		class = CLASS_SELF;
	switch (class) {
	case CLASS_SELF:
		fds_follow(entry);
		flexsc__engine_inline(loop, index);
		break;
	case CLASS_NEVER:
	case CLASS_NONE:
		call_done(loop, index, -EOPNOTSUPP);
		break;
	default:
		if (row->fds)
			fds_follow(entry);
		call_of(loop, index)->route = BY_KERNEL;
		count(&loop->stats->by_kmod, 1);
		entry->nargs =
			(__u8)(row->nargs | place_of(entry, row, class));
		push(kmod_of(loop), index);
	}
}

/* It was cancelled, perhaps with a part done. */
static COLD void end_unstarted(struct flexsc_loop *loop, uint32_t index)
{
	call_done(loop, index,
		  flexsc__partial_result(&call_of(loop, index)->partial,
					 -ECANCELED));
}

/* What came back INTERRUPTED goes where nobody needs the thread. */
static void place_again(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);
	uint32_t index;

	while ((index = calls_take(loop, &kmod->again)) != NONE) {
		struct flexsc_entry *entry = entry_of(loop, index);

		if (entry_status(entry) != FLEXSC_SUBMITTED) {
			end_unstarted(loop, index);
			continue;
		}
		entry->nargs = (entry->nargs & FLEXSC_NARGS_MASK) |
			       FLEXSC_MAY_SLEEP | FLEXSC_ASIDE;
		push(kmod, index);
	}
}

/* The owner waits for what becomes of it now, or has more to do first. */
static void place_all(struct flexsc_loop *loop, bool waits)
{
	uint32_t n = 0, index, next;
	bool lone;

	place_again(loop);
	if (!loop->groups)
		return;
	loop->groups = 0;
	for (index = queue_take(&loop->submitted[0]); index != NONE;
	     index = next) {
		next = call_of(loop, index)->next;
		lone = waits && !n && next == NONE && is_lone(kmod_of(loop));
		n++;
		if (call_wanted(loop, index))
			place(loop, index, lone);
	}
	flexsc__stats_batch(loop, n);
}

/* Completions. */

/* A thread was needed elsewhere. True: the call isn't at its end. */
static COLD bool goes_on(struct flexsc_loop *loop, uint32_t index)
{
	struct kmod *kmod = kmod_of(loop);
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);

	entry->nargs &= FLEXSC_NARGS_MASK;
	if (call->cancel != CANCEL_NOT) {
		if (entry->ret == -EAGAIN)
			entry->ret = -ECANCELED;
		return false;
	}
	if (entry->ret == -EAGAIN)
		return flexsc__kmod_give_to_pool(loop, index);
	if (entry->ret == -EINTR
		    ? entry->nr == SYS_connect
		    : !flexsc__partial(entry) ||
			      !flexsc__partial_rest(entry, &call->partial,
						    entry->ret))
		return false;
	entry_submit(entry);
	calls_append(loop, &kmod->again, index);
	return true;
}

static void collect_one(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	struct call *call = call_of(loop, index);

	if (entry->nargs & FLEXSC_INTERRUPTED && goes_on(loop, index))
		return;
	if (call->partial)
		entry->ret = flexsc__partial_result(&call->partial, entry->ret);
	__builtin_prefetch(call->cb, 1);
	queue_append(&loop->done, call, index);
}

/* What threads had in user mode that can't tell the kernel. */
static COLD void collect_strays(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);
	uint32_t index;

	lock(&kmod->lock);
	while ((index = calls_take(loop, &kmod->strays)) != NONE) {
		entry_of(loop, index)->status = FLEXSC_DONE;
		collect_one(loop, index);
	}
	unlock(&kmod->lock);
}

/* What the kernel has completed, oldest first. */
static bool collect(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);
	uint32_t index = completions_take(&kmod->shared->completions);
	uint32_t oldest = NONE;

	while (index != NONE) {
		uint32_t next = entry_of(loop, index)->link;

		call_of(loop, index)->next = oldest;
		oldest = index;
		index = next;
		kmod->seen++;
	}
	if (oldest == NONE)
		return false;
	while (oldest != NONE) {
		uint32_t next = call_of(loop, oldest)->next;

		collect_one(loop, oldest);
		oldest = next;
	}
	if (kmod->to_pool.count)
		flexsc__pool_submit(kmod->pool, &kmod->to_pool);
	return true;
}

/* The engine. */

static void kmod_submit(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);

	place_all(loop, false);
	if (is_submitted(kmod) && needs_kick(kmod))
		kick(kmod);
}

static long enter_once(struct kmod *kmod)
{
	count_shared(&kmod->loop->stats->mode_switches, 1);
	return raw_syscall(SYS_lseek, (uint64_t)kmod->fd, kmod->seen,
			   FLEXSC_WAIT_SEEK, 0, 0, 0);
}

/* Enter the kernel, and stay there for ns at most if nothing completes. */
static int enter(struct kmod *kmod, uint64_t ns)
{
	struct flexsc_shared *shared = kmod->shared;
	long result;

	shared->timeout = ns;
	shared->wait_flags = 0;
	if (__atomic_load_n(&kmod->no_more, __ATOMIC_RELAXED)) {
		__atomic_store_n(&kmod->no_more, false, __ATOMIC_RELAXED);
		shared->wait_flags = FLEXSC_WAIT_NO_MORE;
	}
	while ((result = enter_once(kmod)) == FLEXSC_WAIT_MORE)
		if (!flexsc__kmod_thread_create(kmod))
			shared->wait_flags = FLEXSC_WAIT_NO_MORE;
	return result < 0 && result != -EINTR ? (int)result : 0;
}

/*
 * The loop is about to end, and a filter forbids the kernel's help. Without
 * threads nobody executes any more, and what isn't complete won't be.
 */
static COLD void abandon(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);

	flexsc__kmod_threads_end(kmod);
	collect(loop);
	collect_strays(loop);
	kmod->again.count = 0;
	/* What is in the ring is ended here. */
	__atomic_store_n(&kmod->shared->tail, kmod->shared->head,
			 __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < loop->entries.count; i++) {
		__u8 status = entry_status(entry_of(loop, i));
		struct call *call = call_of(loop, i);
		int64_t ret = status == FLEXSC_BUSY ? -EINTR : -ECANCELED;

		if (status != FLEXSC_FREE && status != FLEXSC_DONE &&
		    call->route == BY_KERNEL)
			call_done(loop, i, flexsc__partial_result(
						   &call->partial, ret));
	}
}

static int kmod_wait(struct flexsc_loop *loop, uint64_t ns)
{
	struct kmod *kmod = kmod_of(loop);
	int err = 0;

	place_all(loop, true);
	if (collect(loop) || !queue_empty(&loop->done))
		ns = 0;
	/* Another core is at it. */
	if (ns && !needs_kick(kmod)) {
		flexsc__engine_spin(loop, ns);
		if (collect(loop))
			ns = 0;
	}
	if (kmod->pool) {
		uint64_t watch = flexsc__pool_watch(kmod->pool);

		ns = watch < ns ? watch : ns;
	}
	if (ns && flexsc__sleep_begin(loop)) {
		err = enter(kmod, ns);
		flexsc__sleep_end(loop);
	} else if (is_submitted(kmod) && needs_kick(kmod)) {
		err = enter(kmod, 0);
	}
	if (err && loop->closing)
		abandon(loop);
	/* Who has left one has woken us. */
	if (__atomic_load_n(&kmod->strays.count, __ATOMIC_RELAXED))
		collect_strays(loop);
	collect(loop);
	return err;
}

static bool kmod_stirs(const struct flexsc_loop *loop)
{
	return __atomic_load_n(&kmod_of(loop)->shared->completions.head,
			       __ATOMIC_RELAXED) != NONE;
}

static void kmod_wake(struct flexsc_loop *loop)
{
	command(kmod_of(loop), FLEXSC_IOC_WAKE, 0);
}

static void kmod_cancel(struct flexsc_loop *loop, uint32_t index)
{
	struct kmod *kmod = kmod_of(loop);

	if (call_of(loop, index)->route == BY_POOL) {
		flexsc__pool_cancel(kmod->pool, index);
		return;
	}
	command(kmod, FLEXSC_IOC_CANCEL, index);
	flexsc__kmod_threads_cancel(kmod, index);
}

/* Opening and closing. */

static int set_policy(struct kmod *kmod)
{
	const struct flexsc_options *options = &kmod->loop->options;
	struct flexsc_policy policy = {
		.backlog = 64,
		.idle_ms = IDLE_MS,
	};
	int err;

	if (options->cores) {
		err = flexsc__cores_parse(options->cores, &kmod->cores);
		if (err)
			return err;
		kmod->pinned = true;
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &kmod->cores) &&
			    policy.cores < FLEXSC_CORES_MAX)
				policy.core[policy.cores++] = (__u16)i;
	}
	if (options->spin_us) {
		policy.spin = FLEXSC_SPIN_FIXED;
		policy.spin_us = options->spin_us < 10000 ? options->spin_us :
							    10000;
	}
	return (int)control(kmod, FLEXSC_IOC_SET_POLICY, PTR(&policy));
}

/* Pages, as many as the entries that are wanted, and a power of two. */
static uint32_t pages_for(uint32_t entries)
{
	uint32_t pages = 1;

	while (pages < FLEXSC_PAGES_MAX &&
	       2 * pages * FLEXSC_PAGE_ENTRIES <= entries)
		pages *= 2;
	return pages;
}

/* The loop's entries are in the area from now on; none is in use yet. */
static int map_area(struct kmod *kmod)
{
	struct arena *entries = &kmod->loop->entries;
	const uint32_t count = entries->count;
	struct flexsc_register args = {
		.size = sizeof(args),
		.abi = FLEXSC_ABI_VERSION,
		.flags = FLEXSC_REGISTER_FILTERED_LATER,
		.pages = pages_for(entries->max),
	};
	char *area;
	int err = (int)control(kmod, FLEXSC_IOC_REGISTER, PTR(&args));

	if (err)
		return err;
	flexsc__arena_fini(entries);
	area = mmap(NULL, args.area, PROT_READ | PROT_WRITE, MAP_SHARED,
		    kmod->fd, 0);
	if (area == MAP_FAILED)
		return -errno;
	kmod->area = args.area;
	kmod->shared = (void *)area;
	kmod->ring = (void *)(area + args.ring_offset);
	kmod->mask = args.ring_entries - 1;
	*entries = (struct arena){
		.base = area + args.entries_offset,
		.size = sizeof(struct flexsc_entry),
		.count = count,
		.max = args.pages * FLEXSC_PAGE_ENTRIES,
	};
	return 0;
}

/* For another engine: the loop's own entries, as they were. */
static int unmap_area(struct kmod *kmod, const struct arena *was)
{
	struct arena *entries = &kmod->loop->entries;
	int err = 0;

	if (kmod->shared)
		munmap(kmod->shared, kmod->area);
	if (entries->base == was->base)
		return 0;
	err = flexsc__arena_init(entries, was->size, was->max);
	while (!err && entries->count < was->count)
		err = flexsc__arena_grow(entries);
	return err;
}

/* Why it doesn't work here, in one line. */
static int unsupported(struct flexsc_loop *loop, int err)
{
	const char *why;

	switch (err) {
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		why = "there is no " DEVICE ": load the kernel module flexsc";
		break;
	case -EACCES:
		why = DEVICE " is not for this user: join its group, flexsc";
		break;
	case -EPERM:
		why = "a seccomp filter is in force, which the module would "
		      "pass by";
		break;
	case -EPROTONOSUPPORT:
	case -E2BIG:
	case -ENOTTY:
		why = "the kernel module is of another version than libflexsc";
		break;
	case -ENOMEM:
		why = "too little memory may be locked: raise RLIMIT_MEMLOCK "
		      "or set fewer entries";
		break;
	default:
		return err;
	}
	snprintf(loop->why, sizeof(loop->why), "%s", why);
	return -EOPNOTSUPP;
}

static int kmod_open(struct flexsc_loop *loop)
{
	struct kmod *kmod = calloc(1, sizeof(*kmod));
	const struct arena was = loop->entries;
	int err;

	if (!kmod)
		return -ENOMEM;
	kmod->loop = loop;
	kmod->max = flexsc__kmod_threads_max(loop);
	kmod->signo = flexsc__cancel_signal();
	kmod->fd = flexsc__fds_own(open(DEVICE, O_RDWR | O_CLOEXEC));
	err = kmod->fd < 0 ? -errno : map_area(kmod);
	if (!err)
		err = set_policy(kmod);
	if (!err)
		err = flexsc__fds_init();
	if (!err) {
		loop->stats->max_threads = kmod->max;
		loop->engine_data = kmod;
		return 0;
	}
	if (unmap_area(kmod, &was))
		err = -ENOMEM;
	if (kmod->fd >= 0)
		flexsc__fds_close(kmod->fd);
	free(kmod);
	/* Without entries there is no other engine, either. */
	return loop->entries.count ? unsupported(loop, err) : err;
}

static void kmod_close(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);

	flexsc__kmod_threads_end(kmod);
	flexsc__pool_destroy(kmod->pool);
	munmap(kmod->shared, kmod->area);
	loop->entries = (struct arena){ 0 };
	flexsc__fds_close(kmod->fd);
	free(kmod);
}

static void kmod_forked(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);

	flexsc__pool_forked(kmod->pool);
	flexsc__fds_close(kmod->fd);
	flexsc__kmod_threads_forked(kmod);
	free(kmod);
	/* The child doesn't have the mapping. */
	loop->entries = (struct arena){ 0 };
}

const struct engine flexsc__engine_kmod = {
	.name = "kmod",
	.open = kmod_open,
	.submit = kmod_submit,
	.wait = kmod_wait,
	.stirs = kmod_stirs,
	.wake = kmod_wake,
	.cancel = kmod_cancel,
	.close = kmod_close,
	.forked = kmod_forked,
};
