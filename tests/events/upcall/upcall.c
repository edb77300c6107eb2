/* SPDX-License-Identifier: MIT */
/*
 * The upcall's code, with a tracer instead of the kernel: it single-steps a process,
 * and changes its registers as <linux/flexsc_ecb.h> specifies. The two processes
 * share the memory of an event control block.
 */
#include "tests/harness/harness.h"

#include <execinfo.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "leaf.h"

#define RED_ZONE	128
#define FLAG_TF		0x100
#define FLAG_DF		0x400
#define FLAG_RF		0x10000

#define ENTRY		((uintptr_t)flexsc__upcall_entry)
#define TAIL		((uintptr_t)flexsc__upcall_tail)
#define TAIL_END	((uintptr_t)flexsc__upcall_tail_end)

/* Instructions of the tail, without the branch back. */
#define STEPS	16

static struct flexsc_event_control *control;

/* The kernel's part. */

struct tracee {
	pid_t pid;
	struct user_regs_struct regs;
	unsigned int raised, entered;
	uint64_t random;
};

static void regs_get(struct tracee *tracee)
{
	CHECK_EQ(ptrace(PTRACE_GETREGS, tracee->pid, NULL, &tracee->regs), 0);
}

static void frame_write(struct tracee *tracee, uint64_t at)
{
	const struct user_regs_struct *regs = &tracee->regs;
	struct flexsc_upcall_frame frame = {
		regs->r11, regs->r10, regs->r9, regs->r8, regs->rdi, regs->rsi,
		regs->rdx, regs->rcx, regs->rax, regs->eflags & ~FLAG_TF,
		regs->rip
	};
	struct iovec from = { &frame, sizeof(frame) };
	struct iovec to = { (void *)at, sizeof(frame) };

	CHECK_EQ(process_vm_writev(tracee->pid, &from, 1, &to, 1, 0),
		 sizeof(frame));
}

static uint64_t frame_of(struct tracee *tracee)
{
	const uint64_t ip = tracee->regs.rip, sp = tracee->regs.rsp;
	uint64_t frame = sp - RED_ZONE - sizeof(struct flexsc_upcall_frame);

	if (ip < TAIL || ip >= TAIL_END)
		frame_write(tracee, frame);
	else if (ip == TAIL_END - 3)
		frame = sp - offsetof(struct flexsc_upcall_frame, ip);
	else if (ip == TAIL_END - 4)
		frame = sp - offsetof(struct flexsc_upcall_frame, flags);
	else
		frame = sp;
	return frame;
}

/* Raises an event, and does what the kernel does for it. */
static void event_raise(struct tracee *tracee)
{
	struct user_regs_struct *regs = &tracee->regs;

	/* An event that is pending already absorbs this one. */
	tracee->raised += !control->pending;
	control->pending = 1;
	if (control->critical)
		return;
	tracee->entered++;
	regs->rsp = frame_of(tracee);
	control->critical = 1;
	control->regs = regs->rsp;
	regs->rdi = control->arg;
	regs->rip = ENTRY;
	regs->eflags &= ~(unsigned long long)(FLAG_TF | FLAG_DF | FLAG_RF);
	CHECK_EQ(ptrace(PTRACE_SETREGS, tracee->pid, NULL, regs), 0);
}

static bool in_leaf(const struct tracee *tracee)
{
	return tracee->regs.rip >= (uintptr_t)leaf_begin &&
	       tracee->regs.rip < (uintptr_t)leaf_end;
}

static bool in_upcall(const struct tracee *tracee)
{
	return tracee->regs.rip >= ENTRY && tracee->regs.rip < TAIL_END;
}

static bool in_tail(const struct tracee *tracee)
{
	return tracee->regs.rip >= TAIL && tracee->regs.rip < TAIL_END;
}

/* The traced process. */

static struct flexsc__upcall upcall;
/* NULL: use the handler of leaf_upcall(). */
static void (*handler)(struct flexsc__upcall *upcall);

static void on_signal(int signo)
{
	(void)signo;
	leaf_clobber();
}

static void tracee_run(unsigned int times)
{
	const struct sigaction action = {
		.sa_handler = on_signal,
		.sa_flags = SA_NODEFER,
	};

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	leaf_check(1);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(99);
	raise(SIGSTOP);
	/* errno is behind a function call, which may overwrite the red zone. */
	errno = EILSEQ;
	leaf_traps = 1;
	while (times--)
		leaf_check(1);
	CHECK_EQ(errno, EILSEQ);
	CHECK_EQ(control->critical, 0);
	CHECK_EQ(control->pending, 0);
	control->overflows = leaf_handled;
	test_leave();
}

/* Each step switches between the processes twice, which is faster on one processor. */
static void stay_here(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Returns false if the processor lacks this way to save the state. */
static bool tracee_start(struct tracee *tracee, enum leaf_keep keep,
			 unsigned int times)
{
	int status;

	if (SANITIZED)
		SKIP("sanitizers don't support single-stepping");
	control = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(control != MAP_FAILED);
	if (!leaf_upcall(&upcall, control, keep))
		return false;
	if (handler)
		upcall.run = handler;
	stay_here();
	memset(tracee, 0, sizeof(*tracee));
	tracee->random = 1;
	tracee->pid = test_fork();
	if (!tracee->pid)
		tracee_run(times);
	CHECK_EQ(waitpid(tracee->pid, &status, 0), tracee->pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 99)
		SKIP("ptrace isn't permitted here");
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	regs_get(tracee);
	return true;
}

/* Returns false at the end of the process. */
static bool tracee_await(struct tracee *tracee)
{
	int status;

	CHECK_EQ(waitpid(tracee->pid, &status, 0), tracee->pid);
	if (WIFEXITED(status)) {
		CHECK_EQ(WEXITSTATUS(status), 0);
		/* Each event was handled once. */
		CHECK_EQ(control->overflows, tracee->raised);
		return false;
	}
	CHECK(WIFSTOPPED(status));
	CHECK_EQ(WSTOPSIG(status), SIGTRAP);
	regs_get(tracee);
	return true;
}

/* Continues to the next breakpoint. */
static bool go_on(struct tracee *tracee)
{
	struct user_regs_struct *regs = &tracee->regs;

	/* When "popfq" is stepped, the kernel forgets that it has set the flag. */
	regs->eflags &= ~(unsigned long long)FLAG_TF;
	CHECK_EQ(ptrace(PTRACE_SETREGS, tracee->pid, NULL, regs), 0);
	CHECK_EQ(ptrace(PTRACE_CONT, tracee->pid, NULL, 0), 0);
	return tracee_await(tracee);
}

/*
 * Executes one instruction, or enters the handler of a signal. Steps over the
 * clobbering code.
 */
static void step(struct tracee *tracee, int signo)
{
	CHECK_EQ(ptrace(PTRACE_SINGLESTEP, tracee->pid, NULL, signo), 0);
	CHECK(tracee_await(tracee));
	if (tracee->regs.rip == (uintptr_t)upcall.run ||
	    tracee->regs.rip == (uintptr_t)leaf_clobber)
		CHECK(go_on(tracee));
}

/* Continues to the leaf's first instruction; false: there are no more rounds. */
static bool leaf_next(struct tracee *tracee)
{
	if (!go_on(tracee))
		return false;
	while (tracee->regs.rip != (uintptr_t)leaf_begin)
		step(tracee, 0);
	return true;
}

/* Continues to the place that the upcall interrupted. */
static void leaf_return(struct tracee *tracee)
{
	while (!in_leaf(tracee))
		step(tracee, 0);
	CHECK_EQ(control->pending, 0);
}

static void each_keep(void (*test)(enum leaf_keep keep))
{
	for (enum leaf_keep keep = 0; keep < KEEPS; keep++)
		test(keep);
}

/* Tests. */

static void step_leaf(enum leaf_keep keep)
{
	struct tracee tracee;
	unsigned int count = 0;

	if (!tracee_start(&tracee, keep, 1))
		return;
	CHECK(leaf_next(&tracee));
	for (; in_leaf(&tracee); count++) {
		event_raise(&tracee);
		leaf_return(&tracee);
		step(&tracee, 0);
	}
	CHECK_EQ(count, tracee.entered);
	CHECK_EQ(count, 11);
	CHECK(!go_on(&tracee));
}

TEST(an_upcall_may_interrupt_each_instruction_of_a_leaf)
{
	each_keep(step_leaf);
	leaf_on_stack = true;
	each_keep(step_leaf);
}

enum { MOST = 64 };

/* Records the instructions of an upcall, in the order of execution. */
static unsigned int upcall_trace(struct tracee *tracee, uint64_t ips[MOST])
{
	unsigned int count = 0;

	CHECK(leaf_next(tracee));
	event_raise(tracee);
	for (; !in_leaf(tracee); step(tracee, 0)) {
		if (!in_upcall(tracee))
			continue;
		CHECK(count < MOST);
		ips[count++] = tracee->regs.rip;
	}
	return count;
}

/* Makes an upcall, and raises another event during it. */
static void upcall_with_event(struct tracee *tracee, uint64_t at)
{
	CHECK(leaf_next(tracee));
	event_raise(tracee);
	while (tracee->regs.rip != at)
		step(tracee, 0);
	event_raise(tracee);
	leaf_return(tracee);
}

static void step_upcall(enum leaf_keep keep)
{
	struct tracee tracee;
	uint64_t ips[MOST];
	unsigned int count;

	if (!tracee_start(&tracee, keep, MOST + 1))
		return;
	count = upcall_trace(&tracee, ips);
	CHECK(count > STEPS);
	for (unsigned int i = 0; i < count; i++)
		upcall_with_event(&tracee, ips[i]);
	while (leaf_next(&tracee))
		;
	/* The tail's first instruction is still in the critical section. */
	CHECK_EQ(tracee.entered, 1 + count + STEPS - 1);
}

TEST_LIMIT(an_event_at_each_instruction_is_handled_before_the_return, 60)
{
	each_keep(step_upcall);
}

/*
 * A signal interrupts the tail, and an event interrupts the signal's handler. Both
 * use the stack above what the tail still has to load.
 */
static void signal_handle(struct tracee *tracee)
{
	const struct user_regs_struct before = tracee->regs;

	step(tracee, SIGUSR1);
	CHECK_EQ(tracee->regs.rip, (uintptr_t)on_signal);
	event_raise(tracee);
	do
		step(tracee, 0);
	while (tracee->regs.rip != before.rip ||
	       tracee->regs.rsp != before.rsp);
}

static void step_signal_at(struct tracee *tracee, unsigned int signal_at,
			   unsigned int event_at)
{
	unsigned int i;

	CHECK(leaf_next(tracee));
	event_raise(tracee);
	while (!in_tail(tracee))
		step(tracee, 0);
	for (i = 0; i < signal_at; i++)
		step(tracee, 0);
	signal_handle(tracee);
	for (; i < event_at; i++)
		step(tracee, 0);
	CHECK(in_tail(tracee));
	event_raise(tracee);
	leaf_return(tracee);
}

TEST_LIMIT(a_signal_in_the_tail_may_be_interrupted_itself, 60)
{
	struct tracee tracee;

	if (!tracee_start(&tracee, KEEP_PLAIN, STEPS * STEPS))
		SKIP("the processor lacks XSAVE");
	for (unsigned int i = 1; i < STEPS; i++)
		for (unsigned int j = i; j < STEPS; j++)
			step_signal_at(&tracee, i, j);
	while (leaf_next(&tracee))
		;
}

/* A xorshift generator. */
static unsigned int chance(struct tracee *tracee)
{
	tracee->random ^= tracee->random << 13;
	tracee->random ^= tracee->random >> 7;
	tracee->random ^= tracee->random << 17;
	return (unsigned int)(tracee->random >> 32);
}

static void step_by_chance(struct tracee *tracee)
{
	int signo = 0;

	while (tracee->regs.rip != (uintptr_t)leaf_end) {
		bool here = in_leaf(tracee) || in_upcall(tracee);

		if (here && !(chance(tracee) % 16))
			event_raise(tracee);
		signo = here && !(chance(tracee) % 128) ? SIGUSR1 : 0;
		step(tracee, signo);
	}
}

TEST_LIMIT(events_and_signals_anywhere, 60)
{
	struct tracee tracee;

	if (!tracee_start(&tracee, KEEP_PLAIN, 100))
		SKIP("the processor lacks XSAVE");
	while (leaf_next(&tracee))
		step_by_chance(&tracee);
	CHECK(tracee.entered > 100);
	test_note("%u events, %u upcalls", tracee.raised, tracee.entered);
}

/* The code's unwind tables lead to the interrupted code. */

static unsigned int depth_of_leaf;

static void look_back(void)
{
	void *addresses[16];
	int count = backtrace(addresses, 16);

	for (int i = 0; i < count; i++)
		if (addresses[i] == leaf_begin)
			depth_of_leaf = (unsigned int)(count - i);
	CHECK(depth_of_leaf > 2);
}

TEST(a_debugger_finds_the_interrupted_code)
{
	struct tracee tracee;

	/* The first call loads a library. */
	backtrace((void *[1]){ NULL }, 1);
	leaf_within = look_back;
	if (!tracee_start(&tracee, KEEP_PLAIN, 1))
		SKIP("the processor lacks XSAVE");
	CHECK(leaf_next(&tracee));
	event_raise(&tracee);
	leaf_return(&tracee);
	CHECK(!go_on(&tracee));
}

/* An upcall interrupts a handler that has ended its critical section. */

extern const char nesting_here[];

static void nesting(struct flexsc__upcall *own)
{
	static unsigned int calls;

	control->pending = 0;
	leaf_handled++;
	leaf_clobber();
	if (!calls++) {
		control->critical = 0;
		__asm__ volatile("int3\n\t"
				 ".globl nesting_here\n"
				 "nesting_here:" : : : "memory");
		control->critical = 1;
	}
	leaf_clobber();
}

static void nest(enum leaf_keep keep)
{
	struct tracee tracee;

	/* This handler uses all registers. */
	if (keep == KEEP_NOTHING || !tracee_start(&tracee, keep, 1))
		return;
	CHECK(leaf_next(&tracee));
	event_raise(&tracee);
	do
		CHECK(go_on(&tracee));
	while (tracee.regs.rip != (uintptr_t)nesting_here);
	event_raise(&tracee);
	while (go_on(&tracee))
		;
	CHECK_EQ(tracee.entered, 2);
}

TEST(an_upcall_may_interrupt_a_handler)
{
	handler = nesting;
	each_keep(nest);
	leaf_on_stack = true;
	each_keep(nest);
}
