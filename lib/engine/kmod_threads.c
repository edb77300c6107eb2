/* SPDX-License-Identifier: MIT */
/*
 * The kmod engine's syscall threads. Each makes one ioctl and stays in the
 * kernel, which executes entries on it. It comes out for one of these:
 *
 *	MORE		nobody is idle any more: another is made. So there are
 *			as many as calls that block at the same time
 *	MOVE		it goes to another core
 *	BOUNCE		something watches its calls (a tracer, a filter): it
 *			makes one here, as a plain call
 *	IDLE, END	it ends; whoever makes the next one joins it
 *	an error	a filter came later, which forbids to go back: it ends
 *
 * There is a limit. What the kernel can't execute without one more thread than
 * that goes to a pool of the library's own, which parks calls that wait.
 *
 * The lock guards the list of threads; what they count is shared.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "../pool/cancelpoint.h"
#include "../pool/nowait.h"
#include "../pool/own_thread.h"
#include "../pool/pool.h"
#include "../calls/refine.h"
#include "../calls/table.h"
#include "kmod.h"

#define POOL_THREADS	16U

struct server {
	struct kmod *kmod;
	struct server *next;
	pthread_t thread;
	pid_t tid;
	/* Under the lock: */
	uint32_t bounced;	/* what it executes in user mode */
	bool cancelled;		/* it was sent the cancel signal */
	bool ended;		/* to be joined */
};

/* What a thread does. */

/*
 * The server executes this from now on, or nothing. A cancel signal that was
 * sent for what it executed must not hit the next: it is pending by then, and
 * any system call has it delivered.
 */
static void set_bounced(struct server *server, uint32_t index)
{
	bool cancelled;

	lock(&server->kmod->lock);
	server->bounced = index;
	cancelled = server->cancelled;
	server->cancelled = false;
	unlock(&server->kmod->lock);
	if (cancelled)
		raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* The kernel gave the call back: it may be watched here. */
static int64_t bounce(struct server *server, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(server->kmod->loop, index);
	int64_t ret;

	/* flexsc__kmod_threads_cancel() finds it here, or its CANCEL is seen. */
	set_bounced(server, index);
	count_shared(&server->kmod->loop->stats->mode_switches, 1);
	ret = flexsc__cancelpoint(&entry->status, entry->nr, entry->args);
	set_bounced(server, NONE);
	/* For the owner, should the kernel be out of reach now. */
	entry->ret = ret;
	return ret;
}

/* The policy's cores are the only ones: "anywhere" doesn't come up. */
static bool move(int32_t core)
{
	cpu_set_t set;

	if (core < 0 || core >= CPU_SETSIZE)
		return false;
	CPU_ZERO(&set);
	CPU_SET((size_t)core, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

/* It came out of the kernel with that. False: it ends. */
static bool answer(struct server *server, long result,
		   struct flexsc_serve *serve)
{
	serve->flags = 0;
	switch (result) {
	case FLEXSC_SERVE_BOUNCE:
		serve->ret = bounce(server, serve->index);
		return true;
	case FLEXSC_SERVE_MORE:
		if (!flexsc__kmod_thread_create(server->kmod))
			serve->flags = FLEXSC_SERVE_NO_MORE;
		return true;
	case FLEXSC_SERVE_MOVE:
		if (!move(serve->core))
			serve->flags = FLEXSC_SERVE_STAYS;
		return true;
	case FLEXSC_SERVE_IDLE:
	case FLEXSC_SERVE_END:
		return false;
	default:
		return result >= 0;
	}
}

/*
 * A filter forbids to go back. What the thread has in hand the owner gets, who
 * mustn't wait for it or for another such thread.
 */
static COLD void shut_out(struct server *server, uint32_t index)
{
	struct kmod *kmod = server->kmod;

	if (index != NONE) {
		lock(&kmod->lock);
		calls_append(kmod->loop, &kmod->strays, index);
		unlock(&kmod->lock);
	}
	__atomic_store_n(&kmod->no_more, true, __ATOMIC_RELAXED);
	command(kmod, FLEXSC_IOC_WAKE, 0);
}

static void *serve(void *arg)
{
	struct server *server = arg;
	struct kmod *kmod = server->kmod;
	struct flexsc_serve serve = {
		.index = NONE,
		.flags = FLEXSC_SERVE_FIRST,
		.core = -1,
	};
	long result;

	server->tid = (pid_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	flexsc__cancel_unblock(kmod->signo);
	do {
		result = control(kmod, FLEXSC_IOC_SERVE, PTR(&serve));
	} while (answer(server, result, &serve) &&
		 !__atomic_load_n(&kmod->forsaken, __ATOMIC_RELAXED));
	if (result < 0 || serve.index != NONE)
		shut_out(server, serve.index);

	lock(&kmod->lock);
	server->ended = true;
	kmod->count--;
	unlock(&kmod->lock);
	count_shared(&kmod->loop->stats->threads, -1ULL);
	return NULL;
}

/* All of them. */

/* With the lock: join those that have ended, or all. */
static void join_servers(struct kmod *kmod, bool all)
{
	struct server **link = &kmod->servers, *server;

	while ((server = *link)) {
		if (!all && !server->ended) {
			link = &server->next;
			continue;
		}
		*link = server->next;
		pthread_join(server->thread, NULL);
		free(server);
	}
}

/* With the lock. */
static bool start(struct server *server)
{
	struct kmod *kmod = server->kmod;

	if (kmod->ending || kmod->count >= kmod->max ||
	    flexsc__own_thread(&server->thread, serve, server,
			       kmod->pinned ? &kmod->cores : NULL))
		return false;
	server->next = kmod->servers;
	kmod->servers = server;
	kmod->count++;
	count_shared(&kmod->loop->stats->threads, 1);
	return true;
}

bool flexsc__kmod_thread_create(struct kmod *kmod)
{
	struct server *server = calloc(1, sizeof(*server));
	bool started;

	if (!server)
		return false;
	/* It comes under our filters: may it serve? Without a struct nobody does. */
	if (control(kmod, FLEXSC_IOC_SERVE, 0) != -EFAULT) {
		free(server);
		return false;
	}
	server->kmod = kmod;
	server->bounced = NONE;
	lock(&kmod->lock);
	/* Then who ends them joins them, without the lock. */
	if (!kmod->ending)
		join_servers(kmod, false);
	started = start(server);
	unlock(&kmod->lock);
	if (!started)
		free(server);
	return started;
}

void flexsc__kmod_threads_cancel(struct kmod *kmod, uint32_t index)
{
	lock(&kmod->lock);
	for (struct server *server = kmod->servers; server;
	     server = server->next)
		if (server->bounced == index && kmod->signo) {
			server->cancelled = true;
			flexsc__cancel_send(server->tid, kmod->signo);
		}
	unlock(&kmod->lock);
}

/* With the lock: is there one to send a signal to? */
static bool interrupt_all(struct kmod *kmod)
{
	bool any = false;

	for (struct server *server = kmod->servers; server;
	     server = server->next)
		if (!server->ended) {
			flexsc__cancel_send(server->tid, kmod->signo);
			any = true;
		}
	return any;
}

/*
 * A filter forbids to call them home. A signal brings them out of the kernel,
 * if not the first then one of the next: it may come just before they go there.
 */
static COLD void drive_home(struct kmod *kmod)
{
	static const struct timespec brief = { 0, 1000000 };
	bool any;

	__atomic_store_n(&kmod->forsaken, true, __ATOMIC_RELAXED);
	do {
		lock(&kmod->lock);
		any = interrupt_all(kmod);
		unlock(&kmod->lock);
		raw_syscall(SYS_nanosleep, PTR(&brief), 0, 0, 0, 0, 0);
	} while (any && kmod->signo);
}

void flexsc__kmod_threads_end(struct kmod *kmod)
{
	lock(&kmod->lock);
	kmod->ending = true;
	unlock(&kmod->lock);
	if (command(kmod, FLEXSC_IOC_END, 0))
		drive_home(kmod);
	join_servers(kmod, true);
}

void flexsc__kmod_threads_forked(struct kmod *kmod)
{
	for (struct server *server = kmod->servers, *next; server;
	     server = next) {
		next = server->next;
		free(server);
	}
}

/* The pool. */

/* Of the threads there may be, how many it gets. */
static uint32_t pool_share(const struct flexsc_loop *loop)
{
	uint32_t half = loop->options.max_threads / 2;

	return half < POOL_THREADS ? half : POOL_THREADS;
}

uint32_t flexsc__kmod_threads_max(const struct flexsc_loop *loop)
{
	return loop->options.max_threads - pool_share(loop);
}

/* On the owner's thread, unless that would have to wait. */
static int64_t make_here(struct flexsc_loop *loop,
			 const struct flexsc_entry *entry,
			 const struct table_row *row, enum call_class class)
{
	enum nowait what = NOWAIT_RUNS;
	unsigned int switches = 0;
	int64_t ret = -ECANCELED;

	if (class == CLASS_WAIT)
		what = flexsc__nowait(entry, row, &ret, &switches);
	if (what == NOWAIT_RUNS) {
		switches++;
		ret = raw_syscall(entry->nr, entry->args[0], entry->args[1],
				  entry->args[2], entry->args[3],
				  entry->args[4], entry->args[5]);
	} else if (what != NOWAIT_DONE && what != NOWAIT_PART) {
		ret = -ECANCELED;
	}
	count_shared(&loop->stats->mode_switches, switches);
	return ret;
}

bool flexsc__kmod_give_to_pool(struct flexsc_loop *loop, uint32_t index)
{
	struct kmod *kmod = kmod_of(loop);
	struct flexsc_entry *entry = entry_of(loop, index);
	const struct table_row *row = flexsc__table_row(entry->nr);
	enum call_class class = flexsc__refine(row, entry);

	count(&loop->stats->by_kmod, -1ULL);
	if (class == CLASS_FAST ||
	    (!kmod->pool &&
	     flexsc__pool_create(&kmod->pool, loop, pool_share(loop)))) {
		count(&loop->stats->by_inline, 1);
		entry->ret = make_here(loop, entry, row, class);
		return false;
	}
	call_of(loop, index)->route = BY_POOL;
	entry_submit(entry);
	calls_append(loop, &kmod->to_pool, index);
	return true;
}
