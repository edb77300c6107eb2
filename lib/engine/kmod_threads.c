/* SPDX-License-Identifier: MIT */
/*
 * The kmod engine's syscall threads, called servers here. Each server makes one ioctl
 * and stays in the kernel, which executes entries on it. The ioctl returns for one of
 * these reasons:
 *
 *	MORE		no server is idle: this one creates another, so that there
 *			are as many servers as calls that block at the same time
 *	MOVE		the server moves to another core
 *	BOUNCE		a tracer, a filter or the like watches the server's
 *			calls: the server makes one call in user mode, as a plain one
 *	IDLE, END	the server ends; the next server that is created joins it, and
 *			reuses its struct
 *	AGAIN, EINTR	a signal, or other work on the way to user mode: serve again
 *	another error	a filter installed later forbids the ioctl; the server ends
 *
 * The number of servers is limited. An entry that would need one more goes to a pool of
 * the library, which parks calls that wait.
 *
 * The lock protects the list of servers.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "lib/pool/cancelpoint.h"
#include "lib/pool/attempt.h"
#include "lib/pool/own_thread.h"
#include "lib/pool/pool.h"
#include "lib/base/ask.h"
#include "lib/base/cores.h"
#include "lib/calls/call_info.h"
#include "lib/files/closing.h"
#include "kmod.h"
#include "lib/base/compiler.h"

#define POOL_THREADS	16U

struct server {
	struct kmod *kmod;
	struct server *next;
	pthread_t thread;
	struct own_birth birth;
	/* Under the lock: */
	pid_t tid;
	bool late;		/* created as OWN_LATER, and hasn't begun */
	uint32_t bounced;	/* the entry whose call the server makes in user mode */
	bool cancelled;		/* the cancel signal was sent to the server */
	bool ended;		/* must be joined */
};

/* A server. */

/*
 * Record which entry the server executes in user mode from now on; NONE: no entry. If a
 * cancel signal was sent for the previous entry, getpid() makes the kernel deliver it
 * here, so that it can't interrupt the next call.
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

/*
 * Make the call of an entry that bounced, in user mode, where a tracer or filter sees
 * it.
 */
static int64_t server_bounce(struct server *server, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(server->kmod->loop, index);
	int64_t ret;

	/*
	 * A cancellation isn't missed: either flexsc__kmod_threads_cancel() finds
	 * the entry in "bounced", or flexsc__cancelpoint() sees CANCEL.
	 */
	set_bounced(server, index);
	count_shared(&server->kmod->loop->stats->mode_switches, 1);
	ret = flexsc__cancelpoint(&entry->status, entry->nr, entry->args);
	set_bounced(server, NONE);
	/*
	 * Store the result in the entry as well: if a filter keeps this server from
	 * returning to the kernel, the owner takes the result from there.
	 */
	entry->ret = ret;
	return ret;
}

/* Bind this thread to a core, which must be one of the policy's cores. */
static bool server_move(int32_t core)
{
	cpu_set_t set;

	if (core < 0 || core >= CORES_MAX)
		return false;
	CPU_ZERO(&set);
	CPU_SET((size_t)core, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

/* Handle the ioctl's result. False: the server has to end. */
static bool server_answer(struct server *server, long result,
			  struct flexsc_serve *serve)
{
	serve->flags = 0;
	switch (result) {
	case FLEXSC_SERVE_BOUNCE:
		serve->ret = server_bounce(server, serve->index);
		return true;
	case FLEXSC_SERVE_MORE:
		if (!flexsc__kmod_thread_create(server->kmod))
			serve->flags = FLEXSC_SERVE_NO_MORE;
		return true;
	case FLEXSC_SERVE_MOVE:
		if (!server_move(serve->core))
			serve->flags = FLEXSC_SERVE_STAYS;
		return true;
	case -EINTR:
		serve->flags = FLEXSC_SERVE_HANDLED;
		return true;
	case FLEXSC_SERVE_IDLE:
	case FLEXSC_SERVE_END:
		return false;
	default:
		return result >= 0;
	}
}

/*
 * Called by a server if a seccomp filter forbids it to re-enter the kernel: hand its
 * entry to the owner, and wake the owner, which would otherwise wait for this server.
 */
static COLD void server_shut_out(struct server *server, uint32_t index)
{
	struct kmod *kmod = server->kmod;

	if (index != NONE) {
		lock(&kmod->lock);
		calls_append(kmod->loop, &kmod->strays, index);
		unlock(&kmod->lock);
	}
	__atomic_store_n(&kmod->no_more, true, __ATOMIC_RELAXED);
	kmod_end_sleep(kmod);
}

/* With the lock held: a server that was created as OWN_LATER has begun, or can't. */
static void server_born(struct server *server)
{
	struct kmod *kmod = server->kmod;

	if (!server->late)
		return;
	server->late = false;
	atomic_fetch_sub(&kmod->unborn, 1);
	if (kmod->ending)
		futex_wake(&kmod->unborn);
}

/* False: the loop ends or has quit, and a filter may forbid the ioctl. */
static bool server_begin(struct server *server)
{
	struct kmod *kmod = server->kmod;
	bool may;

	lock(&kmod->lock);
	server->tid = (pid_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	may = !kmod->ending;
	server_born(server);
	unlock(&kmod->lock);
	return may;
}

static void server_serve(struct server *server)
{
	struct kmod *kmod = server->kmod;
	struct flexsc_serve serve = {
		.index = NONE,
		.flags = FLEXSC_SERVE_FIRST,
		.core = -1,
	};
	long result;

	flexsc__cancel_unblock(kmod->signo);
	do {
		result = control(kmod, FLEXSC_IOC_SERVE, PTR(&serve));
	} while (server_answer(server, result, &serve) &&
		 !__atomic_load_n(&kmod->forsaken, __ATOMIC_RELAXED));
	if (result < 0 || serve.index != NONE)
		server_shut_out(server, serve.index);
	else if (result == FLEXSC_SERVE_END)
		/*
		 * Publishes what the ioctl has done; pairs with
		 * kmod_take_deserted().
		 */
		__atomic_store_n(&kmod->deserted, true, __ATOMIC_RELEASE);
}

static void *server_run(void *arg)
{
	struct server *server = arg;
	struct kmod *kmod = server->kmod;

	if (server_begin(server))
		server_serve(server);
	lock(&kmod->lock);
	server->ended = true;
	kmod->count--;
	unlock(&kmod->lock);
	count_shared(&kmod->loop->stats->threads, -1ULL);
	return NULL;
}

/* All servers. */

static void join_servers(struct kmod *kmod)
{
	for (struct server *server = kmod->servers, *next; server;
	     server = next) {
		next = server->next;
		flexsc__own_join(server->thread);
		free(server);
	}
	kmod->servers = NULL;
}

/* With the lock held: take "server" off the list; NULL: one that has ended, if any. */
static struct server *server_remove(struct kmod *kmod, struct server *server)
{
	struct server **link = &kmod->servers;

	while (*link && *link != server && (server || !(*link)->ended))
		link = &(*link)->next;
	server = *link;
	if (server)
		*link = server->next;
	return server;
}

/*
 * Called if a server that was to be created later couldn't be: let the owner report
 * this to the module. Once "unborn" is 0 and the lock free, kmod may be gone.
 */
static void server_failed(void *arg)
{
	struct server *server = arg;
	struct kmod *kmod = server->kmod;

	count_shared(&kmod->loop->stats->threads, -1ULL);
	__atomic_store_n(&kmod->no_more, true, __ATOMIC_RELAXED);
	kmod_end_sleep(kmod);
	lock(&kmod->lock);
	server_remove(kmod, server);
	kmod->count--;
	server_born(server);
	unlock(&kmod->lock);
	free(server);
}

/*
 * With the lock held: create the thread, and put the server on the list. Another thread
 * may create it later: in flexsc run, the program's malloc(), which libc calls here, may
 * wait for a thread that this owner has to run. Returns OWN_MADE, OWN_LATER or -errno.
 */
static int server_start(struct kmod *kmod, struct server *server)
{
	const bool joins = server->ended;
	int ret;

	*server = (struct server){
		.kmod = kmod,
		.thread = server->thread,
		.birth = {
			.thread = &server->thread,
			.run = server_run,
			.arg = server,
			.cores = kmod->pinned ? &kmod->cores : NULL,
			.joins = joins,
			.failed = server_failed,
		},
		.bounced = NONE,
	};
	ret = flexsc__own_thread_later(&server->birth);
	if (ret < 0)
		return ret;
	server->late = ret == OWN_LATER;
	if (server->late)
		atomic_fetch_add(&kmod->unborn, 1);
	server->next = kmod->servers;
	kmod->servers = server;
	kmod->count++;
	count_shared(&kmod->loop->stats->threads, 1);
	return ret;
}

bool flexsc__kmod_thread_create(struct kmod *kmod)
{
	struct server *server = NULL;
	int ret = -EAGAIN;

	/* A filter may forbid the ioctl() below by now, and end the process there. */
	if (atomic_load(&kmod->quit))
		return false;
	/*
	 * Check whether a filter forbids the ioctl, because the new thread would
	 * inherit its creator's filters. Without its struct, the ioctl executes
	 * nothing, and fails with EFAULT unless a filter forbids it.
	 */
	if (control(kmod, FLEXSC_IOC_SERVE, 0) != -EFAULT)
		return false;
	lock(&kmod->lock);
	/*
	 * If "ending" is set, don't change the list here: flexsc__kmod_threads_end()
	 * reads it without the lock, to join the servers.
	 */
	if (!kmod->ending && kmod->count < kmod->max) {
		server = server_remove(kmod, NULL);
		if (!server)
			server = calloc(1, sizeof(*server));
		ret = server ? server_start(kmod, server) : -ENOMEM;
	}
	unlock(&kmod->lock);
	if (ret < 0)
		free(server);
	/*
	 * After OWN_LATER, the pool makes the calls until the server begins: the thread
	 * that holds the lock of malloc() may wait for one of them.
	 */
	return ret == OWN_MADE;
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

bool flexsc__kmod_threads_bounce(struct kmod *kmod, uint32_t index)
{
	const struct server *server;

	lock(&kmod->lock);
	for (server = kmod->servers; server; server = server->next)
		if (server->bounced == index)
			break;
	unlock(&kmod->lock);
	return server;
}

/* With the lock held: send each running server a signal. False: none is running. */
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
 * Used if a filter forbids FLEXSC_IOC_END, which would make all servers return: send
 * each server a signal, which interrupts its ioctl. A signal that arrives just before
 * the ioctl has no effect, so repeat until no server is left.
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
	uint32_t unborn;

	lock(&kmod->lock);
	kmod->ending = true;
	unlock(&kmod->lock);
	while ((unborn = atomic_load(&kmod->unborn)))
		futex_wait(&kmod->unborn, unborn, UINT64_MAX);
	/* Wait for the thread that set "unborn" to 0: it may still hold the lock. */
	lock(&kmod->lock);
	unlock(&kmod->lock);
	if (command(kmod, FLEXSC_IOC_END, 0))
		drive_home(kmod);
	join_servers(kmod);
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

/* The part of options.max_threads that is reserved for the pool. */
static uint32_t pool_share(const struct flexsc_loop *loop)
{
	uint32_t half = loop->options.max_threads / 2;

	return half < POOL_THREADS ? half : POOL_THREADS;
}

uint32_t flexsc__kmod_threads_max(const struct flexsc_loop *loop)
{
	return loop->options.max_threads - pool_share(loop);
}

/*
 * Make the call on the owner's thread. If the call would have to wait, it isn't made:
 * return the error of creating a syscall thread.
 */
static int64_t execute_here(struct flexsc_loop *loop,
			    const struct flexsc_entry *entry,
			    const struct call_info *row, enum call_class class)
{
	enum attempt what = ATTEMPT_RUNS;
	int64_t ret = loop->no_thread;

	if (class == CLASS_WAIT)
		what = flexsc__attempt(entry, row, false, &ret);
	if (what == ATTEMPT_RUNS) {
		ret = ask(entry->nr, entry->args[0], entry->args[1],
			  entry->args[2], entry->args[3],
			  entry->args[4], entry->args[5]);
	} else if (what != ATTEMPT_DONE && what != ATTEMPT_PART) {
		ret = loop->no_thread;
	}
	count_shared(&loop->stats->mode_switches, asks_take());
	return ret;
}

void flexsc__kmod_begin_pool(struct flexsc_loop *loop)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur == RLIM_INFINITY)
		flexsc__pool_create(loop, pool_share(loop));
}

bool flexsc__kmod_to_pool(struct flexsc_loop *loop, uint32_t index)
{
	struct kmod *kmod = kmod_of(loop);
	struct call *call = call_of(loop, index);

	if (!loop_pool(loop) && flexsc__pool_create(loop, pool_share(loop)))
		return false;
	if (call->route == BY_KERNEL_CLOSING)
		flexsc__closing_end(entry_of(loop, index), -ECANCELED);
	flexsc__kmod_by_pool(loop, index);
	calls_append(loop, &kmod->to_pool, index);
	return true;
}

bool flexsc__kmod_give_to_pool(struct flexsc_loop *loop, uint32_t index)
{
	struct flexsc_entry *entry = entry_of(loop, index);
	const struct call_info *row = flexsc__call_info(entry->nr);
	enum call_class class = flexsc__call_class(row, entry);

	count(&loop->stats->by_kmod, -1ULL);
	if (class == CLASS_FAST || !flexsc__kmod_to_pool(loop, index)) {
		count(&loop->stats->by_inline, 1);
		entry->ret = execute_here(loop, entry, row, class);
		return false;
	}
	entry_submit_again(entry);
	return true;
}
