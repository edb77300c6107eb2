/* SPDX-License-Identifier: MIT */
/*
 * Creates and destroys event control blocks, and handles fork(): a forked child has
 * none. A thread has at most one, so that the handler of SIGURG finds it.
 */
#include <errno.h>
#include <flexsc/ecb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "events/backend/backends.h"
#include "events/backend/notifier.h"
#include "events/event/backend.h"
#include "events/event/critical.h"
#include "events/event/memory.h"
#include "events/event/stack.h"
#include "lib/base/options.h"
#include "lib/files/private_fd.h"
#include "owner.h"

#define EVENTS	4096U
#define FLAGS_KNOWN	(FLEXSC_ECB_INTERRUPTS_CALLS | FLEXSC_ECB_TIMES | \
			 FLEXSC_ECB_BATCHED | FLEXSC_ECB_INTEGER_ONLY)

/* flexsc_ecb_create() tries them in this order. */
static const struct backend *const backends[] = {
	&flexsc__backend_kmod,
	&flexsc__backend_uring,
};

#define BACKENDS	(sizeof(backends) / sizeof(backends[0]))

_Thread_local struct flexsc_ecb *flexsc__ecb_self;

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct flexsc_ecb *all;

/* fork(): a forked child's copies of ECBs belong to the parent's threads. */

/*
 * Before a fork: collect completions, so that each accepted connection has a slot. The
 * child uses the slots to find its copies of the connections, and closes them. Don't
 * collect inside a critical section: it may be one of the library's own, which has
 * updated only half of the state.
 */
static void ecb_fork_collect(struct flexsc_ecb *ecb)
{
	if (!ecb || !ecb->backend->collect || ecb->control->critical)
		return;
	critical_enter(ecb);
	ecb->backend->collect(ecb);
	flexsc__critical_leave(ecb);
}

static void ecb_fork_begin(void)
{
	ecb_fork_collect(flexsc__ecb_self);
	pthread_mutex_lock(&all_lock);
	flexsc__notifier_lock();
}

static void ecb_fork_parent(void)
{
	flexsc__notifier_unlock();
	pthread_mutex_unlock(&all_lock);
}

/*
 * The child's copies of userfaultfds and of the pagemap belong to the parent's memory.
 * An open copy would keep the parent's threads waiting after the parent has ended.
 */
static void ecb_fork_memories(struct flexsc_ecb *ecb)
{
	for (struct memory *one = ecb->memories; one; one = one->next)
		close(one->fd);
	if (ecb->pagemap)
		flexsc__private_fd_close(ecb->pagemap);
	ecb->pagemap = 0;
}

static void ecb_fork_child(void)
{
	for (struct flexsc_ecb *ecb = all; ecb; ecb = ecb->next) {
		ecb->stale = true;
		ecb_fork_memories(ecb);
		ecb->backend->forked(ecb);
		if (ecb->over)
			ecb->over();
	}
	all = NULL;
	if (flexsc__ecb_self && flexsc__ecb_self->masked)
		flexsc__notifier_unmask(flexsc__ecb_self);
	flexsc__ecb_self = NULL;
	flexsc__notifier_forked();
	pthread_mutex_unlock(&all_lock);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_err;

static void ecb_fork_prepare(void)
{
	once_err = -pthread_atfork(ecb_fork_begin, ecb_fork_parent,
				   ecb_fork_child);
}

static void ecb_add(struct flexsc_ecb *ecb)
{
	pthread_mutex_lock(&all_lock);
	ecb->next = all;
	if (all)
		all->prev = ecb;
	all = ecb;
	pthread_mutex_unlock(&all_lock);
}

static void ecb_remove(struct flexsc_ecb *ecb)
{
	pthread_mutex_lock(&all_lock);
	if (ecb->prev)
		ecb->prev->next = ecb->next;
	else
		all = ecb->next;
	if (ecb->next)
		ecb->next->prev = ecb->prev;
	pthread_mutex_unlock(&all_lock);
}

/* Making. */

static int ecb_take_options(struct flexsc_ecb *ecb,
			    const struct flexsc_ecb_options *options,
			    const char **backend)
{
	struct flexsc_ecb_options own = { 0 };
	int err = options_copy(&own, sizeof(own), options,
			       offsetof(struct flexsc_ecb_options, events));

	if (err)
		return err;
	*backend = own.backend;
	ecb->events = own.events ? own.events : EVENTS;
	ecb->flags = own.flags;
	ecb->stack = own.stack;
	ecb->stack_size = own.stack_size;
	if (ecb->events > FLEXSC_ECB_EVENTS_MAX || ecb->flags & ~FLAGS_KNOWN)
		return -EINVAL;
	if (own.stack ? own.stack_size < FLEXSC_ECB_STACK_MIN : own.stack_size)
		return -EINVAL;
	return 0;
}

/* Open the backend with that name; without a name, the first that works. */
static int ecb_open(struct flexsc_ecb *ecb, const char *name)
{
	int err = name ? -EINVAL : -EOPNOTSUPP;

	for (size_t i = 0; i < BACKENDS; i++) {
		if (name && strcmp(backends[i]->name, name) != 0)
			continue;
		ecb->backend = backends[i];
		err = backends[i]->open(ecb);
		if (!err || name)
			break;
	}
	return err;
}

static int ecb_open_chosen(struct flexsc_ecb *ecb, const char *name)
{
	if (!name)
		name = secure_getenv("FLEXSC_ECB");
	return ecb_open(ecb, name && *name ? name : NULL);
}

static int ecb_make(struct flexsc_ecb *ecb,
		    const struct flexsc_ecb_options *options)
{
	const char *backend = NULL;
	int err = options ? ecb_take_options(ecb, options, &backend) : 0;

	if (err)
		return err;
	ecb->sources = calloc(ecb->events, sizeof(*ecb->sources));
	if (!ecb->sources)
		return -ENOMEM;
	err = flexsc__notifier_get(ecb->stack_size);
	if (err)
		return err;
	err = flexsc__stack_begin(ecb);
	if (!err) {
		err = ecb_open_chosen(ecb, backend);
		if (err)
			flexsc__stack_end(ecb);
	}
	if (err)
		flexsc__notifier_put();
	return err;
}

static struct flexsc_ecb *ecb_new(void)
{
	struct flexsc_ecb *ecb = calloc(1, sizeof(*ecb));

	if (!ecb)
		return NULL;
	ecb->events = EVENTS;
	ecb->tid = (int32_t)syscall(SYS_gettid);
	return ecb;
}

static void ecb_free(struct flexsc_ecb *ecb)
{
	while (ecb->memories)
		flexsc__memory_drop(ecb, ecb->memories);
	if (ecb->pagemap)
		flexsc__private_fd_close(ecb->pagemap);
	free(ecb->sources);
	free(ecb);
}

int flexsc_ecb_create(struct flexsc_ecb **made,
		      const struct flexsc_ecb_options *options)
{
	struct flexsc_ecb *ecb;
	int err;

	if (!made)
		return -EINVAL;
	if (flexsc__ecb_self)
		return -EBUSY;
	pthread_once(&once, ecb_fork_prepare);
	if (once_err)
		return once_err;
	ecb = ecb_new();
	if (!ecb)
		return -ENOMEM;
	err = ecb_make(ecb, options);
	if (err) {
		ecb_free(ecb);
		return err;
	}
	ecb_add(ecb);
	flexsc__ecb_self = ecb;
	/*
	 * Unblock SIGURG: a thread inherits its creator's signal mask, and the
	 * creator may have blocked SIGURG in a critical section.
	 */
	if (!(ecb->flags & FLEXSC_ECB_BATCHED))
		flexsc__notifier_unmask(ecb);
	*made = ecb;
	return 0;
}

/* Close the library's own descriptors among the sources. */
static void ecb_close_own(const struct flexsc_ecb *ecb)
{
	for (uint32_t i = 0; ecb->owns && i < ecb->events; i++)
		if (ecb->sources[i].flags & SOURCE_OWN)
			close(ecb->slots[i].fd);
}

int flexsc_ecb_destroy(struct flexsc_ecb *ecb)
{
	int err = flexsc__ecb_check(ecb);

	if (ecb && ecb->handling && err != -EPERM)
		return -EBUSY;
	if (err == -ESTALE) {
		ecb->backend->discard(ecb);
		flexsc__stack_end(ecb);
		ecb_free(ecb);
		return 0;
	}
	if (err)
		return ecb ? err : 0;
	/* From here on the handler isn't called, and SIGURG doesn't reach the ECB. */
	critical_enter(ecb);
	flexsc__notifier_mask(ecb);
	ecb_remove(ecb);
	if (ecb->over)
		ecb->over();
	for (struct memory *one = ecb->memories; one; one = one->next)
		flexsc__memory_end(one);
	ecb_close_own(ecb);
	ecb->backend->close(ecb);
	flexsc__ecb_self = NULL;
	flexsc__notifier_put();
	if (ecb->masked)
		flexsc__notifier_unmask(ecb);
	flexsc__stack_end(ecb);
	ecb_free(ecb);
	return 0;
}

/* Queries. */

const char *flexsc_ecb_backend(const struct flexsc_ecb *ecb)
{
	return ecb ? ecb->backend->name : NULL;
}

int flexsc_ecb_handler(struct flexsc_ecb *ecb,
		       void (*handler)(struct flexsc_ecb *ecb, void *arg),
		       void *arg)
{
	int err = flexsc__ecb_check(ecb);

	if (err)
		return err;
	if (ecb->control->notify)
		return -EBUSY;
	ecb->handler = handler;
	ecb->arg = arg;
	return 0;
}

int flexsc_ecb_probe(const char *backend, char *why, size_t size)
{
	struct flexsc_ecb *ecb = ecb_new();
	int err;

	if (!ecb)
		return -ENOMEM;
	err = backend ? ecb_open(ecb, backend) : -EINVAL;
	if (why && size)
		snprintf(why, size, "%s", ecb->why);
	if (!err) {
		ecb->control->critical = 1;
		ecb->backend->close(ecb);
	}
	ecb_free(ecb);
	return err;
}
