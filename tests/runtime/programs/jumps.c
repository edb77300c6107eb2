/* SPDX-License-Identifier: MIT */
/* Jumps out of handlers, faults, and masks that libc saves, while signals arrive. */
#define _GNU_SOURCE
#undef NDEBUG
#include <assert.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "threads.h"

#define STACK	65536

extern char **environ;

static __thread sigjmp_buf env;
static __thread atomic_int handled;

static void leap(int signo)
{
	handled++;
	siglongjmp(env, signo);
}

static void handle(int signo, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	CHECK_EQ(sigaction(signo, &action, NULL), 0);
}

static bool is_blocked(int signo)
{
	sigset_t now;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	return sigismember(&now, signo);
}

static void block(int how, int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	CHECK_EQ(pthread_sigmask(how, &set, NULL), 0);
}

/* Signal masks. */

static void *keep_mask(void *arg)
{
	block(SIG_BLOCK, SIGUSR2);
	for (volatile int i = 0; i < 20; i++) {
		usleep(100);
		if (!sigsetjmp(env, 1)) {
			usleep(i % 2 * 100);
			if (i % 3 == 0)
				block(SIG_BLOCK, SIGUSR1);
			usleep(i % 4 * 100);
			siglongjmp(env, 1);
		}
		usleep(100);
		CHECK(is_blocked(SIGUSR2) && !is_blocked(SIGUSR1) &&
		      !is_blocked(SIGTERM));
	}
	return arg;
}

TEST(a_jump_restores_the_mask)
{
	run_numbered(4, keep_mask);
}

static __thread ucontext_t back, other;

static void in_context(void)
{
	usleep(100);
	CHECK(is_blocked(SIGUSR1));
	block(SIG_UNBLOCK, SIGUSR1);
	usleep(100);
}

static void *switch_contexts(void *arg)
{
	char *stack = malloc(STACK);

	for (volatile int i = 0; i < 20; i++) {
		block(SIG_BLOCK, SIGUSR1);
		usleep(100);
		CHECK_EQ(getcontext(&other), 0);
		other.uc_stack.ss_sp = stack;
		other.uc_stack.ss_size = STACK;
		other.uc_link = &back;
		makecontext(&other, in_context, 0);
		CHECK(sigismember(&other.uc_sigmask, SIGUSR1));
		CHECK(!sigismember(&other.uc_sigmask, SIGTERM));
		usleep(i % 2 * 100);
		CHECK_EQ(swapcontext(&back, &other), 0);
		CHECK(is_blocked(SIGUSR1));
	}
	free(stack);
	return arg;
}

TEST(contexts_have_masks)
{
	run_numbered(4, switch_contexts);
}

static void count(int signo)
{
	(void)signo;
	handled++;
}

/*
 * Does the calling thread run on the kernel thread that it got its number from? A
 * user thread does so on its host only.
 */
static bool is_on_host(void)
{
	return kernel_thread() == gettid();
}

static void *return_it(void *arg)
{
	return arg;
}

static void *create_and_kill(void *arg)
{
	for (int i = 0; i < 50; i++) {
		usleep(10);
		join(start(return_it, NULL));
		usleep(10);
		CHECK_EQ(raise(SIGUSR1), 0);
		CHECK_EQ(handled, i + 1);
		CHECK(!is_blocked(SIGUSR1) && !is_blocked(SIGTERM));
	}
	return arg;
}

TEST(signals_that_libc_blocked_are_unblocked_again)
{
	handle(SIGUSR1, count, 0);
	run_numbered(4, create_and_kill);
}

/* After the jump, the thread still leaves its host to wait, as other threads do. */
static void check_it_leaves(void)
{
	int hosts = 0;

	for (int i = 0; i < 50; i++) {
		usleep(100);
		hosts += is_on_host();
	}
	if (preloaded())
		CHECK(hosts < 50);
}

static void *jump_often(void *arg)
{
	for (volatile int i = 0; i < 20; i++) {
		usleep(100);
		if (!sigsetjmp(env, 1))
			raise(SIGUSR1);
		CHECK(!is_blocked(SIGUSR1));
	}
	CHECK_EQ(handled, 20);
	check_it_leaves();
	return arg;
}

TEST(a_jump_out_of_a_handler_ends_the_handler)
{
	handle(SIGUSR1, leap, 0);
	run_numbered(4, jump_often);
}

static int fds[2];
static atomic_bool waits;

static void *jump_out_of_call(void *arg)
{
	char byte;

	for (volatile int i = 0; i < 10; i++) {
		if (!sigsetjmp(env, 1)) {
			waits = true;
			read(fds[0], &byte, 1);
			CHECK(false);
		}
	}
	check_it_leaves();
	return arg;
}

TEST(a_jump_out_of_a_call_ends_the_call)
{
	pthread_t thread;

	CHECK_EQ(pipe(fds), 0);
	handle(SIGUSR1, leap, 0);
	thread = start(jump_out_of_call, NULL);
	for (int i = 0; i < 10; i++) {
		while (!waits)
			usleep(1000);
		waits = false;
		usleep(5000);
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
	}
	join(thread);
}

static void *jump_from_stack(void *arg)
{
	stack_t stack = { .ss_sp = malloc(STACK), .ss_size = STACK };

	CHECK_EQ(sigaltstack(&stack, NULL), 0);
	return jump_often(arg);
}

TEST(a_jump_out_of_a_handler_on_a_signal_stack_ends_the_handler)
{
	handle(SIGUSR1, leap, SA_ONSTACK);
	run_numbered(4, jump_from_stack);
}

/* Recurses deeper than any stack. */
static int overflow(long depth)
{
	volatile char array[4096];

	array[0] = (char)depth;
	return depth ? overflow(depth - 1) + array[0] : 0;
}

#define ENDLESS	(1L << 40)

static void *overflow_often(void *arg)
{
	stack_t stack = { .ss_sp = malloc(STACK), .ss_size = STACK }, now;

	CHECK_EQ(sigaltstack(&stack, NULL), 0);
	for (volatile int i = 0; i < 5; i++) {
		usleep(1000);
		if (!sigsetjmp(env, 1))
			overflow(ENDLESS);
		CHECK_EQ(handled, i + 1);
		CHECK(!is_blocked(SIGSEGV) && !is_blocked(SIGTERM));
	}
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK(now.ss_sp == stack.ss_sp);
	return arg;
}

TEST(a_stack_s_overflow_is_handled_on_the_signal_s)
{
	handle(SIGSEGV, leap, SA_ONSTACK);
	run_numbered(4, overflow_often);
}

static __thread char *page;

static void permit(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	handled++;
	CHECK(info->si_addr == page + 5);
	CHECK_EQ(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
}

static void count_trap(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)info;
	handled++;
	pass_trap(context);
}

static void *fault_and_go_on(void *arg)
{
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	for (int i = 0; i < 20; i++) {
		usleep(100);
		CHECK_EQ(mprotect(page, 4096, PROT_NONE), 0);
		((volatile char *)page)[5] = 7;
		CHECK_EQ(page[5], 7);
		CHECK_EQ(handled, 2 * i + 1);
		usleep(100);
		trap();
		CHECK_EQ(handled, 2 * i + 2);
		CHECK(!is_blocked(SIGSEGV) && !is_blocked(SIGTERM));
	}
	munmap(page, 4096);
	return arg;
}

TEST(a_thread_continues_after_a_repaired_fault)
{
	struct sigaction action = { .sa_sigaction = permit,
				    .sa_flags = SA_SIGINFO };

	CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
	action.sa_sigaction = count_trap;
	CHECK_EQ(sigaction(SIGTRAP, &action, NULL), 0);
	run_numbered(4, fault_and_go_on);
}

static void *recurse_near_end(void *arg)
{
	volatile char most[8192];
	uint64_t until = now_ns() + 40 * MS;

	while (now_ns() < until)
		most[now_ns() % sizeof(most)] = most[0];
	return arg;
}

TEST(a_small_stack_is_large_enough)
{
	pthread_attr_t attr;
	pthread_t threads[8];

	/*
	 * At a function's first call, the loader resolves its name on the caller's
	 * stack. The stacks of these threads are too small for that, so call the
	 * functions here first.
	 */
	now_ns();
	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN), 0);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&threads[i], &attr, recurse_near_end,
					NULL), 0);
	join_all(threads, 8);
}
