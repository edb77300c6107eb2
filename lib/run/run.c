/* SPDX-License-Identifier: MIT */
/*
 * The loop itself: made, run, destroyed. Owner only, but for
 * flexsc_loop_stop().
 *
 * One turn of a loop that runs:
 *
 *	collect		what syscall threads, other threads, signals and
 *			timers have completed
 *	dispatch	callbacks of what was complete then, some of each kind,
 *			so that none of them starves the others
 *	engine->wait	what the callbacks posted goes to the kernel in one
 *			batch, in the same mode switch that collects results
 *			and, when nothing is left to do, sleeps
 */
#include "../loop/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/cores.h"

#define MAX_ENTRIES	(1U << 20)
#define MAX_ENTRIES_MAX	(1U << 26)
#define MAX_THREADS	64
#define MAX_THREADS_MAX	4096
#define BUDGET		1024	/* callbacks of a kind in one turn */

/* The thread's default loop, and the one that flexsc_init() made for it. */
static _Thread_local struct flexsc_loop *default_loop;
static _Thread_local struct flexsc_loop *own_loop;

/* Has the end of the thread destroy its own loop. */
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_err;

/* Making. */

static bool zero(const void *memory, size_t size)
{
	const char *byte = memory;

	while (size && !*byte) {
		byte++;
		size--;
	}
	return !size;
}

/* Older callers know fewer options, newer ones more: those must be unused. */
static int take_options(struct flexsc_loop *loop,
			const struct flexsc_options *options)
{
	struct flexsc_options *own = &loop->options;
	size_t known = sizeof(*own);
	cpu_set_t cores;

	if (options) {
		if (options->size < offsetof(struct flexsc_options, cores))
			return -EINVAL;
		if (options->size < known)
			known = options->size;
		if (!zero((const char *)options + known,
			  options->size - known))
			return -EINVAL;
		memcpy(own, options, known);
	}
	if (own->flags & ~FLEXSC_SQPOLL)
		return -EINVAL;
	/* Here, since an engine may need them late or never. */
	if (own->cores && flexsc__cores_parse(own->cores, &cores))
		return -EINVAL;
	if (!own->max_entries)
		own->max_entries = MAX_ENTRIES;
	if (!own->max_threads)
		own->max_threads = MAX_THREADS;
	if (own->max_entries > MAX_ENTRIES_MAX ||
	    own->max_threads > MAX_THREADS_MAX)
		return -EINVAL;
	/* Whole pages. */
	own->max_entries = (own->max_entries + FLEXSC_PAGE_ENTRIES - 1) /
			   FLEXSC_PAGE_ENTRIES * FLEXSC_PAGE_ENTRIES;
	return 0;
}

static void release(struct flexsc_loop *loop)
{
	flexsc__stats_fini(loop);
	flexsc__wheel_fini(&loop->wheel);
	flexsc__arena_fini(&loop->held);
	flexsc__pages_fini(loop);
	free(loop);
}

static int init(struct flexsc_loop *loop)
{
	int err;

	loop->completions.head = FLEXSC_NO_ENTRY;
	for (unsigned int group = 0; group < GROUPS; group++)
		queue_init(&loop->submitted[group]);
	queue_init(&loop->done);
	err = flexsc__stats_init(loop);
	if (!err)
		err = flexsc__pages_init(loop, loop->options.max_entries);
	if (!err)
		err = flexsc__held_init(loop);
	if (!err)
		err = flexsc__wheel_init(&loop->wheel, flexsc__now());
	if (!err)
		err = flexsc__engine_open(loop);
	if (err)
		return err;
	flexsc__stats_publish(loop);
	err = flexsc__fork_register(loop);
	if (err)
		loop->engine->close(loop);
	return err;
}

/* why, if there is one, gets the reason for a failure as one line. */
int flexsc__loop_create(struct flexsc_loop **out,
			const struct flexsc_options *options, char *why,
			size_t size)
{
	struct flexsc_loop *loop;
	int err;

	loop = aligned_alloc(64, (sizeof(*loop) + 63) / 64 * 64);
	if (!loop)
		return -ENOMEM;
	memset(loop, 0, sizeof(*loop));
	loop->stats_fd = -1;
	loop->owner = pthread_self();
	err = take_options(loop, options);
	if (!err)
		err = init(loop);
	if (err) {
		if (why)
			snprintf(why, size, "%s",
				 loop->why[0] ? loop->why : strerror(-err));
		release(loop);
		return err;
	}
	*out = loop;
	return 0;
}

int flexsc_loop_create(struct flexsc_loop **loop,
		       const struct flexsc_options *options)
{
	return loop ? flexsc__loop_create(loop, options, NULL, 0) : -EINVAL;
}

/* Running. */

/* Move what syscall threads completed to the done list, oldest first. */
static void collect_completions(struct flexsc_loop *loop)
{
	uint32_t index = completions_take(&loop->completions);
	uint32_t oldest = NONE;

	while (index != NONE) {
		uint32_t next = entry_of(loop, index)->link;

		call_of(loop, index)->next = oldest;
		oldest = index;
		index = next;
	}
	while (oldest != NONE) {
		uint32_t next = call_of(loop, oldest)->next;

		queue_append(&loop->done, call_of(loop, oldest), oldest);
		oldest = next;
	}
}

void flexsc__collect(struct flexsc_loop *loop)
{
	collect_completions(loop);
	flexsc__events_collect(loop);
}

/* Is there something to dispatch, timers not counted? From the owner only. */
bool flexsc__loop_ready(const struct flexsc_loop *loop)
{
	return !queue_empty(&loop->done) || loop->ready.head ||
	       __atomic_load_n(&loop->completions.head, __ATOMIC_SEQ_CST) !=
		       FLEXSC_NO_ENTRY ||
	       atomic_load(&loop->stop) || atomic_load(&loop->nudged) ||
	       flexsc__events_waiting(loop);
}

bool flexsc__loop_stirs(const struct flexsc_loop *loop)
{
	return flexsc__loop_ready(loop) ||
	       (loop->engine->stirs && loop->engine->stirs(loop));
}

/* Are there callbacks to come? */
static bool owing(const struct flexsc_loop *loop)
{
	return loop->events || loop->posted != loop->completed;
}

static bool stopped(const struct flexsc_loop *loop)
{
	return atomic_load_explicit(&loop->stop, memory_order_relaxed);
}

/*
 * Run the callbacks of calls that are done, but not of those that become so
 * meanwhile. Returns how many ran.
 */
static int dispatch_done(struct flexsc_loop *loop, bool until_stop)
{
	uint32_t *tail = loop->done.tail, index, next;
	int n = 0;

	if (queue_empty(&loop->done))
		return 0;
	for (index = queue_take(&loop->done); index != NONE; index = next) {
		if (n == BUDGET || (until_stop && stopped(loop)))
			break;
		next = call_of(loop, index)->next;
		flexsc__call_retire(loop, index);
		n++;
	}
	if (index == NONE)
		return n;
	/* The rest is first the next time. */
	*tail = loop->done.head;
	if (queue_empty(&loop->done))
		loop->done.tail = tail;
	loop->done.head = index;
	return n;
}

/* The same of everything else that is ready. */
static int dispatch_ready(struct flexsc_loop *loop, bool until_stop)
{
	struct flexsc_cb *cb, *last = loop->ready.tail;
	bool more = loop->ready.head;
	int n = 0;

	while (more && !(until_stop && stopped(loop))) {
		cb = flexsc__ready_take(loop);
		more = cb != last;
		cb->handle = 0;
		loop->events--;
		callback(cb, cb->ret);
		n++;
	}
	return n;
}

static int dispatch(struct flexsc_loop *loop, bool until_stop)
{
	int n;

	loop->inside = true;
	n = dispatch_done(loop, until_stop);
	n += dispatch_ready(loop, until_stop);
	loop->inside = false;
	return n;
}

/* One batch to the engine, and a sleep of at most ns if nothing is ready. */
static int step(struct flexsc_loop *loop, uint64_t ns)
{
	if (ns && loop->wheel.armed) {
		uint64_t next = flexsc__wheel_next(&loop->wheel, flexsc__now());

		if (next < ns)
			ns = next;
	}
	if (ns && flexsc__loop_ready(loop))
		ns = 0;
	flexsc__stats_publish(loop);
	return loop->engine->wait(loop, ns);
}

static int check(const struct flexsc_loop *loop)
{
	if (!loop)
		return -EINVAL;
	if (loop->stale)
		return -ESTALE;
	return loop->inside ? -EDEADLK : 0;
}

int flexsc_loop_run(struct flexsc_loop *loop)
{
	int err = check(loop);

	while (!err) {
		flexsc__collect(loop);
		atomic_store(&loop->nudged, false);
		dispatch(loop, true);
		if (atomic_exchange(&loop->stop, false))
			break;
		if (!owing(loop) && !flexsc__loop_ready(loop))
			break;
		err = step(loop, FLEXSC_FOREVER);
	}
	if (loop && !loop->stale)
		flexsc__stats_publish(loop);
	return err;
}

int flexsc_loop_stop(struct flexsc_loop *loop)
{
	if (!loop)
		return -EINVAL;
	if (loop->stale)
		return -ESTALE;
	atomic_store(&loop->stop, true);
	loop_notify(loop);
	return 0;
}

int flexsc_loop_submit(struct flexsc_loop *loop)
{
	if (!loop)
		return -EINVAL;
	if (loop->stale)
		return -ESTALE;
	loop->engine->submit(loop);
	return 0;
}

int flexsc_loop_dispatch(struct flexsc_loop *loop)
{
	int err = check(loop);

	if (!err)
		err = step(loop, 0);
	if (err)
		return err;
	flexsc__collect(loop);
	err = dispatch(loop, false);
	flexsc__stats_publish(loop);
	return err;
}

int flexsc_loop_wait(struct flexsc_loop *loop, uint64_t ns)
{
	uint64_t begin = flexsc__now(), passed = 0;
	int err = check(loop);

	while (!err) {
		err = step(loop, ns == FLEXSC_FOREVER ? ns : ns - passed);
		flexsc__collect(loop);
		if (err || flexsc__loop_ready(loop)) {
			atomic_store(&loop->nudged, false);
			return err ? err : 1;
		}
		passed = flexsc__now() - begin;
		if (passed >= ns)
			break;
	}
	return err;
}

/* Destroying. */

static void drain(struct flexsc_loop *loop)
{
	loop->closing = true;
	/* Start what was posted: it may have been meant to happen. */
	step(loop, 0);
	flexsc__cancel_all(loop);
	flexsc__events_cancel(loop);
	for (;;) {
		atomic_store(&loop->stop, false);
		atomic_store(&loop->nudged, false);
		flexsc__collect(loop);
		dispatch(loop, false);
		if (!owing(loop))
			break;
		step(loop, FLEXSC_FOREVER);
	}
}

int flexsc_loop_destroy(struct flexsc_loop *loop)
{
	if (!loop)
		return 0;
	if (loop->inside)
		return -EBUSY;
	if (!loop->stale && !pthread_equal(loop->owner, pthread_self()))
		return -EPERM;
	if (default_loop == loop)
		default_loop = NULL;
	if (own_loop == loop) {
		own_loop = NULL;
		pthread_setspecific(at_thread_end, NULL);
	}
	if (loop->stale) {
		/* Its mappings aren't here, its descriptors are closed. */
		free(loop);
		return 0;
	}
	drain(loop);
	flexsc__fork_unregister(loop);
	loop->engine->close(loop);
	release(loop);
	return 0;
}

/* The thread's default loop. */

static void thread_ends(void *loop)
{
	flexsc_loop_destroy(loop);
}

static void make_key(void)
{
	once_err = -pthread_key_create(&at_thread_end, thread_ends);
}

struct flexsc_loop *flexsc_loop_default(void)
{
	return default_loop;
}

int flexsc_loop_set_default(struct flexsc_loop *loop)
{
	default_loop = loop;
	return 0;
}

int flexsc_init(void)
{
	struct flexsc_loop *loop;
	int err;

	if (default_loop || own_loop)
		return -EEXIST;
	pthread_once(&once, make_key);
	if (once_err)
		return once_err;
	err = flexsc_loop_create(&loop, NULL);
	if (err)
		return err;
	err = -pthread_setspecific(at_thread_end, loop);
	if (err) {
		flexsc_loop_destroy(loop);
		return err;
	}
	own_loop = loop;
	default_loop = loop;
	return 0;
}

int flexsc_fini(void)
{
	return flexsc_loop_destroy(own_loop);
}

/* In a forked child: the thread that lives on has no loop. */
void flexsc__default_forked(void)
{
	default_loop = NULL;
	if (own_loop)
		pthread_setspecific(at_thread_end, NULL);
	own_loop = NULL;
}
