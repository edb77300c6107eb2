/* SPDX-License-Identifier: MIT */
#include "signal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "handle.h"
#include "loop.h"
#include "ready.h"

/*
 * A loop as the signal handler sees it. Targets are never freed, so the handler may
 * walk their list at any time. A loop that ends clears its target, then waits for
 * handlers that still use it.
 */
struct signal_target {
	struct signal_target *next;
	_Atomic(struct flexsc_loop *) loop;	/* NULL: not in use */
	_Atomic uint64_t caught;	/* bit n: signal n + 1 */
	_Atomic uint64_t pending;
	_Atomic uint32_t users;		/* number of handlers that are using "loop" */
};

static _Atomic(struct signal_target *) targets;

static struct dispositions {
	pthread_mutex_t lock;	/* guards the fields below; the signal handler doesn't
				 * take it */
	unsigned int users[64];	/* per signal: number of targets that catch it */
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

		if (!(atomic_load(&target->caught) & signal_bit(signo)))
			continue;
		/* S1: increments "users", then reads "loop"; pairs with S2. */
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

/* Install the handler for this signal, and let it report the signal to the loop. */
static int signal_catch(struct flexsc_loop *loop, int signo)
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
		atomic_fetch_or(&loop->signals->caught, signal_bit(signo));
	}
	pthread_mutex_unlock(&dispositions.lock);
	return err;
}

static void signals_fini(struct flexsc_loop *loop)
{
	struct signal_target *target = loop->signals;
	uint64_t caught;

	if (!target)
		return;
	pthread_mutex_lock(&dispositions.lock);
	caught = atomic_exchange(&target->caught, 0);
	for (int i = 0; i < 64; i++)
		if (caught & 1ULL << i && !--dispositions.users[i])
			sigaction(i + 1, &dispositions.before[i], NULL);
	/*
	 * S2: clears "loop", then waits until "users" is 0: no handler uses the loop
	 * any more. Pairs with S1.
	 */
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
	    !(atomic_load(&loop->signals->caught) & signal_bit(signo)))
		err = signal_catch(loop, signo);
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

void flexsc__signal_end(struct flexsc_loop *loop, struct signal_wait **link,
			int64_t ret)
{
	struct signal_wait *wait = *link;

	loop_assert_owner(loop);
	*link = wait->next;
	flexsc__ready(loop, wait->cb, ret);
	free(wait);
}

/* Returns the signals that have arrived and that a cb waits for. */
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

void flexsc__signals_collect(struct flexsc_loop *loop)
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

bool flexsc__signals_waiting(const struct flexsc_loop *loop)
{
	return signals_ready(loop);
}

void flexsc__signals_cancel(struct flexsc_loop *loop)
{
	while (loop->signal_waits)
		flexsc__signal_end(loop, &loop->signal_waits, -ECANCELED);
	signals_fini(loop);
}

void flexsc__signals_forked(void)
{
	struct signal_target *target;

	for (target = atomic_load(&targets); target; target = target->next) {
		atomic_store(&target->loop, NULL);
		atomic_store(&target->caught, 0);
		atomic_store(&target->users, 0);
	}
	for (int i = 0; i < 64; i++)
		if (dispositions.users[i])
			sigaction(i + 1, &dispositions.before[i], NULL);
	dispositions = (struct dispositions){
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
}
