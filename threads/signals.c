/* SPDX-License-Identifier: MIT */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "carrier.h"
#include "home.h"
#include "runtime.h"
#include "wait.h"

#define SIGNALS	64

/* The kernel's struct sigaction. */
struct action {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	sigmask_t mask;
};

/* The program's, where the kernel has ours. */
static struct action actions[SIGNALS + 1];
static bool ours[SIGNALS + 1];
static struct lock actions_lock;
/* What marks a SIGSETXID as the runtime's. */
static char mark;

static long kernel_action(int signo, const struct action *new,
			  struct action *old)
{
	return raw_syscall(SYS_rt_sigaction, (uint64_t)signo, PTR(new),
			   PTR(old), sizeof(sigmask_t), 0, 0);
}

/* Running the program's handler. */

static void reset(int signo)
{
	const struct action normal = { .handler = (uintptr_t)SIG_DFL };

	lock(&actions_lock);
	ours[signo] = false;
	kernel_action(signo, &normal, NULL);
	unlock(&actions_lock);
}

/* With the signals blocked that the program wants to be. */
static void run_handler(int signo, siginfo_t *info, ucontext_t *context)
{
	struct action action = actions[signo];
	sigmask_t mask;

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	mask |= action.mask;
	if (!(action.flags & SA_NODEFER))
		mask |= 1ULL << (signo - 1);
	if (action.flags & SA_RESETHAND)
		reset(signo);
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(&mask), 0,
		    sizeof(mask), 0, 0);
	if (action.flags & SA_SIGINFO)
		((void (*)(int, siginfo_t *, void *))action.handler)(
			signo, info, context);
	else
		((void (*)(int))action.handler)(signo);
}

static void handle(struct uthread *u, int signo, siginfo_t *info,
		   ucontext_t *context)
{
	bool restarts = actions[signo].flags & SA_RESTART;
	bool stays = u->stays, busy = u->busy, site = u->site;
	uint8_t handled = restarts ? HANDLED_RESTART : HANDLED_INTERRUPT;

	/* The kernel's frame belongs to this kernel thread. */
	u->stays = true;
	u->busy = false;
	u->site = false;
	run_handler(signo, info, context);
	u->stays = stays;
	u->busy = busy;
	u->site = site;
	if (u->handled < handled)
		u->handled = handled;
}

/* Arriving. */

/* To this kernel thread again, when it can take it. */
static void postpone(struct uthread *u, int signo, siginfo_t *info,
		     ucontext_t *context)
{
	sigmask_t all = ~(1ULL << (SIGNAL_SETXID - 1));

	raw_syscall(SYS_rt_tgsigqueueinfo, (uint64_t)getpid(),
		    (uint64_t)u->home.k.tid, (uint64_t)signo, PTR(info), 0, 0);
	if (!u->home.masked) {
		memcpy(&u->home.mask, &context->uc_sigmask, sizeof(all));
		u->home.masked = true;
	}
	memcpy(&context->uc_sigmask, &all, sizeof(all));
	flexsc__want(u);
}

static struct uthread *user_of(struct kthread *k)
{
	return (struct uthread *)((char *)k - offsetof(struct uthread,
						       home.k));
}

/* libc's handler changes what is its own by way of the TLS. */
static void setxid(const struct kthread *k, int signo, siginfo_t *info,
		   ucontext_t *context)
{
	uint64_t fs = context_fs();

	context_set_fs(k->fs);
	run_handler(signo, info, context);
	context_set_fs(fs);
}

/* The user thread that was interrupted goes on at home. */
static void move_home(struct kthread *k, ucontext_t *context)
{
	struct uthread *u = k->current;
	sigmask_t mask;

	/* Where it is suspended or about to be, it is busy. */
	if (!u || u->busy ||
	    (!atomic_exchange(&k->carrier->preempt, false) &&
	     !atomic_load(&u->wanted)))
		return;
	flexsc__enter(u);
	mask = u->home.mask;
	/* The carrier's handler ends here. */
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(&context->uc_sigmask),
		    0, sizeof(sigmask_t), 0, 0);
	flexsc__come_home(u);
	flexsc__exit(u);
	/* What the frame says is the carrier's. */
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	raw_syscall(SYS_sigaltstack, 0, PTR(&context->uc_stack), 0, 0, 0, 0);
}

static void to_somebody(int signo, siginfo_t *info)
{
	int32_t tid = flexsc__runtime_somebody();

	raw_syscall(SYS_rt_tgsigqueueinfo, (uint64_t)getpid(), (uint64_t)tid,
		    (uint64_t)signo, PTR(info), 0, 0);
}

static void on_carrier(struct kthread *k, int signo, siginfo_t *info,
		       ucontext_t *context)
{
	if (signo != SIGNAL_SETXID && info->si_code > 0)
		run_handler(signo, info, context);
	else if (signo != SIGNAL_SETXID)
		to_somebody(signo, info);
	else if (info->si_code == SI_QUEUE && info->si_ptr == &mark)
		move_home(k, context);
	else
		setxid(k, signo, info, context);
}

static void at_a_home(struct kthread *k, int signo, siginfo_t *info,
		      ucontext_t *context)
{
	struct uthread *u = user_of(k);

	if (signo == SIGNAL_SETXID) {
		if (info->si_code != SI_QUEUE || info->si_ptr != &mark)
			run_handler(signo, info, context);
	} else if (u->home.away || u->busy) {
		postpone(u, signo, info, context);
	} else {
		handle(u, signo, info, context);
	}
}

static void arrive(int signo, siginfo_t *info, void *frame)
{
	struct kthread *k = kthread_known();
	ucontext_t *context = frame;

	if (!k)
		run_handler(signo, info, context);
	else if (k->carrier)
		on_carrier(k, signo, info, context);
	else
		at_a_home(k, signo, info, context);
}

void flexsc__signal_carrier(const struct carrier *c)
{
	siginfo_t info = { .si_signo = SIGNAL_SETXID, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_ptr = &mark;
	raw_syscall(SYS_rt_tgsigqueueinfo, (uint64_t)info.si_pid,
		    (uint64_t)c->k.tid, SIGNAL_SETXID, PTR(&info), 0, 0);
}

/* Actions. */

static bool is_function(uint64_t handler)
{
	return handler != (uintptr_t)SIG_DFL && handler != (uintptr_t)SIG_IGN;
}

/* Ours, with everything that the kernel does for the program's. */
static struct action instead_of(const struct action *action)
{
	struct action own = *action;

	own.handler = (uintptr_t)arrive;
	/* It is the program's handler that runs once, not ours. */
	own.flags = (own.flags | SA_SIGINFO) & ~(uint64_t)SA_RESETHAND;
	/* Until it is known where this one belongs, no other. */
	own.mask = ~0ULL;
	return own;
}

static long replace(int signo, const struct action *new)
{
	struct action own;
	long err;

	if (!is_function(new->handler)) {
		err = kernel_action(signo, new, NULL);
		if (!err)
			ours[signo] = false;
		return err;
	}
	own = instead_of(new);
	actions[signo] = *new;
	err = kernel_action(signo, &own, NULL);
	if (!err)
		ours[signo] = true;
	return err;
}

long flexsc__signal_action(const uint64_t args[6])
{
	const struct action *new = (void *)(uintptr_t)args[1];
	struct action *old = (void *)(uintptr_t)args[2];
	int signo = (int)args[0];
	struct action was, next;
	long err;

	if (signo < 1 || signo > SIGNALS || args[3] != sizeof(sigmask_t))
		return raw_syscall(SYS_rt_sigaction, args[0], args[1], args[2],
				   args[3], 0, 0);
	if (new)
		next = *new;
	lock(&actions_lock);
	err = kernel_action(signo, NULL, &was);
	if (!err && ours[signo])
		was = actions[signo];
	if (!err && new)
		err = replace(signo, &next);
	unlock(&actions_lock);
	if (!err && old)
		*old = was;
	return err;
}

void flexsc__signal_init(void)
{
	lock(&actions_lock);
	for (int signo = 1; signo <= SIGNALS; signo++) {
		struct action was;

		if (!ours[signo] && !kernel_action(signo, NULL, &was) &&
		    is_function(was.handler))
			replace(signo, &was);
	}
	unlock(&actions_lock);
}
