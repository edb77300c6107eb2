/* SPDX-License-Identifier: MIT */
/* A thread that traces a process. To the kernel, a tracer is a single kernel thread. */
#define _GNU_SOURCE
#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "threads.h"

#if defined(__x86_64__)
#define PC	rip
#else
#define PC	pc
#endif

enum { TIMES = 20 };

static long word = 5;

static void traced(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(99);
	raise(SIGSTOP);
	_exit((int)word);
}

/* Any thread may wait for a child, but only its tracer may make ptrace requests. */
static void *is_not_its_tracer(void *arg)
{
	pid_t pid = *(pid_t *)arg;

	usleep(100);
	errno = 0;
	CHECK_EQ(ptrace(PTRACE_PEEKDATA, pid, &word, NULL), -1);
	CHECK_EQ(errno, ESRCH);
	CHECK_EQ(ptrace(PTRACE_CONT, pid, NULL, NULL), -1);
	CHECK_EQ(errno, ESRCH);
	return arg;
}

static void stops(pid_t pid, int signo)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 99)
		SKIP("ptrace isn't permitted here");
	CHECK(WIFSTOPPED(status));
	CHECK_EQ(WSTOPSIG(status), signo);
}

static void ends_with(pid_t pid, int wanted)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), wanted);
}

/* Before each request the thread waits, so it may be on any carrier. */
static void look_into(pid_t pid, long value)
{
	struct user_regs_struct regs = { 0 };
	struct iovec all = { &regs, sizeof(regs) };

	for (int i = 0; i < TIMES; i++) {
		usleep(100);
		errno = 0;
		CHECK_EQ(ptrace(PTRACE_PEEKDATA, pid, &word, NULL), 5 + i);
		CHECK_EQ(errno, 0);
		CHECK_EQ(ptrace(PTRACE_POKEDATA, pid, &word, 6 + i), 0);
	}
	usleep(100);
	CHECK_EQ(ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &all), 0);
	CHECK(regs.PC != 0);
	CHECK_EQ(ptrace(PTRACE_POKEDATA, pid, &word, value), 0);
	CHECK_EQ(syscall(SYS_ptrace, PTRACE_POKEDATA, pid, &word, value), 0);
}

static void *trace_a_child(void *arg)
{
	long value = 40 + (long)arg;
	pid_t pid;

	usleep(100);
	pid = test_fork();
	if (!pid)
		traced();
	stops(pid, SIGSTOP);
	look_into(pid, value);
	join(start(is_not_its_tracer, &pid));
	CHECK_EQ(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	ends_with(pid, (int)value);
	return NULL;
}

TEST(a_thread_traces_its_child)
{
	run_numbered(4, trace_a_child);
}

static void *attach_to_a_child(void *arg)
{
	pid_t pid;

	usleep(100);
	pid = test_fork();
	if (!pid)
		for (;;)
			pause();
	usleep(1000);
	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL))
		SKIP("ptrace isn't permitted here: %s", strerror(errno));
	stops(pid, SIGSTOP);
	look_into(pid, 0);
	/* While the child is attached, its signals stop it instead of reaching it. */
	CHECK_EQ(kill(pid, SIGUSR1), 0);
	CHECK_EQ(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	stops(pid, SIGUSR1);
	CHECK_EQ(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	usleep(1000);
	CHECK_EQ(kill(pid, 0), 0);
	CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	return arg;
}

TEST(a_thread_attaches_to_its_child)
{
	run_all(4, attach_to_a_child, NULL);
}
