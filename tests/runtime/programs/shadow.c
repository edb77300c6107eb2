/* SPDX-License-Identifier: MIT */
/*
 * A process with shadow stacks. Few machines support them, so a seccomp filter
 * passes the query to a handler, which reports that they are enabled.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "threads.h"

#ifndef ARCH_SHSTK_STATUS
#define ARCH_SHSTK_STATUS	0x5005
#endif
#define ARCH_SHSTK_SHSTK	1

#define LINE	"flexsc: run: running natively: the program uses shadow stacks; " \
		"link it with -z noshstk\n"

static int asked;

/* Answers arch_prctl(ARCH_SHSTK_STATUS, &features). */
static void answer(int signo, siginfo_t *info, void *frame)
{
	greg_t *regs = ((ucontext_t *)frame)->uc_mcontext.gregs;

	(void)signo;
	CHECK_EQ(info->si_syscall, SYS_arch_prctl);
	*(uint64_t *)regs[REG_RSI] = ARCH_SHSTK_SHSTK;
	regs[REG_RAX] = 0;
	asked++;
}

static void pretend_shadow_stacks(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };
	uint64_t features = 0;

	action.sa_sigaction = answer;
	CHECK_EQ(sigaction(SIGSYS, &action, NULL), 0);
	filter_argument(SYS_arch_prctl, 0, BPF_JEQ, ARCH_SHSTK_STATUS, SECCOMP_RET_TRAP,
			SECCOMP_RET_ALLOW);
	CHECK_EQ(syscall(SYS_arch_prctl, ARCH_SHSTK_STATUS, &features), 0);
	CHECK_EQ(features, ARCH_SHSTK_SHSTK);
	asked = 0;
}

/* Without the runtime, the only threads are this one and main. */
static void *count_all(void *arg)
{
	usleep(100);
	*(unsigned int *)arg = count_tasks();
	return arg;
}

static void run_with_shadow_stacks(void)
{
	const char *line = preloaded() ? LINE : "";
	int said = memfd_create("said", 0), err = dup(2);
	unsigned int tasks[3] = { 0 };
	char text[512] = "";

	pretend_shadow_stacks();
	CHECK_EQ(dup2(said, 2), 2);
	/* The message appears once, for any number of threads. */
	for (int i = 0; i < 3; i++) {
		join(start(count_all, &tasks[i]));
		await_unlisted();
	}
	CHECK_EQ(dup2(err, 2), 2);
	CHECK_EQ(asked, preloaded());
	for (int i = 0; i < 3; i++)
		CHECK_EQ(tasks[i], 2);
	CHECK(pread(said, text, sizeof(text) - 1, 0) >= 0);
	if (strcmp(text, line))
		test_fail(__FILE__, __LINE__, "unexpected message: %s", text);
}

/* Run in a child: a process that has tried an engine has more threads. */
TEST(a_process_with_shadow_stacks_is_left_alone)
{
	int pid;

	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
		SKIP("can't install a seccomp filter: %s", strerror(errno));
	pid = test_fork();
	if (!pid) {
		run_with_shadow_stacks();
		test_leave();
	}
	test_reap(pid);
}
