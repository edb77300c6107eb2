/* SPDX-License-Identifier: MIT */
/*
 * Timers, signals and wake-ups as callbacks. Owner only, but for the signal
 * handler and flexsc_loop_wake(), which say so.
 */
#include "loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

uint64_t flexsc__now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A cb is a link of one list at a time; while it is, handle is the link. */
static struct flexsc_cb *cb_next(const struct flexsc_cb *cb)
{
	return (struct flexsc_cb *)(uintptr_t)cb->handle;
}

static void cb_set_next(struct flexsc_cb *cb, struct flexsc_cb *next)
{
	cb->handle = (uintptr_t)next;
}

void flexsc__ready(struct flexsc_loop *loop, struct flexsc_cb *cb, int64_t ret)
{
	cb->ret = ret;
	cb_set_next(cb, NULL);
	if (loop->ready.head)
		cb_set_next(loop->ready.tail, cb);
	else
		loop->ready.head = cb;
	loop->ready.tail = cb;
}

struct flexsc_cb *flexsc__ready_take(struct flexsc_loop *loop)
{
	struct flexsc_cb *cb = loop->ready.head;

	if (cb)
		loop->ready.head = cb_next(cb);
	return cb;
}

/* Timers. */

int flexsc_loop_timer(struct flexsc_loop *loop, struct flexsc_cb *cb,
		      uint64_t ns)
{
	int err = flexsc__post_check(loop, cb);
	uint32_t timer;

	if (err)
		return err;
	if (!cb)
		return -EINVAL;
	err = flexsc__wheel_arm(&loop->wheel, flexsc__now(), ns, TIMER_CB,
			(uintptr_t)cb, &timer);
	if (err)
		return err;
	cb->handle = handle_make(HANDLE_TIMER, timer);
	count(&loop->stats->timers, 1);
	loop->events++;
	return 0;
}

/* Wake-ups: from any thread and any signal handler. */

int flexsc_loop_wake(struct flexsc_loop *loop, struct flexsc_cb *cb)
{
	if (!loop)
		return -EINVAL;
	if (loop->stale)
		return -ESTALE;
	if (cb) {
		struct flexsc_cb *head = atomic_load_explicit(
			&loop->woken, memory_order_relaxed);

		/* W1: publishes the caller's writes; pairs with W2. */
		do {
			cb_set_next(cb, head);
		} while (!atomic_compare_exchange_weak(&loop->woken, &head,
						       cb));
	} else {
		atomic_store(&loop->nudged, true);
	}
	loop_notify(loop);
	return 0;
}

static void collect_woken(struct flexsc_loop *loop)
{
	struct flexsc_cb *cb, *next, *oldest = NULL;

	if (!atomic_load_explicit(&loop->woken, memory_order_relaxed))
		return;
	/* W2: takes all of them, newest first; turn them round. */
	cb = atomic_exchange_explicit(&loop->woken, NULL, memory_order_acquire);
	for (; cb; cb = next) {
		next = cb_next(cb);
		cb_set_next(cb, oldest);
		oldest = cb;
	}
	for (cb = oldest; cb; cb = next) {
		next = cb_next(cb);
		loop->events++;
		flexsc__ready(loop, cb, 0);
	}
}

/*
 * Signals.
 *
 * A target is what the signal handler finds of a loop. Targets are never
 * freed, so the handler may walk their list at any time; a loop that ends
 * clears its target, then waits for handlers that still look at it.
 */
struct signal_target {
	struct signal_target *next;
	_Atomic(struct flexsc_loop *) loop;	/* NULL: not in use */
	_Atomic uint64_t wanted;	/* bit n: signal n + 1 */
	_Atomic uint64_t pending;
	_Atomic uint32_t users;		/* handlers looking at it */
};

/* A cb that waits for a signal. */
struct signal_wait {
	struct signal_wait *next;
	struct flexsc_cb *cb;
	int signo;
};

static _Atomic(struct signal_target *) targets;

static struct dispositions {
	pthread_mutex_t lock;	/* not taken by the handler */
	unsigned int users[64];	/* targets that want the signal */
	struct sigaction before[64];
} dispositions = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t signal_bit(int signo)
{
	return 1ULL << (signo - 1);
}

static void on_signal(int signo)
{
	struct signal_target *target;

	for (target = atomic_load(&targets); target; target = target->next) {
		struct flexsc_loop *loop;

		if (!(atomic_load(&target->wanted) & signal_bit(signo)))
			continue;
		/* S1: users goes up before loop is read; pairs with S2. */
		atomic_fetch_add(&target->users, 1);
		loop = atomic_load(&target->loop);
		if (loop && !loop->stale) {
			atomic_fetch_or(&target->pending, signal_bit(signo));
			loop_notify(loop);
		}
		atomic_fetch_sub(&target->users, 1);
	}
}

static struct signal_target *target_get(struct flexsc_loop *loop)
{
	struct signal_target *target;

	for (target = atomic_load(&targets); target; target = target->next)
		if (!atomic_load(&target->loop))
			break;
	if (!target) {
		target = calloc(1, sizeof(*target));
		if (!target)
			return NULL;
		target->next = atomic_load(&targets);
		atomic_store(&targets, target);
	}
	atomic_store(&target->pending, 0);
	atomic_store(&target->loop, loop);
	return target;
}

/* Have the handler tell this loop of the signal from now on. */
static int signal_want(struct flexsc_loop *loop, int signo)
{
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_RESTART };
	int err = 0, i = signo - 1;

	pthread_mutex_lock(&dispositions.lock);
	if (!loop->signals)
		loop->signals = target_get(loop);
	if (!loop->signals)
		err = -ENOMEM;
	else if (!dispositions.users[i] &&
		 sigaction(signo, &action, &dispositions.before[i]))
		err = -EINVAL;
	if (!err) {
		dispositions.users[i]++;
		atomic_fetch_or(&loop->signals->wanted, signal_bit(signo));
	}
	pthread_mutex_unlock(&dispositions.lock);
	return err;
}

static void signals_fini(struct flexsc_loop *loop)
{
	struct signal_target *target = loop->signals;
	uint64_t wanted;

	if (!target)
		return;
	pthread_mutex_lock(&dispositions.lock);
	wanted = atomic_exchange(&target->wanted, 0);
	for (int i = 0; i < 64; i++)
		if (wanted & 1ULL << i && !--dispositions.users[i])
			sigaction(i + 1, &dispositions.before[i], NULL);
	/* S2: no new handler finds the loop; pairs with S1. */
	atomic_store(&target->loop, NULL);
	pthread_mutex_unlock(&dispositions.lock);
	while (atomic_load(&target->users))
		sched_yield();
	loop->signals = NULL;
}

int flexsc_loop_signal(struct flexsc_loop *loop, struct flexsc_cb *cb,
		       int signo)
{
	int err = flexsc__post_check(loop, cb);
	struct signal_wait *wait;

	if (err)
		return err;
	if (!cb || signo < 1 || signo > 64 || signo == SIGKILL ||
	    signo == SIGSTOP)
		return -EINVAL;
	wait = malloc(sizeof(*wait));
	if (!wait)
		return -ENOMEM;
	if (!loop->signals ||
	    !(atomic_load(&loop->signals->wanted) & signal_bit(signo)))
		err = signal_want(loop, signo);
	if (err) {
		free(wait);
		return err;
	}
	*wait = (struct signal_wait){ loop->signal_waits, cb, signo };
	loop->signal_waits = wait;
	cb->handle = handle_make(HANDLE_SIGNAL, 0);
	loop->events++;
	return 0;
}

struct signal_wait **flexsc__signal_find(struct flexsc_loop *loop,
					 const struct flexsc_cb *cb)
{
	struct signal_wait **wait = &loop->signal_waits;

	while (*wait && (*wait)->cb != cb)
		wait = &(*wait)->next;
	return *wait ? wait : NULL;
}

/* Take a wait off its list and complete its cb. */
void flexsc__signal_end(struct flexsc_loop *loop, struct signal_wait **link,
			int64_t ret)
{
	struct signal_wait *wait = *link;

	*link = wait->next;
	flexsc__ready(loop, wait->cb, ret);
	free(wait);
}

/* The signals that arrived and that somebody waits for. */
static uint64_t signals_ready(const struct flexsc_loop *loop)
{
	uint64_t ready = 0, pending;

	if (!loop->signals)
		return 0;
	pending = atomic_load(&loop->signals->pending);
	if (pending)
		for (struct signal_wait *wait = loop->signal_waits; wait;
		     wait = wait->next)
			ready |= pending & signal_bit(wait->signo);
	return ready;
}

static void collect_signals(struct flexsc_loop *loop)
{
	uint64_t ready = signals_ready(loop);
	struct signal_wait **link = &loop->signal_waits;

	if (!ready)
		return;
	atomic_fetch_and(&loop->signals->pending, ~ready);
	while (*link) {
		int signo = (*link)->signo;

		if (ready & signal_bit(signo))
			flexsc__signal_end(loop, link, signo);
		else
			link = &(*link)->next;
	}
}

/* All of them. */

static struct flexsc_cb *timer_cb(const struct timer *timer)
{
	return (struct flexsc_cb *)(uintptr_t)timer->owner;
}

static void timer_due(struct flexsc_loop *loop, const struct timer *timer)
{
	if (timer->kind == TIMER_CB)
		flexsc__ready(loop, timer_cb(timer), 0);
	else
		flexsc__deadline_passed(loop, timer);
}

/*
 * Put everything that has happened on the ready list. Timers at most so many
 * at a time: the rest stays due, and the calls get their turn between.
 */
void flexsc__events_collect(struct flexsc_loop *loop)
{
	struct timer timer;
	int budget = 1024;

	collect_woken(loop);
	collect_signals(loop);
	if (!loop->wheel.armed)
		return;
	flexsc__wheel_advance(&loop->wheel, flexsc__now());
	while (budget-- && flexsc__wheel_pop(&loop->wheel, &timer))
		timer_due(loop, &timer);
}

/* Is there something to collect, timers not counted? */
bool flexsc__events_waiting(const struct flexsc_loop *loop)
{
	return atomic_load(&loop->woken) || signals_ready(loop);
}

/* The loop ends, calls were cancelled: complete the rest, -ECANCELED. */
void flexsc__events_cancel(struct flexsc_loop *loop)
{
	struct timer timer;

	collect_woken(loop);
	while (loop->signal_waits)
		flexsc__signal_end(loop, &loop->signal_waits, -ECANCELED);
	signals_fini(loop);
	/* Far enough for every timer that can be armed. */
	flexsc__wheel_advance(&loop->wheel, UINT64_MAX);
	while (flexsc__wheel_pop(&loop->wheel, &timer))
		if (timer.kind == TIMER_CB)
			flexsc__ready(loop, timer_cb(&timer), -ECANCELED);
		else
			call_of(loop, (uint32_t)timer.owner)->deadline =
				TIMER_NONE;
	flexsc__wheel_set(&loop->wheel, flexsc__now());
}

/*
 * In a forked child: its parent's loops are not told of its signals, and the
 * signals do to it what they did before.
 */
void flexsc__events_forked(void)
{
	struct signal_target *target;

	for (target = atomic_load(&targets); target; target = target->next) {
		atomic_store(&target->loop, NULL);
		atomic_store(&target->wanted, 0);
		atomic_store(&target->users, 0);
	}
	for (int i = 0; i < 64; i++)
		if (dispositions.users[i])
			sigaction(i + 1, &dispositions.before[i], NULL);
	dispositions = (struct dispositions){
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
}
