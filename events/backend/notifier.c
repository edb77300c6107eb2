/* SPDX-License-Identifier: MIT */
#include "notifier.h"

#include <errno.h>
#include <fcntl.h>
#include <flexsc/ecb.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "lib/base/syscall.h"
#include "events/event/backend.h"
#include "events/event/critical.h"

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;
static struct sigaction before;	/* the program's action; constant while users > 0 */

/*
 * This thread has no ECB, so SIGURG belongs to the program: pass it to the program's
 * action.
 */
static void notifier_pass_on(int signo, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(signo, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(signo);
}

/*
 * SIGURG has arrived in a critical section: block SIGURG until the section
 * ends. With the module that isn't needed: the module puts events on their
 * lists before it sends SIGURG, and the end of the section checks the lists.
 */
static void notifier_postpone(struct flexsc_ecb *ecb, ucontext_t *context)
{
	if (!ecb->backend->hush)
		return;
	ecb->masked = true;
	ecb->backend->hush(ecb);
	sigaddset(&context->uc_sigmask, SIGURG);
}

static void notifier_notified(struct flexsc_ecb *ecb, ucontext_t *context)
{
	ecb->signals++;
	if (ecb->control->critical ||
	    !__atomic_load_n(&ecb->control->notify, __ATOMIC_RELAXED)) {
		notifier_postpone(ecb, context);
		return;
	}
	critical_enter(ecb);
	if (ecb->backend->collect)
		ecb->backend->collect(ecb);
	flexsc__critical_leave(ecb);
}

static void notifier_handler(int signo, siginfo_t *info, void *context)
{
	struct flexsc_ecb *ecb = flexsc__ecb_self;
	int err = errno;

	if (!ecb || ecb->stale)
		notifier_pass_on(signo, info, context);
	else
		notifier_notified(ecb, context);
	errno = err;
}

static bool notifier_is(const struct sigaction *action)
{
	return action->sa_sigaction == notifier_handler;
}

/*
 * Install the handler for the first ECB. Install it again, with SA_ONSTACK, for the
 * first one with a stack, unless the program has set another handler in between.
 */
static int notifier_install(bool stack)
{
	struct sigaction now, action = {
		.sa_sigaction = notifier_handler,
		.sa_flags = SA_SIGINFO | SA_RESTART | (stack ? SA_ONSTACK : 0),
	};

	if (users && !stack)
		return 0;
	if (sigaction(SIGURG, NULL, &now))
		return -errno;
	if (users && (!notifier_is(&now) || now.sa_flags & SA_ONSTACK))
		return 0;
	return sigaction(SIGURG, &action, users ? NULL : &before) ? -errno : 0;
}

int flexsc__notifier_get(bool stack)
{
	int err;

	pthread_mutex_lock(&users_lock);
	err = notifier_install(stack);
	if (!err)
		users++;
	pthread_mutex_unlock(&users_lock);
	return err;
}

/* Restore the program's handler, unless the program has set another one in between. */
static void notifier_restore(void)
{
	struct sigaction now;

	if (!sigaction(SIGURG, NULL, &now) && notifier_is(&now))
		sigaction(SIGURG, &before, NULL);
}

void flexsc__notifier_put(void)
{
	pthread_mutex_lock(&users_lock);
	if (!--users)
		notifier_restore();
	pthread_mutex_unlock(&users_lock);
}

void flexsc__notifier_lock(void)
{
	pthread_mutex_lock(&users_lock);
}

void flexsc__notifier_unlock(void)
{
	pthread_mutex_unlock(&users_lock);
}

void flexsc__notifier_forked(void)
{
	if (users)
		notifier_restore();
	users = 0;
	pthread_mutex_unlock(&users_lock);
}

void flexsc__notifier_mask(struct flexsc_ecb *ecb)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	ecb->masked |= !sigismember(&old, SIGURG);
}

void flexsc__notifier_unmask(struct flexsc_ecb *ecb)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	ecb->masked = false;
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void flexsc__notifier_send(const struct flexsc_ecb *ecb)
{
	raw_syscall(SYS_tgkill, (uint32_t)getpid(), (uint32_t)ecb->tid, SIGURG,
		    0, 0, 0);
}

int flexsc__notifier_arm(const struct flexsc_ecb *ecb, int fd)
{
	const struct f_owner_ex owner = {
		.type = F_OWNER_TID,
		.pid = ecb->tid,
	};

	if (fcntl(fd, F_SETOWN_EX, &owner) || fcntl(fd, F_SETSIG, SIGURG) ||
	    fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK))
		return -errno;
	return 0;
}
