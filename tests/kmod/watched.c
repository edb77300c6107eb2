// SPDX-License-Identifier: MIT
/*
 * Observers of a process see its calls: a tracer, a tracepoint, and readers of
 * debugfs. Runs in a guest, as root.
 */
#include "raw.h"
#include "system.h"

#include <sys/ptrace.h>

/* The result of PTRACE_GET_SYSCALL_INFO. */
struct stop {
	uint8_t op;
	uint8_t pad[3];
	uint32_t arch;
	uint64_t ip, sp;
	uint64_t nr, args[6];
};

#define OPTIONS								\
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)
#define STRANGE	0x5eed		/* a number that isn't a descriptor */

/* A thread has stopped: does it begin this call? */
static bool begins(pid_t tid, int status, unsigned int nr, uint64_t first)
{
	struct stop stop = { 0 };

	if (WSTOPSIG(status) != (SIGTRAP | 0x80))
		return false;
	CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(stop), &stop) > 0);
	return stop.op == 1 && stop.nr == nr && stop.args[0] == first;
}

/* The signal with which to continue. */
static long passed_on(int status)
{
	int signo = WSTOPSIG(status);

	if (signo == (SIGTRAP | 0x80) || signo == SIGTRAP || signo == SIGSTOP ||
	    status >> 16)
		return 0;
	return signo;
}

/* Traces the child to its end. Returns how often it began this call. */
static int count_calls(pid_t child, unsigned int nr, uint64_t first)
{
	int status, seen = 0;

	for (;;) {
		pid_t tid = waitpid(-1, &status, __WALL);

		CHECK(tid > 0);
		if (!WIFSTOPPED(status)) {
			if (tid != child)
				continue;
			CHECK_EQ(status, 0);
			return seen;
		}
		seen += begins(tid, status, nr, first);
		ptrace(PTRACE_SYSCALL, tid, 0, passed_on(status));
	}
}

static void close_strange(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		raw_post(&raw, i, i % 2 ? DEFER : 0, SYS_close, STRANGE);
	raw_finish(&raw, count);
	for (uint32_t i = 0; i < count; i++)
		CHECK_EQ(raw.entries[i].ret, -EBADF);
}

TEST(a_tracer_sees_all_calls)
{
	pid_t pid = test_fork();
	int status;

	if (!pid) {
		CHECK_EQ(ptrace(PTRACE_TRACEME, 0, 0, 0), 0);
		raise(SIGSTOP);
		raw_open(&raw, 1, 0);
		close_strange(20);
		CHECK_EQ(raw_shown(NULL, " bounced "), 20);
		CHECK_EQ(raw_shown(" core -1 ", " bounced "), 20);
		raw_close(&raw);
		test_leave();
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(ptrace(PTRACE_SETOPTIONS, pid, 0, OPTIONS), 0);
	CHECK_EQ(ptrace(PTRACE_SYSCALL, pid, 0, 0), 0);
	CHECK_EQ(count_calls(pid, SYS_close, STRANGE), 20);
}

/* The tracer attaches while threads are in the kernel, in a call and idle. */
TEST(a_tracer_may_come_later)
{
	int fds[2], go[2], tids[16], count = 0;
	char path[32], ready;
	pid_t pid;

	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(pipe(go), 0);
	pid = test_fork();
	if (!pid) {
		char byte;

		raw_open(&raw, 1, 0);
		raw_post(&raw, 63, DEFER, SYS_read, fds[0], &byte, 1);
		close_strange(1);
		while (raw.entries[63].status != FLEXSC_BUSY)
			usleep(1000);
		CHECK_EQ(raw_shown(NULL, " bounced "), 0);
		CHECK_EQ(write(go[1], "r", 1), 1);
		/* Runs until the tracer has written a byte. */
		raw_finish(&raw, 1);
		CHECK_EQ(raw.entries[63].ret, 1);
		close_strange(20);
		raw_close(&raw);
		test_leave();
	}
	CHECK_EQ(read(go[0], &ready, 1), 1);
	for (int tid = pid; tid < pid + 16; tid++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
		if (access(path, F_OK))
			continue;
		CHECK_EQ(ptrace(PTRACE_SEIZE, tid, 0, OPTIONS), 0);
		CHECK_EQ(ptrace(PTRACE_INTERRUPT, tid, 0, 0), 0);
		tids[count++] = tid;
	}
	CHECK(count >= 2);
	for (int i = 0; i < count; i++) {
		int status;

		CHECK_EQ(waitpid(tids[i], &status, __WALL), tids[i]);
		CHECK_EQ(ptrace(PTRACE_SYSCALL, tids[i], 0, 0), 0);
	}
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(count_calls(pid, SYS_close, STRANGE), 20);
}

/*
 * Tracepoints. Switching one modifies the kernel's code, which may fail on an
 * emulated machine with several processors. So only one is online meanwhile.
 */
static void watch(const char *event, bool on)
{
	char path[128];

	CHECK_EQ(system_set("/sys/devices/system/cpu/cpu1/online", "0"), 0);
	snprintf(path, sizeof(path), TRACING "events/%s/enable", event);
	CHECK_EQ(system_set(path, on ? "1" : "0"), 0);
	CHECK_EQ(system_set("/sys/devices/system/cpu/cpu1/online", "1"), 0);
}

/* Counts the lines of the trace that contain both words. */
static int traced(const char *one, const char *other)
{
	char *line = NULL;
	size_t size = 0;
	int lines = 0;
	FILE *trace = fopen(TRACING "trace", "re");

	CHECK(trace);
	while (getline(&line, &size, trace) > 0)
		lines += strstr(line, one) && strstr(line, other);
	free(line);
	fclose(trace);
	return lines;
}

RAW_TEST(a_tracepoint_sees_all_calls)
{
	CHECK_EQ(system_set(TRACING "trace", ""), 0);
	watch("raw_syscalls/sys_enter", true);
	close_strange(20);
	watch("raw_syscalls/sys_enter", false);
	CHECK_EQ(traced("sys_enter: NR 3 (5eed,", ""), 20);
	CHECK_EQ(raw_shown(NULL, " bounced "), 20);
	/* The tracepoint is off by now. */
	close_strange(20);
	CHECK_EQ(raw_shown(NULL, " bounced "), 20);
}

RAW_TEST(entries_can_be_traced)
{
	CHECK_EQ(system_set(TRACING "trace", ""), 0);
	watch("flexsc", true);
	close_strange(20);
	watch("flexsc", false);
	for (int i = 0; i < 20; i++) {
		char index[16];

		snprintf(index, sizeof(index), " index=%d ", i);
		CHECK_EQ(traced("flexsc_submit: ", index), 1);
		CHECK_EQ(traced("flexsc_complete: ", index), 1);
	}
	CHECK_EQ(traced("flexsc_submit: ", " nr=3\n"), 20);
	CHECK_EQ(traced("flexsc_complete: ", " ret=-9\n"), 20);
	CHECK_EQ(raw_shown(NULL, " bounced "), 0);
}

/* debugfs shows correct counters after known events. */
TEST(counters_are_right)
{
	char bytes[3];
	int fds[2];

	raw_open(&raw, 1, 0);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(raw_shown(NULL, " entries "), 64);
	CHECK_EQ(raw_shown(NULL, " free "), 64);
	/* The owner executes ten entries, in one batch. */
	for (uint32_t i = 0; i < 10; i++)
		raw_post(&raw, i, 0, SYS_getppid);
	CHECK_EQ(raw_shown(NULL, " submitted "), 10);
	CHECK_EQ(raw_wait(&raw, FOREVER), FLEXSC_WAIT_LOOK);
	CHECK_EQ(raw_shown(NULL, " done "), 10);
	raw_finish(&raw, 10);
	CHECK_EQ(raw_shown(NULL, " inline "), 10);
	CHECK_EQ(raw_shown(NULL, " executed "), 0);
	CHECK_EQ(raw_shown(" core -1 ", " batches "), 1);
	CHECK_EQ(raw_shown(" core -1 ", " taken "), 10);
	CHECK_EQ(raw_shown(NULL, " waits "), 1);
	/* Three that wait, each in its own thread. */
	for (uint32_t i = 0; i < 3; i++)
		raw_post(&raw, i, DEFER, SYS_read, fds[0], &bytes[i], 1);
	do
		raw_kick(&raw);
	while (raw_shown(NULL, " busy ") < 3);
	while (raw_shown(NULL, " idle ") < 1)
		usleep(1000);
	CHECK_EQ(raw_shown(NULL, " blocked "), 3);
	CHECK_EQ(raw_shown(" core -1 ", " blocked "), 3);
	CHECK(raw_shown(NULL, " kicks ") >= 1);
	/* One of the three is cancelled. */
	CHECK_EQ(raw.entries[1].status, FLEXSC_BUSY);
	raw.entries[1].status = FLEXSC_CANCEL;
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_CANCEL, 1), 0);
	/* Otherwise the thread may still hold one of these. */
	raw_finish(&raw, 1);
	CHECK_EQ(write(fds[1], "ab", 2), 2);
	raw_finish(&raw, 2);
	CHECK_EQ(raw_shown(NULL, " cancelled "), 1);
	/*
	 * A thread updates its counters when it has no more work, after completing
	 * an entry.
	 */
	for (int ms = 0; ms < 8000 && raw_shown(NULL, " executed ") < 3; ms++)
		usleep(1000);
	CHECK_EQ(raw_shown(NULL, " executed "), 3);
	CHECK_EQ(raw_shown(NULL, " inline "), 10);
	CHECK_EQ(raw_shown(NULL, " bounced "), 0);
	CHECK_EQ(raw_shown(NULL, " takeovers "), 0);
	raw_close(&raw);
	/* The registration ends with its last user. */
	CHECK_EQ(raw_shown(NULL, " entries "), -1);
}

/*
 * The library makes a call itself because the process is traced, and cancels the
 * call. Another call, which the same threads make next, continues.
 */
TEST_LIMIT(a_bounced_call_is_cancelled, 60)
{
	struct flexsc_loop *loop = NULL;
	int64_t bounced = 0;
	char bytes[2];
	int fds[2][2];

	CHECK_EQ(pipe(fds[0]), 0);
	CHECK_EQ(pipe(fds[1]), 0);
	for (int round = 0; round < 300; round++) {
		struct call victim = CALL_INIT, other = CALL_INIT;

		/*
		 * A loop whose calls keep bouncing soon makes them without the
		 * module.
		 */
		if (round % 6 == 0) {
			loop = NEW_LOOP(.engine = "kmod");
			watch("raw_syscalls/sys_enter", true);
		}
		POST(loop, &victim, SYS_read, fds[0][0], &bytes[0], 1);
		run_for(loop, round % 8);
		CHECK_EQ(flexsc_loop_cancel(loop, &victim.cb), 0);
		POST(loop, &other, SYS_read, fds[1][0], &bytes[1], 1);
		CHECK(is_cancelled(await_call(loop, &victim)));
		run_for(loop, round % 3);
		CHECK_EQ(other.runs, 0);
		CHECK_EQ(write(fds[1][1], "x", 1), 1);
		CHECK_EQ(await_call(loop, &other), 1);
		if (round % 6 == 5) {
			bounced += raw_shown(NULL, " bounced ");
			CHECK_EQ(flexsc_loop_destroy(loop), 0);
			watch("raw_syscalls/sys_enter", false);
		}
	}
	CHECK(bounced >= 300);
}
