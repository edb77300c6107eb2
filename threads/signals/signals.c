/* SPDX-License-Identifier: MIT */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "../calls/call.h"
#include "../run/carrier.h"
#include "../report/counters.h"
#include "../run/home.h"
#include "../run/park.h"
#include "../base/peek.h"
#include "../runtime.h"
#include "../run/wait.h"

#define SIGNALS	64

/* The kernel's alone to know, for libc. */
#ifndef SA_RESTORER
#define SA_RESTORER	0x04000000
#endif

/* What libc never lets the program block. */
#define LIBC_S		(SIGNAL_BIT(SIGNAL_CANCEL) | \
			 SIGNAL_BIT(SIGNAL_SETXID))

/* The program's, where the kernel has ours. */
static struct action actions[SIGNALS + 1];
static bool ours[SIGNALS + 1];
static struct lock actions_lock;
/* Where handlers return to: libc's, which it gives with every action. */
static uint64_t restorer;
/* Whose: a child that shares this memory has handlers of its own. */
static long owner;
/* What marks a SIGSETXID as the runtime's; and as flexsc__signal_stuck()'s. */
static char mark, mark_stuck;

static long replace(int signo, const struct action *new);

static bool is_function(uint64_t handler)
{
	return handler != (uintptr_t)SIG_DFL && handler != (uintptr_t)SIG_IGN;
}

static long kernel_action(int signo, const struct action *new,
			  struct action *old)
{
	return raw_syscall(SYS_rt_sigaction, (uint64_t)signo, PTR(new),
			   PTR(old), sizeof(sigmask_t), 0, 0);
}

/* What needn't be given. */
static bool is_there(const void *given, size_t bytes)
{
	return !given || peek_can_read(PTR(given), bytes);
}

/* Not libc's, which may arrive in the runtime: a handler can be anywhere. */
static long process(void)
{
	return raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static bool is_owner(void)
{
	return process() == owner;
}

static bool is_default(int signo)
{
	return actions[signo].handler == (uintptr_t)SIG_DFL;
}

static bool is_fault(int signo, const siginfo_t *info)
{
	return info->si_code > 0 && SIGNAL_FAULTS & SIGNAL_BIT(signo);
}

/* Of the instruction. */
#define SYSCALL_BYTES	2
#define MOV_BYTES	5	/* of a number to eax */

/* Running the program's handler. */

static const struct action normal = { .handler = (uintptr_t)SIG_DFL };

/*
 * The program has no handler. It ends as by the signal itself: what is past its
 * instruction, and what was sent, is sent once more.
 */
static void end_process(int signo, siginfo_t *info, ucontext_t *context)
{
	sigmask_t mask;

	kernel_action(signo, &normal, NULL);
	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	mask &= ~SIGNAL_BIT(signo);
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	if (!is_fault(signo, info) || signo == SIGTRAP || signo == SIGSYS)
		raw_syscall(SYS_rt_tgsigqueueinfo, (uint64_t)process(),
			    (uint64_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0),
			    (uint64_t)signo, PTR(info), 0, 0);
}

static void reset(int signo)
{
	lock(&actions_lock);
	if (is_owner())
		replace(signo, &normal);
	else
		kernel_action(signo, &normal, NULL);
	unlock(&actions_lock);
}

/* With the signals blocked that the program wants to be. */
static void run_handler(int signo, siginfo_t *info, ucontext_t *context)
{
	struct action action = actions[signo];
	sigmask_t mask;

	/* Others may have taken it away just now. */
	if (!is_function(action.handler)) {
		end_process(signo, info, context);
		return;
	}
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

/* The order of those that queue: signals.h. */

/* Where no kind of them that can be sent again has anything. */
#define TOKEN_AT	40

static void make_token(siginfo_t *info)
{
	const char *is = &mark;

	memcpy((char *)info + TOKEN_AT, &is, sizeof(is));
}

static bool is_token(const siginfo_t *info)
{
	const char *is;

	memcpy(&is, (const char *)info + TOKEN_AT, sizeof(is));
	return is == &mark;
}

/* It is about to be sent again. */
static void keep_first(struct uthread *u, int signo, siginfo_t *info)
{
	if (signo <= SIGNAL_SETXID || u->home.first.si_signo || is_token(info))
		return;
	u->home.first = *info;
	make_token(info);
}

/* It is about to be handled: give the one before, if there is one. */
static void give_first(struct uthread *u, int signo, siginfo_t *info)
{
	siginfo_t *first = &u->home.first, came = *info;

	if (first->si_signo != signo)
		return;
	*info = *first;
	*first = came;
	if (is_token(&came))
		first->si_signo = 0;
}

/* Nobody gives it in its turn to who takes it by sigwaitinfo(). */
void flexsc__signal_unmask(struct uthread *u, sigmask_t mask)
{
	int signo = u->home.first.si_signo;

	if (signo && mask & SIGNAL_BIT(signo))
		u->home.first.si_signo = 0;
}

/* Arriving. */

static void handle(struct uthread *u, int signo, siginfo_t *info,
		   ucontext_t *context)
{
	bool restarts = actions[signo].flags & SA_RESTART;
	bool busy = u->busy, site = u->site, point = u->point;
	uint8_t handled = restarts ? HANDLED_RESTART : HANDLED_INTERRUPT;
	uint8_t before = u->handled;
	uintptr_t low = (uintptr_t)context->uc_stack.ss_sp;
	struct stay stay;

	/* The kernel's frame belongs to this kernel thread. */
	flexsc__stay_left(u, (uintptr_t)context->uc_mcontext.gregs[REG_RSP]);
	stay = flexsc__stay_begin(u, low, low + context->uc_stack.ss_size);
	give_first(u, signo, info);
	if (signo == SIGTRAP && is_fault(signo, info) && u->home.trap)
		context->uc_mcontext.gregs[REG_TRAPNO] = u->home.trap;
	u->home.trap = 0;
	/* As it is for the program, also if the handler never returns. */
	u->busy = false;
	u->site = false;
	u->point = false;
	run_handler(signo, info, context);
	flexsc__enter(u);
	flexsc__come_home(u);
	flexsc__exit(u);
	flexsc__stay_end(u, stay);
	u->busy = busy;
	u->site = site;
	u->point = point;
	/* Its own calls are none of those that it interrupts. */
	u->handled = before > handled ? before : handled;
}

/* To this kernel thread again, when it can take it. */
static void postpone(struct uthread *u, int signo, siginfo_t *info,
		     ucontext_t *context)
{
	sigmask_t all = ~(1ULL << (SIGNAL_SETXID - 1));

	keep_first(u, signo, info);
	raw_syscall(SYS_rt_tgsigqueueinfo, (uint64_t)process(),
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

static bool is_marked(const siginfo_t *info)
{
	return (info->si_code == SI_QUEUE || info->si_code == SI_TIMER) &&
	       (info->si_ptr == &mark || info->si_ptr == &mark_stuck);
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

void flexsc__signal_stack(struct carrier *c)
{
	stack_t stack = { .ss_flags = SS_DISABLE };

	c->stack = flexsc__park_get();
	if (c->stack)
		stack = (stack_t){ c->stack, 0, PARK_BYTES };
	raw_syscall(SYS_sigaltstack, PTR(&stack), 0, 0, 0, 0, 0);
}

/*
 * The signal's frame is on the carrier's stack for those: it goes along. No
 * other signal may come before the carrier has another: its frame would be where
 * this one is.
 */
static void go_home(struct kthread *k, struct uthread *u)
{
	struct carrier *c = k->carrier;
	char *stack = c->stack;

	if (stack && (char *)u->sp >= stack &&
	    (char *)u->sp < stack + PARK_BYTES) {
		u->home.lent = stack;
		flexsc__signal_stack(c);
	}
	/* The carrier's handler ends here. */
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, PTR(&c->open), 0,
		    sizeof(c->open), 0, 0);
	counters_coupling(u->cause);
	flexsc__send_home(u);
}

/* Is it the call that the monitor has found? */
static bool is_noted(const struct stuck *stuck, const greg_t *regs)
{
	const uint64_t *args = stuck->args;

	return stuck->nr >= 0 && (uint64_t)regs[REG_RIP] == stuck->pc &&
	       (uint64_t)regs[REG_RSP] == stuck->sp &&
	       (uint64_t)regs[REG_RDI] == args[0] &&
	       (uint64_t)regs[REG_RSI] == args[1] &&
	       (uint64_t)regs[REG_RDX] == args[2];
}

/*
 * One that began after that: its number, if it is set just before the call, as
 * in most places of libc; else -1.
 */
static long number_at(uint64_t pc)
{
	const uint8_t *code = (const uint8_t *)pc - MOV_BYTES - SYSCALL_BYTES;
	int32_t nr;

	/* The page before may be anything. */
	if ((pc & 4095) < MOV_BYTES + SYSCALL_BYTES ||
	    code[0] != 0xb8 || code[MOV_BYTES] != 0x0f ||
	    code[MOV_BYTES + 1] != 0x05)
		return -1;
	memcpy(&nr, code + 1, sizeof(nr));
	return nr;
}

/*
 * The signal that calls u home has interrupted a call that the kernel doesn't
 * begin again after a handler. The program has sent none: so we do. (A time
 * limit begins anew, too. One that closes has done so.)
 */
static void begin_again(const struct stuck *stuck, ucontext_t *context)
{
	greg_t *regs = context->uc_mcontext.gregs;
	long nr;

	if (regs[REG_RAX] != -EINTR)
		return;
	nr = is_noted(stuck, regs) ? stuck->nr :
				     number_at((uint64_t)regs[REG_RIP]);
	if (nr < 0 || nr == SYS_close)
		return;
	regs[REG_RAX] = nr;
	regs[REG_RIP] -= SYSCALL_BYTES;
}

/* The user thread that was interrupted goes on at home. */
static void move_home(struct kthread *k, struct uthread *u,
		      ucontext_t *context, const struct stuck *stuck)
{
	sigmask_t mask;

	flexsc__enter(u);
	memcpy(&k->carrier->open, &context->uc_sigmask, sizeof(mask));
	flexsc__suspend(u, go_home);
	if (stuck && u->cause == CAUSE_KEPT && !atomic_load(&u->wanted))
		begin_again(stuck, context);
	mask = flexsc__settle_in_frame(u);
	/* What the frame says is the carrier's. */
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	raw_syscall(SYS_sigaltstack, 0, PTR(&context->uc_stack), 0, 0, 0, 0);
}

static struct stuck noted_call(struct carrier *c, const siginfo_t *info)
{
	struct stuck stuck = { .nr = -1 };

	if (info->si_ptr != &mark_stuck)
		return stuck;
	stuck = c->stuck;
	/* T2: the monitor may write there again; pairs with T1. */
	atomic_store(&c->called, false);
	return stuck;
}

static void called_home(struct kthread *k, const siginfo_t *info,
			ucontext_t *context)
{
	struct uthread *u = k->current;
	struct carrier *c = k->carrier;
	const struct stuck stuck = noted_call(c, info);

	/* Where it is suspended or about to be, it is busy. */
	if (!u || u->busy)
		return;
	if (atomic_load(&u->wanted))
		u->cause = CAUSE_SIGNAL;
	else if (atomic_load(&c->preempt) == c->k.counters->switches)
		u->cause = CAUSE_KEPT;
	else
		return;
	move_home(k, u, context, &stuck);
}

/*
 * A fault of the program's. At home it happens once more, and all is as it is
 * natively: mask, signal stack, what a jump leaves. Two kinds don't happen
 * again, for they are past the instruction: those are sent there. So is what
 * abort() raises, if libc calls it: only that lets it through on a carrier.
 */
static void fault(struct kthread *k, int signo, siginfo_t *info,
		  ucontext_t *context)
{
	struct uthread *u = k->current;

	if (!u || u->busy) {
		run_handler(signo, info, context);
		return;
	}
	u->home.trap = context->uc_mcontext.gregs[REG_TRAPNO];
	u->cause = CAUSE_FAULT;
	move_home(k, u, context, NULL);
	if (signo == SIGTRAP || signo == SIGSYS || signo == SIGABRT)
		raw_syscall(SYS_rt_tgsigqueueinfo, (uint64_t)process(),
			    (uint64_t)u->home.k.tid, (uint64_t)signo,
			    PTR(info), 0, 0);
}

void flexsc__signal_unblock(struct carrier *c, sigmask_t but)
{
	sigmask_t these = atomic_load(&c->blocked) & ~but;

	if (!these)
		return;
	/* Before they arrive: who passes one on may have it blocked again. */
	atomic_fetch_and(&c->blocked, ~these);
	raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, PTR(&these), 0,
		    sizeof(these), 0, 0);
	/* What was sent who doesn't block it has got: this is an old one. */
	if (these & SIGNAL_BIT(SIGPIPE))
		atomic_store(&c->pipe_came, false);
}

static siginfo_t passed_on(const siginfo_t *info)
{
	siginfo_t again = *info;

	if (again.si_code >= 0 || again.si_code == SI_TKILL)
		again.si_code = SI_QUEUE;
	return again;
}

/* To the process again, and from the end of the handler on not to here. */
static void give_back(int signo, const siginfo_t *info, ucontext_t *context)
{
	siginfo_t again = passed_on(info);
	sigmask_t mask;

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	mask |= SIGNAL_BIT(signo);
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	raw_syscall(SYS_rt_sigqueueinfo, (uint64_t)process(), (uint64_t)signo,
		    PTR(&again), 0, 0, 0);
}

/*
 * What was sent to the process. Who runs here may be in the middle of anything:
 * no lock is taken. What kill(2) sent arrives as if by sigqueue(3), with the
 * same sender: more the kernel doesn't let one thread say to another.
 */
static void pass_on(struct kthread *k, int signo, siginfo_t *info,
		    ucontext_t *context)
{
	const struct uthread *u = k->current;
	siginfo_t again = passed_on(info);

	if (!u || u->home.parked & SIGNAL_BIT(signo)) {
		atomic_fetch_or(&k->carrier->blocked, SIGNAL_BIT(signo));
		give_back(signo, info, context);
	} else {
		raw_syscall(SYS_rt_tgsigqueueinfo, (uint64_t)process(),
			    (uint64_t)u->home.k.tid, (uint64_t)signo,
			    PTR(&again), 0, 0);
	}
}

/* It ends the process also if who runs there blocks it. */
static bool is_final(const struct kthread *k, int signo)
{
	const struct uthread *u = k->current;

	return is_default(signo) ||
	       (u && u->home.parked & SIGNAL_BIT(signo) & SIGNAL_FAULTS);
}

/*
 * From the process itself, or raised. libc may have written, for stdio say, to
 * where nobody reads: the call is over, so this is sent home. Of calls that were
 * posted hook.c tells; the carrier sees whether it was one.
 */
static void broken_pipe(struct kthread *k, siginfo_t *info,
			ucontext_t *context)
{
	struct uthread *u = k->current;

	if (!u || u->busy) {
		atomic_store(&k->carrier->pipe_came, true);
		/* It may be about to sleep, or to begin. */
		if (k->carrier->loop)
			flexsc_loop_wake(k->carrier->loop, NULL);
		return;
	}
	if (context->uc_mcontext.gregs[REG_RAX] != -EPIPE) {
		pass_on(k, SIGPIPE, info, context);
		return;
	}
	u->cause = CAUSE_SIGNAL;
	move_home(k, u, context, NULL);
	raw_syscall(SYS_rt_tgsigqueueinfo, (uint64_t)process(),
		    (uint64_t)u->home.k.tid, SIGPIPE, PTR(info), 0, 0);
}

void flexsc__signal_pipe(struct carrier *c)
{
	const sigmask_t this = SIGNAL_BIT(SIGPIPE);
	siginfo_t info = { .si_signo = SIGPIPE, .si_code = SI_QUEUE };
	bool sent = !c->pipe_broke;

	atomic_store(&c->pipe_came, false);
	c->pipe_broke = false;
	if (!sent)
		return;
	info.si_pid = (pid_t)process();
	info.si_uid = (uid_t)raw_syscall(SYS_getuid, 0, 0, 0, 0, 0, 0);
	atomic_fetch_or(&c->blocked, this);
	raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, PTR(&this), 0, sizeof(this),
		    0, 0);
	raw_syscall(SYS_rt_sigqueueinfo, (uint64_t)info.si_pid, SIGPIPE,
		    PTR(&info), 0, 0, 0);
}

static void on_carrier(struct kthread *k, int signo, siginfo_t *info,
		       ucontext_t *context)
{
	if (is_fault(signo, info) && is_final(k, signo))
		end_process(signo, info, context);
	else if (is_fault(signo, info) || (signo == SIGABRT && k->current))
		fault(k, signo, info, context);
	else if (signo == SIGPIPE && info->si_code == SI_USER &&
		 info->si_pid == process())
		broken_pipe(k, info, context);
	else if (signo != SIGNAL_SETXID)
		pass_on(k, signo, info, context);
	else if (is_marked(info))
		called_home(k, info, context);
	else
		setxid(k, signo, info, context);
}

static void at_a_home(struct kthread *k, int signo, siginfo_t *info,
		      ucontext_t *context)
{
	struct uthread *u = user_of(k);

	if (signo == SIGNAL_SETXID) {
		if (!is_marked(info))
			run_handler(signo, info, context);
	} else if (u->home.away || (u->busy && !is_fault(signo, info))) {
		postpone(u, signo, info, context);
	} else {
		handle(u, signo, info, context);
	}
}

/* A thread that was made on a carrier has its mask, until it has its own. */
static bool is_new(int signo)
{
	return SIGNAL_RAISED & SIGNAL_BIT(signo) && context_gs() &&
	       kthread_self()->carrier;
}

static void arrive(int signo, siginfo_t *info, void *frame)
{
	struct kthread *k = kthread_known();
	ucontext_t *context = frame;

	if (k && k->carrier)
		on_carrier(k, signo, info, context);
	else if (!k && is_new(signo) && !is_fault(signo, info))
		give_back(signo, info, context);
	else if (!k || (is_fault(signo, info) && is_default(signo)))
		run_handler(signo, info, context);
	else
		at_a_home(k, signo, info, context);
}

static bool call_home(const struct carrier *c, char *is)
{
	siginfo_t info = { .si_signo = SIGNAL_SETXID, .si_code = SI_QUEUE };

	info.si_pid = (pid_t)process();
	info.si_ptr = is;
	return !raw_syscall(SYS_rt_tgsigqueueinfo, (uint64_t)info.si_pid,
			    (uint64_t)c->k.tid, SIGNAL_SETXID, PTR(&info), 0,
			    0);
}

void flexsc__signal_carrier(const struct carrier *c)
{
	call_home(c, &mark);
}

void flexsc__signal_stuck(struct carrier *c)
{
	atomic_store(&c->called, true);
	/* There may be too many that wait. */
	if (!call_home(c, &mark_stuck))
		atomic_store(&c->called, false);
}

bool flexsc__signal_running(const struct carrier *c)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1 };

	return c->kept_timer >= 0 &&
	       !raw_syscall(SYS_timer_settime, (uint64_t)c->kept_timer, 0,
			    PTR(&soon), 0, 0, 0);
}

int flexsc__signal_timer(const struct carrier *c)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGNAL_SETXID,
				  .sigev_value.sival_ptr = &mark };
	int timer;

	event._sigev_un._tid = c->k.tid;
	if (raw_syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, PTR(&event),
			PTR(&timer), 0, 0, 0))
		return -1;
	return timer;
}

/* Masks. */

/* What libc blocks for a moment; what it lets through are its own. */
static bool is_all(sigmask_t set)
{
	return (set | LIBC_S) == ~0ULL;
}

static sigmask_t changed(uint64_t how, sigmask_t mask, sigmask_t set)
{
	const sigmask_t never = SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP);

	switch (how) {
	case SIG_BLOCK:
		return (mask | set) & ~never;
	case SIG_UNBLOCK:
		return mask & ~set;
	default:
		return set & ~never;
	}
}

/*
 * The program's mask is its home's while it is away. What libc blocks for a
 * moment needn't reach the home: what arrives there meanwhile calls the user
 * thread home, and is blocked.
 */
long flexsc__signal_mask(struct uthread *u, const uint64_t args[6])
{
	const sigmask_t *set = (void *)(uintptr_t)args[1];
	sigmask_t *old = (void *)(uintptr_t)args[2], was = u->home.mask, next;

	if (at_home() || args[3] != sizeof(sigmask_t) ||
	    args[0] > SIG_SETMASK || !is_there(set, sizeof(*set)) ||
	    !is_there(old, sizeof(*old)))
		return flexsc__call_go_home(u, SYS_rt_sigprocmask, args);
	next = set ? changed(args[0], was, *set) : was;
	if (next != was && next != u->home.parked &&
	    !(args[0] == SIG_BLOCK && is_all(*set)))
		return flexsc__call_go_home(u, SYS_rt_sigprocmask, args);
	u->home.mask = next;
	if (old)
		*old = was;
	return 0;
}

void flexsc__signal_self(struct uthread *u, int signo)
{
	struct action action;

	if (kernel_action(signo, NULL, &action) ||
	    action.handler == (uintptr_t)SIG_IGN)
		return;
	u->cause = CAUSE_SIGNAL;
	flexsc__come_home(u);
	/* It is put off until the way out of the runtime. */
	raw_syscall(SYS_tgkill, (uint64_t)process(), (uint64_t)u->home.k.tid,
		    (uint64_t)signo, 0, 0, 0);
}

/* Actions. */

/*
 * Does one of ours stand for it, also if the program has none? Carriers don't
 * block these, so nor may the kernel act on them, before it is known whose they
 * are and what that one blocks.
 */
static bool is_replaced(int signo, const struct action *action)
{
	return is_function(action->handler) ||
	       (action->handler == (uintptr_t)SIG_DFL &&
		SIGNAL_RAISED & SIGNAL_BIT(signo));
}

/* Ours, with everything that the kernel does for the program's. */
static struct action instead_of(int signo, const struct action *action)
{
	struct action own = *action;

	own.handler = (uintptr_t)arrive;
	if (!(own.flags & SA_RESTORER)) {
		own.flags |= SA_RESTORER;
		own.restorer = restorer;
	}
	/* It is the program's handler that runs once, not ours. */
	own.flags = (own.flags | SA_SIGINFO) & ~(uint64_t)SA_RESETHAND;
	/* Who is interrupted may have little left of its stack. */
	if (signo == SIGNAL_SETXID || !is_function(action->handler))
		own.flags |= SA_ONSTACK;
	/* Without a handler no call of the program's is interrupted by it. */
	if (!is_function(action->handler))
		own.flags |= SA_RESTART;
	/* Until it is known where this one belongs, no other. */
	own.mask = ~0ULL;
	return own;
}

/* With the lock. */
static long replace(int signo, const struct action *new)
{
	struct action own;
	long err;

	if (new->flags & SA_RESTORER)
		restorer = new->restorer;
	if (!is_replaced(signo, new)) {
		err = kernel_action(signo, new, NULL);
		if (!err)
			ours[signo] = false;
		return err;
	}
	own = instead_of(signo, new);
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

	if (signo < 1 || signo > SIGNALS || args[3] != sizeof(sigmask_t) ||
	    !is_there(new, sizeof(*new)) || !is_owner())
		return raw_syscall(SYS_rt_sigaction, args[0], args[1], args[2],
				   args[3], 0, 0);
	if (new)
		next = *new;
	lock(&actions_lock);
	err = kernel_action(signo, NULL, &was);
	/* libc may have changed it unseen. */
	if (!err && was.handler == (uintptr_t)arrive)
		was = actions[signo];
	if (!err && new)
		err = replace(signo, &next);
	unlock(&actions_lock);
	if (err || !old)
		return err;
	/* By now it is done all the same. */
	if (!is_there(old, sizeof(*old)))
		return -EFAULT;
	*old = was;
	return 0;
}

void flexsc__signal_forked(void)
{
	if (owner)
		owner = process();
	actions_lock = (struct lock){ 0 };
}

bool flexsc__signal_has_handler(int signo)
{
	return signo > 0 && signo <= SIGNALS && ours[signo] &&
	       is_function(actions[signo].handler);
}

void flexsc__signal_adopt(int signo)
{
	struct action was;

	lock(&actions_lock);
	if (!kernel_action(signo, NULL, &was) && is_replaced(signo, &was) &&
	    was.handler != (uintptr_t)arrive)
		replace(signo, &was);
	unlock(&actions_lock);
}

uint64_t flexsc__signal_restorer(void)
{
	/* libc has given it with the first thread, for SIGNAL_SETXID. */
	return restorer;
}

void flexsc__signal_init(void)
{
	owner = process();
	/* First: it says where handlers return to, ours as well. */
	flexsc__signal_adopt(SIGNAL_SETXID);
	for (int signo = 1; signo <= SIGNALS; signo++)
		flexsc__signal_adopt(signo);
}
