/* SPDX-License-Identifier: MIT */
#include "strict.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "lib/base/futex.h"
#include "lib/base/trial.h"
#include "lib/calls/call_info.h"
#include "lib/pool/own_thread.h"
#include "runtime/base/interpose.h"
#include "runtime/counters/counters.h"
#include "runtime/sched/anchored.h"
#include "runtime/sched/host.h"
#include "runtime/sched/internal_thread.h"
#include "runtime/sched/state.h"
#include "runtime/sched/thread_count.h"
#include "life.h"
#include "perform.h"

struct watch {
	pthread_mutex_t held;	/* robust; the watched thread never unlocks it */
	struct watch *next;
	/*
	 * Written by the watched thread, and read after its end: the status as in
	 * wait(2), and whether libc decrements its count.
	 */
	_Atomic int status;
	atomic_bool returns;
	unsigned int rounds;	/* of destructors; the watched thread's */
	bool is_over;		/* protected by watches_lock */
};

/* Only the watcher frees watches, because it may be waiting for a mutex. */
static struct lock watches_lock;
static struct watch *watches;
/* The watcher runs while there are watches. The next one joins its predecessor. */
static enum { WATCHER_NONE, WATCHER_RUNS, WATCHER_ENDED } watcher_state;
static pthread_t watcher;

/*
 * Thread-specific data of watched threads. libc runs destructors in rounds, and
 * decrements its count only after the last round. The kernel may end a thread in any of
 * the program's destructors. So this data lasts until the last round, whose destructor
 * sets watch.returns. Only a destructor of the same round, of a key that the program
 * made later, and libc's freeing of memory come after that and before the decrement.
 */
static pthread_key_t round_key;
static bool has_round_key;	/* protected by watches_lock */

static void round_ends(void *data)
{
	struct watch *w = flexsc__self.strict ? flexsc__self.watch : NULL;

	if (!w)
		return;
	if (++w->rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(round_key, data);
	else
		atomic_store(&w->returns, true);
}

/* Let round_ends() run for the calling thread. False: no memory, or no key is left. */
static bool count_rounds(void)
{
	bool has;

	lock(&watches_lock);
	if (!has_round_key)
		has_round_key = !pthread_key_create(&round_key, round_ends);
	has = has_round_key;
	unlock(&watches_lock);
	return has && !pthread_setspecific(round_key, &round_key);
}

/* With the lock held: NULL unless the watch's thread has ended. */
static struct watch *watch_end(struct watch *w, int result)
{
	bool died = result == EOWNERDEAD && !w->is_over;

	if (result == EOWNERDEAD)
		pthread_mutex_consistent(&w->held);
	if (result == EOWNERDEAD || !result)
		REAL(pthread_mutex_unlock)(&w->held);
	w->is_over |= died;
	return died ? w : NULL;
}

static void count_end(const struct watch *w)
{
	flexsc__count_program_died(!atomic_load(&w->returns),
				   atomic_load(&w->status));
}

static struct watch *first_watch(void)
{
	struct watch *w;

	lock(&watches_lock);
	w = watches;
	if (!w)
		watcher_state = WATCHER_ENDED;
	unlock(&watches_lock);
	return w;
}

static void watch_remove(struct watch *w)
{
	struct watch **to = &watches;

	lock(&watches_lock);
	while (*to != w)
		to = &(*to)->next;
	*to = w->next;
	unlock(&watches_lock);
	pthread_mutex_destroy(&w->held);
	free(w);
}

static void *watcher_main(void *arg)
{
	struct watch *w, *ended;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	while ((w = first_watch())) {
		int result = REAL(pthread_mutex_lock)(&w->held);

		lock(&watches_lock);
		ended = watch_end(w, result);
		unlock(&watches_lock);
		if (ended)
			count_end(ended);
		watch_remove(w);
	}
	return arg;
}

/* With the lock held. Without a watcher, the process may outlive its last thread. */
static void start_watcher(void)
{
	if (watcher_state == WATCHER_RUNS)
		return;
	if (watcher_state == WATCHER_ENDED)
		flexsc__own_join(watcher);
	watcher_state = flexsc__internal_service(&watcher, watcher_main, NULL) ?
				WATCHER_NONE : WATCHER_RUNS;
}

/* Begin to watch the calling thread. NULL: no memory, or no key is left. */
static struct watch *watch_begin(void)
{
	struct watch *w = count_rounds() ? calloc(1, sizeof(*w)) : NULL;
	pthread_mutexattr_t attr;

	if (!w)
		return NULL;
	/* If the thread makes no exit(2) that the runtime sees, it was killed. */
	w->status = SIGKILL;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&w->held, &attr);
	pthread_mutexattr_destroy(&attr);
	REAL(pthread_mutex_lock)(&w->held);
	flexsc__count_program_watched(true);
	lock(&watches_lock);
	w->next = watches;
	watches = w;
	start_watcher();
	unlock(&watches_lock);
	return w;
}

/* A thread that has ended, and whose end wasn't counted yet: fills "copy". */
static bool find_ended(struct watch *copy)
{
	struct watch *w, *ended = NULL;

	lock(&watches_lock);
	for (w = watches; w && !ended; w = w->next)
		ended = watch_end(w, REAL(pthread_mutex_trylock)(&w->held));
	if (ended) {
		copy->status = ended->status;
		copy->returns = ended->returns;
	}
	unlock(&watches_lock);
	return ended;
}

void flexsc__strict_count_ended(void)
{
	struct watch copy;

	while (__atomic_load_n(&watches, __ATOMIC_RELAXED) && find_ended(&copy))
		count_end(&copy);
}

bool flexsc__strict_any(void)
{
	struct watch *w;

	flexsc__strict_count_ended();
	lock(&watches_lock);
	for (w = watches; w && w->is_over; w = w->next)
		;
	unlock(&watches_lock);
	return w;
}

struct call {
	long nr;
	const uint64_t *a;
};

/* In strict mode the child may not call exit_group(2). */
static int try_mode(const void *arg)
{
	const struct call *call = arg;

	if (flexsc__perform_plainly(call->nr, call->a))
		return 1;
	raw_syscall(SYS_exit, 0, 0, 0, 0, 0, 0);
	return 0;
}

/* Is the kernel certain to refuse the mode, as to a thread with a filter? */
static bool is_refused(const struct uthread *u, long nr, const uint64_t a[6])
{
	const struct call call = { nr, a };

	return filter_is_near(u) || flexsc__trial(try_mode, &call) == 1;
}

long flexsc__strict_enter(struct uthread *u, long nr, const uint64_t a[6])
{
	long ret;

	if (is_refused(u, nr, a))
		return flexsc__perform_on_host(u, nr, a);
	/* A dormant runtime has no threads: the process ends as natively. */
	if (!atomic_load(&flexsc__runtime.dormant))
		u->watch = watch_begin();
	flexsc__exit(u);
	flexsc__life_end(u);
	u->alive = false;
	u->strict = true;
	ret = flexsc__perform_plainly(nr, a);
	/* Another thread may have installed a filter meanwhile: stay on the host. */
	if (ret) {
		u->strict = false;
		u->alive = true;
		if (u->watch) {
			REAL(pthread_mutex_unlock)(&u->watch->held);
			flexsc__count_program_watched(false);
		}
		u->watch = NULL;
	}
	flexsc__enter(u);
	u->way = WAY_ON_HOST;
	return ret;
}

long flexsc__strict_call(struct uthread *u, long nr, const uint64_t a[6])
{
	if (u->watch && flexsc__call_info((unsigned int)nr)->user == USER_EXIT)
		atomic_store(&u->watch->status, W_EXITCODE((int)a[0] & 0xff, 0));
	return flexsc__perform_plainly(nr, a);
}

void flexsc__strict_forked(void)
{
	watches_lock = (struct lock){ 0 };
	watches = NULL;
	watcher_state = WATCHER_NONE;
}
