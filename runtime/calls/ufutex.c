/* SPDX-License-Identifier: MIT */
#include "ufutex.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <time.h>

#include "lib/base/clock.h"
#include "runtime/base/peek.h"
#include "runtime/counters/counters.h"
#include "runtime/sched/host.h"
#include "runtime/sched/inbox.h"
#include "runtime/sched/state.h"
#include "runtime/sched/sticky.h"
#include "runtime/sched/wait.h"
#include "bucket.h"
#include "futex_op.h"
#include "perform.h"

#define ANY	FUTEX_BITSET_MATCH_ANY

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2	13
#endif

static uint32_t word_load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/*
 * Can the runtime read the word? If libc passed the address (u->site), it is valid. If
 * the program passed it, the kernel has to check it.
 */
static bool can_read(const struct uthread *u, const uint32_t *word)
{
	return (u && u->site) || peek_can_read(PTR(word), sizeof(*word));
}

/*
 * Can the runtime write the word? To find out, the kernel ORs 0 to it. This wakes no
 * thread, because the word doesn't equal "other".
 */
static bool can_write(const struct uthread *u, const uint32_t *word)
{
	uint32_t nobody = 0, other;

	if (!can_read(u, word))
		return false;
	other = !word_load(word);
	return raw_syscall(SYS_futex, PTR(&nobody),
			   FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 1, 1, PTR(word),
			   (uint32_t)FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ,
					      other)) != -EFAULT;
}

/* As can_read(), but without a check if the last wait was in the same page. */
static bool can_wait_for(struct uthread *u, const uint32_t *word)
{
	uintptr_t page = (uintptr_t)word / 4096;

	if (u->futex.page != page && !can_read(u, word))
		return false;
	u->futex.page = page;
	return true;
}

/*
 * Turns. libc's locks let any thread take a free lock, even before the thread that was
 * woken for the lock runs. The woken thread then waits again. As the last waiter, it
 * might never get the lock. If the monitor moves each owner to a host during its
 * ownership, the same few threads get the lock in turn. So a woken thread that waits
 * again becomes the first waiter.
 */

/* The value of libc's locks that have waiters; some other libraries use it, too. */
#define CONTENDED	2U
/*
 * If a thread's run was at least this long, in ticks, the thread has probably taken the
 * lock and wants it again.
 */
#define TURN_TICKS	50000U

/* Was u woken for this word, and has it done nothing else since its wake-up? */
static bool waits_again(const struct uthread *u, const uint32_t *word, uint32_t value)
{
	const struct carrier *c = kthread_self()->carrier;

	return value == CONTENDED && u->futex.turn == word && c->calls == 1 &&
	       context_ticks() - c->began < TURN_TICKS;
}

/*
 * On a carrier, a waker yields to a thread that has lost its turn this often in a row.
 * After one loss of a lock, the word with this value may not be a lock at all. A pool's
 * workers often lose the turn of a semaphore, and yielding to them gains nothing.
 */
#define LOST_LOCK	2U
#define LOST_SEMAPHORE	4U

/*
 * Libc's semaphores have no value like CONTENDED. But if a woken thread finds its word
 * unchanged, another thread has taken the semaphore before.
 */
static void count_lost_semaphore(struct uthread *u, const uint32_t *word, uint32_t value)
{
	/* The thread returns to libc, which reads the word itself. */
	if (u->ret || !u->site || word_load(word) != value)
		u->futex.lost_semaphore = 0;
	else if (u->futex.lost_semaphore < LOST_SEMAPHORE)
		u->futex.lost_semaphore++;
}

static bool any_waits_again(const struct uthread *list)
{
	const unsigned int turns = on_host() ? 1 : LOST_LOCK;

	while (list && list->futex.again < turns &&
	       list->futex.lost_semaphore < LOST_SEMAPHORE)
		list = list->next;
	return list;
}

/*
 * u has released a lock and woken a thread that had to wait for it again. Let that
 * thread run, because u might take the lock once more before. On a carrier, the woken
 * thread is in the carrier's queue. If u always waited for a call while it owned the
 * lock, the woken thread would run only during these calls, and would never get the
 * lock. A user thread computes on its host after its start and after a long run; if u
 * does, it leaves its host.
 */
static void pass_lock(struct uthread *u)
{
	const enum way way = u->way;

	if (!on_host())
		flexsc__wait_yield(u);
	else if (u->computes_on_host && !flexsc__stays(u))
		flexsc__leave_host_to_run(u);
	u->way = way;
}

/* Waiting. */

static void wait_then(struct kthread *k, struct uthread *u)
{
	struct bucket *bucket = bucket_of(u->futex.word);
	long ret = 0;

	u->futex.timer = NULL;
	if (u->futex.timed) {
		u->futex.timer = flexsc__futex_timer_start(
			k->carrier, u, flexsc__bucket_time_over, u->ns);
		if (!u->futex.timer) {
			u->ret = NO_ENTRY;
			flexsc__inbox_ready(u);
			return;
		}
	}
	/* P1: before reading "wanted"; pairs with P2 in sched/wait.c. */
	atomic_store(&u->wait, WAIT_FUTEX);
	lock(&bucket->lock);
	/* F1: before reading the word; pairs with F2. */
	atomic_fetch_add(&bucket->users, 1);
	bucket_add(bucket, u, u->futex.again);
	if (word_load(u->futex.word) != u->futex.value)
		ret = -EAGAIN;
	else if (atomic_load(&u->wanted) || u->handled)
		ret = -EINTR;
	if (ret)
		bucket_take(bucket, u, ret);
	unlock(&bucket->lock);
	/* If u stays in the bucket, don't access u any more: u may be woken and end. */
	if (ret)
		flexsc__bucket_release(u);
}

/*
 * Remaining time of the limit, in ns. FUTEX_WAIT has a relative limit, of which
 * "passed" ns have elapsed. FUTEX_WAIT_BITSET has an absolute limit.
 */
static uint64_t time_left(const struct timespec *limit, uint64_t op,
			  uint64_t passed)
{
	clockid_t clock = op & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME :
						      CLOCK_MONOTONIC;

	if ((op & FUTEX_CMD_MASK) != FUTEX_WAIT)
		passed = time_now(clock);
	return time_ns(limit) > passed ? time_ns(limit) - passed : 0;
}

static long wait_once(struct uthread *u, uint32_t *word, uint32_t value,
		      uint32_t bits)
{
	/* Usually the word has already changed, so check it before preparing a wait. */
	if (word_load(word) != value)
		return -EAGAIN;
	sticky_waits_for_others(u);
	if (!flexsc__wait_away(u))
		return -EINTR;
	u->futex.word = word;
	u->futex.value = value;
	u->futex.bits = bits;
	if (!waits_again(u, word, value))
		u->futex.again = 0;
	else if (u->futex.again < LOST_LOCK)
		u->futex.again++;
	flexsc__suspend(u, wait_then);
	u->futex.turn = u->ret ? NULL : word;
	count_lost_semaphore(u, word, value);
	flexsc__settle(u);
	return u->ret;
}

static long kernel(const uint64_t args[6])
{
	return flexsc__perform_of_other(SYS_futex, args);
}

static long exposed(struct uthread *u, const uint64_t args[6])
{
	long ret;

	if (!u)
		return kernel(args);
	flexsc__exit(u);
	ret = kernel(args);
	flexsc__enter(u);
	return ret;
}

static void kernel_wait_over(void *bucket)
{
	atomic_fetch_sub(&((struct bucket *)bucket)->kernels, 1);
}

static void set_way(struct uthread *u, enum way way)
{
	if (u)
		u->way = way;
}

static long kernel_wait(struct uthread *u, const uint64_t args[6])
{
	struct bucket *bucket = bucket_of((uint32_t *)(uintptr_t)args[0]);
	long ret;

	/* F1: before the kernel reads the word; pairs with F2. */
	atomic_fetch_add(&bucket->kernels, 1);
	/* If the wait is cancelled, kernel_wait_over() undoes the counting. */
	pthread_cleanup_push(kernel_wait_over, bucket);
	ret = exposed(u, args);
	pthread_cleanup_pop(1);
	if (u && ret != -EAGAIN)
		sticky_waits_for_others(u);
	set_way(u, WAY_KERNEL_WAIT);
	return ret;
}

/*
 * Continue the wait in the kernel, because u has returned to its host to stay, or its
 * carrier has no memory for the time limit.
 */
static long continue_on_host(struct uthread *u, const uint64_t args[6],
			  uint64_t begin)
{
	const struct timespec *limit = (void *)(uintptr_t)args[3];
	uint64_t changed[6] = { args[0], args[1], args[2], args[3], args[4],
				args[5] };
	struct timespec rest;
	uint64_t left;

	if (begin) {
		left = time_left(limit, args[1], time_monotonic() - begin);
		rest = (struct timespec){ (time_t)(left / SECOND),
					  (long)(left % SECOND) };
		changed[3] = PTR(&rest);
	}
	u->cause = CAUSE_ENTRY;
	flexsc__return_to_host(u);
	return kernel_wait(u, changed);
}

static long user_wait(struct uthread *u, const uint64_t args[6], uint32_t bits)
{
	const struct timespec *limit = (void *)(uintptr_t)args[3];
	uint32_t *word = (uint32_t *)(uintptr_t)args[0];
	uint64_t begin = 0, passed = 0;
	long ret;

	/* A time limit from libc (u->site) is readable, so don't check it. */
	if (limit && !u->site && !peek_can_read(args[3], sizeof(*limit)))
		return -EFAULT;
	if ((limit && !time_valid(limit)) || !bits)
		return -EINVAL;
	if (!can_wait_for(u, word))
		return -EFAULT;
	if (limit && (args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT)
		begin = time_monotonic();
	for (;;) {
		u->futex.timed = limit;
		if (begin)
			passed = time_monotonic() - begin;
		if (limit)
			u->ns = time_left(limit, args[1], passed);
		ret = wait_once(u, word, (uint32_t)args[2], bits);
		if (ret == NO_ENTRY)
			return continue_on_host(u, args, begin);
		if (ret == -EINTR)
			flexsc__wait_test_cancel(u);
		/* As in the kernel, only a wait without a limit is restarted. */
		if (ret != -EINTR ||
		    (u->handled && (limit || u->handled != HANDLED_RESTART)))
			break;
		u->handled = HANDLED_NOT;
		if (flexsc__stays(u))
			return continue_on_host(u, args, begin);
	}
	u->way = WAY_FUTEX_WAIT;
	return ret;
}

/* Waking. */

/* Take waiters off the bucket, which the caller unlocks before it releases the list. */
static struct uthread *take_waiters(struct bucket *bucket, const uint32_t *word,
				    uint32_t n, uint32_t bits, uint32_t *taken)
{
	struct uthread *first = NULL, **link = &first, *u, *next;

	for (u = bucket->head; u && *taken < n; u = next) {
		next = u->futex.next;
		if (u->futex.word != word || !(u->futex.bits & bits))
			continue;
		bucket_take(bucket, u, 0);
		*link = u;
		link = &u->next;
		++*taken;
	}
	return first;
}

/*
 * Count a hand-over (sched/sticky.h): u, which is the waker or NULL, is about to
 * release the user threads in the list. Called before the release, because a released
 * user thread may end.
 */
static void hand_over(struct uthread *u, const struct uthread *list)
{
	uint8_t slow = 0;

	if (!u || !list)
		return;
	for (; list; list = list->next) {
		uint8_t one = atomic_load_explicit(&list->slow, memory_order_relaxed);

		slow = one > slow ? one : slow;
	}
	sticky_hands_over(u, slow);
}

static long futex_wake_up(struct uthread *u, const uint64_t args[6], uint32_t n,
			  uint32_t bits)
{
	uint32_t *word = (uint32_t *)(uintptr_t)args[0];
	struct bucket *bucket = bucket_of(word);
	struct uthread *woken = NULL;
	uint32_t taken = 0;
	bool passes = false;
	long more = 0;

	if (!bits)
		return -EINVAL;
	/* F2: after changing the word, before reading both counts; pairs with F1. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&bucket->users, memory_order_relaxed)) {
		lock(&bucket->lock);
		woken = take_waiters(bucket, word, n, bits, &taken);
		unlock(&bucket->lock);
		hand_over(u, woken);
		passes = u && any_waits_again(woken);
		flexsc__bucket_release(woken);
	}
	set_way(u, WAY_FUTEX_WAKE);
	if (taken < n && atomic_load(&bucket->kernels)) {
		set_way(u, WAY_KERNEL_WAKE);
		more = raw_syscall(SYS_futex, args[0],
				   FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG,
				   n - taken, 0, 0, bits);
	}
	if (passes)
		pass_lock(u);
	if (more < 0)
		return taken ? (long)taken : more;
	return (long)taken + more;
}

/* Requeueing. */

static uint32_t bucket_move(struct bucket *from, const uint32_t *word,
			    struct bucket *to, uint32_t *target, uint32_t n)
{
	struct uthread *u, *next;
	uint32_t moved = 0;

	for (u = from->head; u && moved < n; u = next) {
		next = u->futex.next;
		if (u->futex.word != word)
			continue;
		bucket_remove(from, u);
		__atomic_store_n(&u->futex.word, target, __ATOMIC_RELAXED);
		atomic_fetch_add(&to->users, 1);
		bucket_add(to, u, false);
		moved++;
	}
	return moved;
}

/*
 * Kernel threads may wait for the word, too. If the kernel moved them to the second
 * word, that word's bucket would not count them. So wake all of them instead; they
 * check their word again.
 */
static long requeue_kernel(struct bucket *from, const uint64_t args[6],
			   uint64_t n)
{
	if (!atomic_load(&from->kernels))
		return 0;
	/*
	 * The number to wake and the number to move may add up to more than INT_MAX,
	 * but the kernel takes an int.
	 */
	return raw_syscall(SYS_futex, args[0],
			   FUTEX_WAKE | FUTEX_PRIVATE_FLAG,
			   n < INT32_MAX ? n : INT32_MAX, 0, 0, 0);
}

static long futex_requeue(struct uthread *u, const uint64_t args[6],
			  bool compare)
{
	uint32_t *word = (uint32_t *)(uintptr_t)args[0];
	uint32_t *target = (uint32_t *)(uintptr_t)args[4];
	struct bucket *from = bucket_of(word), *to = bucket_of(target);
	uint32_t taken = 0, moved = 0;
	struct uthread *woken;
	long more;

	if ((int64_t)(int32_t)args[2] < 0 || (int64_t)(int32_t)args[3] < 0)
		return -EINVAL;
	if (compare && !can_read(u, word))
		return -EFAULT;
	buckets_lock(from, to);
	if (compare && word_load(word) != (uint32_t)args[5]) {
		buckets_unlock(from, to);
		return -EAGAIN;
	}
	set_way(u, atomic_load(&from->kernels) ? WAY_KERNEL_WAKE :
						 WAY_FUTEX_WAKE);
	woken = take_waiters(from, word, (uint32_t)args[2], ANY, &taken);
	moved = bucket_move(from, word, to, target, (uint32_t)args[3]);
	buckets_unlock(from, to);
	hand_over(u, woken);
	flexsc__bucket_release(woken);
	more = requeue_kernel(from, args,
			      (uint64_t)(uint32_t)args[2] - taken +
				      (uint32_t)args[3] - moved);
	return (long)taken + (long)moved + (more > 0 ? more : 0);
}

static long wake_op(struct uthread *u, const uint64_t args[6])
{
	uint64_t second[6] = { args[4] };
	uint32_t code = (uint32_t)args[5];
	long first, more = 0;
	uint32_t old;

	if (!flexsc__futex_op_valid(code))
		return -ENOSYS;
	if (!can_write(u, (uint32_t *)(uintptr_t)args[4]))
		return -EFAULT;
	old = flexsc__futex_op_apply((uint32_t *)(uintptr_t)args[4], code);
	first = futex_wake_up(u, args, (uint32_t)args[2], ANY);
	if (first >= 0 && flexsc__futex_op_compare(old, code))
		more = futex_wake_up(u, second, (uint32_t)args[3], ANY);
	return more < 0 ? more : first + more;
}

/* Futexes that the kernel handles alone. */

/* Can this be the address of a futex word? The kernel refuses any other address. */
static bool is_plausible(uint64_t address)
{
	return address >= 4096 && address < CONTEXT_ADDRESSES && address % 4 == 0;
}

static bool has_second(uint64_t op)
{
	op &= FUTEX_CMD_MASK;
	return op == FUTEX_REQUEUE || op == FUTEX_CMP_REQUEUE ||
	       op == FUTEX_WAKE_OP;
}

static bool op_needs_host(uint64_t op)
{
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_UNLOCK_PI:
	case FUTEX_TRYLOCK_PI:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_CMP_REQUEUE_PI:
		return true;
	default:
		return false;
	}
}

static long in_kernel(struct uthread *u, const uint64_t args[6])
{
	long ret;

	if (!u || !op_needs_host(args[1]))
		return kernel(args);
	u->cause = SYS_futex;
	flexsc__sticky_wait(u);
	flexsc__return_to_host(u);
	ret = exposed(u, args);
	u->way = WAY_ON_HOST;
	return ret;
}

long flexsc__ufutex(struct uthread *u, const uint64_t args[6])
{
	uint64_t op = args[1];
	uint32_t bits = ANY;

	/*
	 * If libc isn't patched, its wake-ups don't come here, so all waiters have to
	 * be in the kernel.
	 */
	if (!(op & FUTEX_PRIVATE_FLAG) || !is_plausible(args[0]) ||
	    (has_second(op) && !is_plausible(args[4])) || flexsc__runtime.unpatched)
		return in_kernel(u, args);
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT_BITSET:
		bits = (uint32_t)args[5];
		/* fall through */
	case FUTEX_WAIT:
		if (!u || flexsc__stays(u) || sticky_take(u))
			return kernel_wait(u, args);
		return user_wait(u, args, bits);
	case FUTEX_WAKE_BITSET:
		bits = (uint32_t)args[5];
		/* fall through */
	case FUTEX_WAKE:
		return futex_wake_up(u, args, (uint32_t)args[2], bits);
	case FUTEX_REQUEUE:
		return futex_requeue(u, args, false);
	case FUTEX_CMP_REQUEUE:
		return futex_requeue(u, args, true);
	case FUTEX_WAKE_OP:
		return wake_op(u, args);
	default:
		return in_kernel(u, args);
	}
}
