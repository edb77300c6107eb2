/* SPDX-License-Identifier: MIT */
/*
 * The kmod engine: the kernel module executes entries in place, in memory that it
 * shares with the process (<linux/flexsc.h>). The owner executes entries on its own
 * thread while it waits. Calls that may sleep are left to syscall threads
 * (kmod_threads.c). This file opens the module, waits in it, and closes it; kmod_place.c
 * submits entries, and kmod_reap.c collects them.
 *
 * Owner only, except for wake, which any thread calls, and for what the heir of a stuck
 * owner calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "lib/pool/cancelpoint.h"
#include "lib/base/cores.h"
#include "lib/calls/partial.h"
#include "engine.h"
#include "lib/files/private_fd.h"
#include "lib/pool/pool.h"
#include "kmod.h"
#include "uring_kills.h"
#include "why.h"
#include "lib/base/compiler.h"
#include "lib/base/syscall.h"
#include "lib/base/trial.h"
#include "lib/loop/stats.h"

#define BACKLOG		64	/* default of the option */
/* Interval of checks for results that the module can't report, in ns. */
#define LATE_NS		10000000ULL
#define QUIT_NS		1000000	/* how long to wait for threads to begin entries */
#define IDLE_MS		2000	/* a syscall thread without work for this long ends */

/*
 * Is no thread polling the submission ring, so that the owner has to kick? The kernel
 * sets needs_kick and then reads the tail once more. The owner stores the tail and,
 * after a full barrier, reads needs_kick. So at least one side sees the other's store.
 */
static bool needs_kick(const struct kmod *kmod)
{
	__atomic_fetch_add(&kmod->shared->tail, 0, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&kmod->shared->needs_kick, __ATOMIC_RELAXED);
}

static void kmod_submit(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);

	flexsc__kmod_place_all(loop, false);
	if (is_submitted(kmod) && needs_kick(kmod))
		flexsc__kmod_kick(kmod);
}

/*
 * Enter the module by ioctl(), because the cheaper lseek() has failed. The module refuses
 * it if the owner's credentials have changed since its last ioctl(): Linux security
 * modules (LSM) check an ioctl(), but not an lseek(). A filter may forbid it.
 */
static COLD long kmod_enter_asked(struct kmod *kmod)
{
	kmod->shared->seen = kmod->seen;
	return control(kmod, FLEXSC_IOC_WAIT, 0);
}

static long kmod_enter_once(struct kmod *kmod)
{
	long result;

	count_shared(&kmod->loop->stats->mode_switches, 1);
	result = raw_syscall(SYS_lseek, (uint64_t)kmod->fd, kmod->seen,
			     FLEXSC_WAIT_SEEK, 0, 0, 0);
	if (result < 0 && result != -EINTR)
		result = kmod_enter_asked(kmod);
	return result;
}

/* Enter the kernel, and sleep there for at most ns if no entry completes. */
static int kmod_enter(struct kmod *kmod, uint64_t ns)
{
	struct flexsc_shared *shared = kmod->shared;
	long result;

	shared->timeout = ns;
	shared->wait_flags = 0;
	if (__atomic_load_n(&kmod->no_more, __ATOMIC_RELAXED)) {
		__atomic_store_n(&kmod->no_more, false, __ATOMIC_RELAXED);
		shared->wait_flags = FLEXSC_WAIT_NO_MORE;
	}
	while ((result = kmod_enter_once(kmod)) == FLEXSC_WAIT_MORE) {
		if (!flexsc__kmod_thread_create(kmod))
			shared->wait_flags = FLEXSC_WAIT_NO_MORE;
		else if (!ns)
			break;
	}
	return result < 0 && result != -EINTR ? (int)result : 0;
}

/*
 * Has the module ended a syscall thread (FLEXSC_SERVE_END) since the last check? If so,
 * the owner has to enter the module, which then looks for entries that this thread
 * would have executed.
 */
static bool kmod_take_deserted(struct kmod *kmod)
{
	return __atomic_load_n(&kmod->deserted, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&kmod->deserted, false, __ATOMIC_ACQUIRE);
}

/* Does the module have incomplete entries? An outer loop isn't notified of their end. */
static bool kmod_is_silent(const struct flexsc_loop *loop)
{
	const struct kmod *kmod = kmod_of(loop);

	return (uint32_t)kmod->seen != kmod->shared->tail;
}

/*
 * Before sleeping, poll for completions, for poll_us. If no thread polls the submission
 * ring, first enter the module, so that it takes the submitted entries. If a thread
 * polls the ring, check for completions once even if poll_us is 0. Then *ns is how long
 * to sleep.
 */
static int kmod_spin(struct flexsc_loop *loop, uint64_t *ns)
{
	struct kmod *kmod = kmod_of(loop);
	int err = 0;

	if (needs_kick(kmod)) {
		if (!loop->options.poll_us)
			return 0;
		if (is_submitted(kmod))
			err = kmod_enter(kmod, 0);
		if (err || flexsc__kmod_collect(loop)) {
			*ns = 0;
			return err;
		}
	}
	*ns = flexsc__engine_spin(loop, *ns);
	if (flexsc__kmod_collect(loop))
		*ns = 0;
	return 0;
}

/*
 * Wait without the module, after flexsc__kmod_quit(). No entry is left for a thread that
 * deserted.
 */
static COLD int kmod_wait_outside(struct flexsc_loop *loop, uint64_t ns)
{
	flexsc__kmod_place_all(loop, true);
	kmod_take_deserted(kmod_of(loop));
	if (flexsc__kmod_collect(loop) || !queue_empty(&loop->done))
		ns = 0;
	if (kmod_is_silent(loop) && ns > LATE_NS)
		ns = LATE_NS;
	flexsc__engine_sleep(loop, ns);
	flexsc__kmod_collect_strays(loop);
	flexsc__kmod_collect(loop);
	return 0;
}

static int kmod_wait(struct flexsc_loop *loop, uint64_t ns)
{
	struct kmod *kmod = kmod_of(loop);
	int err = 0;

	if (unlikely(atomic_load_explicit(&kmod->quit, memory_order_relaxed)))
		return kmod_wait_outside(loop, ns);
	flexsc__kmod_place_all(loop, true);
	if (flexsc__kmod_collect(loop) || !queue_empty(&loop->done))
		ns = 0;
	if (ns)
		err = kmod_spin(loop, &ns);
	if (ns)
		ns = flexsc__sleep_begin(loop, ns);
	if (ns) {
		err = kmod_enter(kmod, ns);
		flexsc__sleep_end(loop);
	} else if ((is_submitted(kmod) && needs_kick(kmod)) ||
		   kmod_take_deserted(kmod)) {
		err = kmod_enter(kmod, 0);
	}
	if (err && loop->closing)
		flexsc__kmod_abandon(loop);
	/*
	 * If a filter keeps a syscall thread from entering the kernel, the thread puts
	 * its entry into "strays" and wakes the owner, which collects the entry here.
	 */
	if (__atomic_load_n(&kmod->strays.count, __ATOMIC_RELAXED))
		flexsc__kmod_collect_strays(loop);
	flexsc__kmod_collect(loop);
	return err;
}

static bool kmod_stirs(const struct flexsc_loop *loop)
{
	const struct kmod *kmod = kmod_of(loop);

	return __atomic_load_n(&kmod->shared->completions.head,
			       __ATOMIC_RELAXED) != NONE ||
	       __atomic_load_n(&kmod->strays.count, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&kmod->deserted, __ATOMIC_RELAXED);
}

static void kmod_wake(struct flexsc_loop *loop)
{
	kmod_end_sleep(kmod_of(loop));
}

/*
 * The module can wake only threads that wait in it, so it can't write the eventfd of an
 * outer loop. Let the pool make all calls from now on.
 */
static int kmod_attach(struct flexsc_loop *loop, int fd)
{
	struct bouncing *bouncing = &kmod_of(loop)->bouncing;

	(void)fd;
	bouncing->spares = true;
	bouncing->always = true;
	snprintf(loop->why, sizeof(loop->why),
		 "threads make the calls, because an outer loop waits for them");
	return 0;
}

/* What the heir of a stuck owner needs: run/handover.h. */

/* A syscall thread may execute a submitted entry at any time: report REACH_EXECUTED. */
static enum reach kmod_reach(struct flexsc_loop *loop, uint32_t index)
{
	(void)loop;
	(void)index;
	return REACH_EXECUTED;
}

/* Any thread of the process may call FLEXSC_IOC_CANCEL. */
static bool kmod_cancels_anywhere(const struct flexsc_loop *loop)
{
	(void)loop;
	return true;
}

/*
 * Do what the owner's waits would do, except for loop->submitted: submit entries that
 * came back INTERRUPTED. If no thread polls the submission ring, enter the module, which
 * executes entries that have no thread, or has a thread created for them.
 */
static void kmod_tend(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);

	if (kmod->again.count)
		flexsc__kmod_place_again(loop);
	if ((kmod_is_silent(loop) && needs_kick(kmod)) ||
	    kmod_take_deserted(kmod))
		kmod_enter(kmod, 0);
	if (__atomic_load_n(&kmod->strays.count, __ATOMIC_RELAXED))
		flexsc__kmod_collect_strays(loop);
	flexsc__kmod_collect(loop);
}

static void kmod_cancel(struct flexsc_loop *loop, uint32_t index)
{
	struct kmod *kmod = kmod_of(loop);

	if (call_of(loop, index)->route == BY_POOL) {
		flexsc__pool_cancel(loop_pool(loop), index);
		return;
	}
	/*
	 * After flexsc__kmod_quit() a filter may forbid the command. Before, the runtime
	 * has cancelled all calls: flexsc__anchor_others().
	 */
	if (!atomic_load(&kmod->quit))
		command(kmod, FLEXSC_IOC_CANCEL, index);
	flexsc__kmod_threads_cancel(kmod, index);
}

/*
 * May the entry, which is for the module, still have to be begun? A cancelled entry has
 * been begun if its call has blocked, perhaps for ever, or if a thread makes the call in
 * user mode. Any other cancelled entry completes soon.
 */
static bool may_be_unbegun(struct kmod *kmod, uint32_t index)
{
	const struct flexsc_entry *entry = entry_of(kmod->loop, index);

	switch (entry_status(entry)) {
	case FLEXSC_SUBMITTED:
		return true;
	case FLEXSC_CANCEL:
		return __atomic_load_n(&entry->ret, __ATOMIC_RELAXED) !=
			       FLEXSC_BLOCKED &&
		       !flexsc__kmod_threads_bounce(kmod, index);
	default:
		return false;
	}
}

static bool any_may_be_unbegun(struct flexsc_loop *loop)
{
	for (uint32_t i = 0; i < loop->entries.count; i++)
		if (call_of(loop, i)->where == POOL_FOREIGN &&
		    may_be_unbegun(kmod_of(loop), i))
			return true;
	return false;
}

/*
 * The pool makes all calls from now on, also those that the module hasn't begun: these
 * come back because no thread can be created. Calls that syscall threads have begun
 * complete in the area, where the owner looks every LATE_NS. The threads end when their
 * calls do.
 */
COLD void flexsc__kmod_quit(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);

	if (loop->engine != &flexsc__engine_kmod || atomic_load(&kmod->quit))
		return;
	kmod->bouncing.spares = true;
	kmod->bouncing.always = true;
	lock(&kmod->lock);
	kmod->ending = true;
	unlock(&kmod->lock);
	__atomic_store_n(&kmod->forsaken, true, __ATOMIC_RELAXED);
	/*
	 * End the threads first: an idle one could no longer take an entry that a wait
	 * leaves to it, and the entry would stay in the module.
	 */
	command(kmod, FLEXSC_IOC_END, 0);
	kmod_tend(loop);
	while (any_may_be_unbegun(loop)) {
		kmod_enter(kmod, QUIT_NS);
		kmod_tend(loop);
	}
	atomic_store(&kmod->quit, true);
}

/* Opening and closing. */

static int set_policy(struct kmod *kmod)
{
	const struct flexsc_options *options = &kmod->loop->options;
	struct flexsc_policy policy = {
		.backlog = options->backlog ? options->backlog : BACKLOG,
		.idle_ms = IDLE_MS,
	};
	const struct cores *cores = &kmod->loop->listed;

	if (options->kernel_cores) {
		kmod->pinned = true;
		kmod->cores = kmod->loop->kernel_cores;
		for (unsigned int i = 0; i < cores->count && i < FLEXSC_CORES_MAX; i++) {
			kmod->listed[i].core = cores->core[i];
			policy.core[i] = cores->core[i];
			policy.cores++;
		}
		kmod->listed_count = policy.cores;
	}
	if (options->poll_us) {
		policy.spin = options->flags & FLEXSC_POLL_ADAPTIVE ?
				      FLEXSC_SPIN_ADAPTIVE : FLEXSC_SPIN_FIXED;
		policy.spin_us = options->poll_us < 10000 ? options->poll_us :
							    10000;
	}
	return (int)control(kmod, FLEXSC_IOC_SET_POLICY, PTR(&policy));
}

/* Runs in a child. The module refuses the command, because the file has no loop yet. */
static int try_ioctl(const void *fd)
{
	raw_syscall(SYS_ioctl, (uint64_t)*(const int *)fd, FLEXSC_IOC_WAKE, 0, 0, 0, 0);
	return 0;
}

/* Would a seccomp filter end the process at an ioctl()? */
static bool is_killed(int fd)
{
	return flexsc__is_filtered() && flexsc__trial(try_ioctl, &fd) == TRIAL_KILLED;
}

/* If it fails, *step is the step that failed. */
static int take_steps(struct kmod *kmod, enum kmod_step *step)
{
	int err;

	*step = KMOD_OPEN;
	kmod->fd = flexsc__private_fd(open(KMOD_DEVICE, O_RDWR | O_CLOEXEC));
	if (kmod->fd < 0)
		return -errno;
	*step = KMOD_REGISTER;
	err = is_killed(kmod->fd) ? -EPERM : flexsc__kmod_area_map(kmod);
	if (err)
		return err;
	*step = KMOD_POLICY;
	return set_policy(kmod);
}

static int kmod_open(struct flexsc_loop *loop)
{
	struct kmod *kmod = calloc(1, sizeof(*kmod));
	const struct arena was = loop->entries;
	enum kmod_step step;
	int err;

	if (!kmod)
		return -ENOMEM;
	kmod->loop = loop;
	kmod->max = flexsc__kmod_threads_max(loop);
	kmod->signo = flexsc__cancel_signal();
	err = take_steps(kmod, &step);
	if (!err) {
		loop->stats->max_threads = kmod->max;
		loop->engine_data = kmod;
		if (kmod->watched)
			flexsc__kmod_spare_first(loop);
		if (OWNER_GOES_ON)
			flexsc__kmod_begin_pool(loop);
		return 0;
	}
	if (flexsc__kmod_area_unmap(kmod, &was))
		err = -ENOMEM;
	if (kmod->fd >= 0)
		flexsc__private_fd_close(kmod->fd);
	free(kmod);
	/*
	 * If the loop's own entries were restored, another engine can be tried, so
	 * flexsc__kmod_why() may change the error to -EOPNOTSUPP. If memory was too
	 * short to restore them, no engine can work: return the original error.
	 */
	return loop->entries.count ?
		       flexsc__kmod_why(step, err, loop->why, sizeof(loop->why)) :
		       err;
}

static void kmod_close(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);

	if (kmod->watches)
		flexsc__guard_unwatch(&kmod->watcher);
	flexsc__kmod_threads_end(kmod);
	munmap(kmod->shared, kmod->area);
	loop->entries = (struct arena){ 0 };
	flexsc__private_fd_close(kmod->fd);
	free(kmod);
}

static void kmod_forked(struct flexsc_loop *loop)
{
	struct kmod *kmod = kmod_of(loop);

	flexsc__private_fd_close(kmod->fd);
	flexsc__kmod_threads_forked(kmod);
	free(kmod);
	/* The child has no mapping to unmap, because of MADV_DONTFORK. */
	loop->entries = (struct arena){ 0 };
}

const struct engine flexsc__engine_kmod = {
	.name = "kmod",
	.open = kmod_open,
	.submit = kmod_submit,
	.wait = kmod_wait,
	.stirs = kmod_stirs,
	.wake = kmod_wake,
	.attach = kmod_attach,
	.is_silent = kmod_is_silent,
	.cancel = kmod_cancel,
	.reach = kmod_reach,
	.cancels_anywhere = kmod_cancels_anywhere,
	.tend = kmod_tend,
	.close = kmod_close,
	.forked = kmod_forked,
};
