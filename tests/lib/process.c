/* SPDX-License-Identifier: MIT */
/*
 * Events that affect the whole process while calls are pending: it changes its user,
 * exits, or is killed.
 */
#include "tests/harness/harness.h"
#include "tests/lib/counted.h"

#include <grp.h>
#include <sys/file.h>

#define READERS	20
#define LOCKERS	10

static struct call readers[READERS], lockers[LOCKERS], sleeper;
static uint64_t values[READERS];
static int event, holder;

/* Calls that wait in io_uring, in an epoll set, and on syscall threads. */
static void post_waiting(void)
{
	static const struct timespec long_time = { 3600, 0 };

	event = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	enter_scratch();
	holder = open("lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK_EQ(flock(holder, LOCK_EX), 0);
	for (unsigned int i = 0; i < READERS; i++) {
		readers[i].cb.callback = count_call;
		POST(loop, &readers[i], SYS_read, event, &values[i], 8);
	}
	for (unsigned int i = 0; i < LOCKERS; i++) {
		lockers[i].cb.callback = count_call;
		POST(loop, &lockers[i], SYS_flock,
		     open("lock", O_RDWR | O_CLOEXEC), LOCK_SH);
	}
	sleeper.cb.callback = count_call;
	POST(loop, &sleeper, SYS_nanosleep, &long_time, NULL);
	run_for(loop, 100);
	CHECK_EQ(done, 0);
}

static void release_waiting(void)
{
	uint64_t n = READERS;

	CHECK_EQ(write(event, &n, 8), 8);
	CHECK_EQ(flock(holder, LOCK_UN), 0);
	CHECK_EQ(flexsc_loop_cancel(loop, &sleeper.cb), 0);
	CHECK(run_until(loop, &done, READERS + LOCKERS + 1, 10000));
	for (unsigned int i = 0; i < READERS; i++)
		CHECK(readers[i].runs == 1 && readers[i].cb.ret == 8);
	for (unsigned int i = 0; i < LOCKERS; i++)
		CHECK(lockers[i].runs == 1 && lockers[i].cb.ret == 0);
	CHECK(is_cancelled(sleeper.cb.ret));
}

/*
 * glibc's functions for this signal every thread, and wait for an answer from each,
 * including the library's threads.
 */
TEST(changing_the_user_disturbs_no_call)
{
	NEEDS_WAITING_ENGINE();
	if (geteuid() != 0)
		SKIP("needs root, to change the user");
	loop = test_loop();
	post_waiting();
	for (unsigned int i = 0; i < 20; i++) {
		CHECK_EQ(setegid(i & 1 ? 0 : 65534), 0);
		CHECK_EQ(seteuid(i & 1 ? 0 : 65534), 0);
		run_for(loop, 5);
	}
	CHECK_EQ(setegid(0), 0);
	CHECK_EQ(seteuid(0), 0);
	CHECK_EQ(done, 0);
	release_waiting();
	leave_scratch();
	CHECK_EQ(setgroups(0, NULL), 0);
	CHECK_EQ(setgid(65534), 0);
	CHECK_EQ(setuid(65534), 0);
	CHECK_EQ(DO(loop, SYS_getuid), 65534);
}

/* Syscall threads act on behalf of the process's new user. */
TEST(a_changed_user_holds_for_later_calls)
{
	if (geteuid() != 0)
		SKIP("needs root, to change the user");
	loop = test_loop();
	enter_scratch();
	close(open("secret", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	CHECK(DO(loop, SYS_openat, AT_FDCWD, "secret", O_RDONLY, 0) >= 0);
	CHECK_EQ(DO(loop, SYS_truncate, "secret", 0), 0);
	CHECK_EQ(setegid(65534), 0);
	CHECK_EQ(seteuid(65534), 0);
	CHECK_EQ(flexsc_identity_changed(), 0);
	CHECK_EQ(DO(loop, SYS_openat, AT_FDCWD, "secret", O_RDONLY, 0), -EACCES);
	CHECK_EQ(DO(loop, SYS_truncate, "secret", 0), -EACCES);
	CHECK_EQ(seteuid(0), 0);
	CHECK_EQ(setegid(0), 0);
}

static atomic_bool changing;

static void *change_user(void *arg)
{
	for (unsigned int i = 0; i < 100; i++) {
		CHECK_EQ(setegid(i & 1 ? 0 : 65534), 0);
		CHECK_EQ(setuid(0), 0);
	}
	atomic_store(&changing, false);
	return arg;
}

/* Threads start and end, and calls start and complete meanwhile. */
TEST(changing_the_user_while_calls_run)
{
	static const struct timespec brief = { 0, 1000 };
	struct call calls[16];
	pthread_t thread;

	NEEDS_WAITING_ENGINE();
	if (geteuid() != 0)
		SKIP("needs root, to change the user");
	loop = test_loop();
	atomic_store(&changing, true);
	thread = test_thread(change_user, NULL);
	while (atomic_load(&changing)) {
		done = 0;
		for (unsigned int i = 0; i < 16; i++) {
			calls[i] = (struct call){
				.cb = { .callback = count_call } };
			POST(loop, &calls[i],
			     i & 1 ? SYS_nanosleep : SYS_getppid, &brief, NULL);
		}
		CHECK(run_until(loop, &done, 16, 10000));
		for (unsigned int i = 0; i < 16; i++)
			CHECK_EQ(calls[i].cb.ret, i & 1 ? 0 : getppid());
	}
	pthread_join(thread, NULL);
}

/* Exit. */

/*
 * The child's pending calls hold the write end, so p[0] reports the end of the file
 * when they are gone.
 */
static int child_with_work(int p[2], void (*end)(void))
{
	static const struct pollfd none = { .fd = -1 };
	static struct call writer, poller;
	static char data[4096];
	int pid = test_fork();

	if (pid)
		return pid;
	close(p[0]);
	loop = test_loop();
	post_waiting();
	while (write(p[1], data, sizeof(data)) == sizeof(data))
		;
	CHECK_EQ(fcntl(p[1], F_SETFL, 0), 0);
	writer.cb.callback = call_done;
	poller.cb.callback = call_done;
	POST(loop, &writer, SYS_write, p[1], data, sizeof(data));
	POST(loop, &poller, SYS_ppoll, &none, 1, NULL, NULL, 8);
	run_for(loop, 50);
	CHECK_EQ(kill(getpid(), SIGSTOP), 0);
	end();
	for (;;)
		pause();
}

static int await_end(int pid, int p[2])
{
	static char buf[4096];
	int status, poll_ret;
	ssize_t n;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	do {
		struct pollfd fd = { .fd = p[0], .events = POLLIN };

		poll_ret = poll(&fd, 1, -1);
		CHECK_EQ(poll_ret, 1);
		n = read(p[0], buf, sizeof(buf));
	} while (n > 0);
	CHECK_EQ(n, 0);
	/* The test hasn't inherited any processes of the child. */
	CHECK_EQ(waitpid(-1, NULL, 0), -1);
	CHECK_EQ(errno, ECHILD);
	return status;
}

static int end_with_work(void (*end)(void), int signo)
{
	int p[2], pid, status;

	CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	CHECK_EQ(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	CHECK_EQ(fcntl(p[0], F_SETFL, 0), 0);
	pid = child_with_work(p, end);
	close(p[1]);
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status));
	CHECK_EQ(kill(pid, signo), 0);
	status = await_end(pid, p);
	leave_scratch();
	return status;
}

static void exit_at_once(void)
{
	exit(0);
}

static void *exit_from_thread(void *arg)
{
	(void)arg;
	exit(0);
}

static void exit_elsewhere(void)
{
	test_thread(exit_from_thread, NULL);
}

static void never_returns(void)
{
	for (;;)
		pause();
}

TEST(a_killed_process_leaves_nothing)
{
	NEEDS_WAITING_ENGINE();
	CHECK_EQ(end_with_work(never_returns, SIGKILL), SIGKILL);
}

TEST(a_process_exits_with_work_pending)
{
	NEEDS_WAITING_ENGINE();
	CHECK_EQ(end_with_work(exit_at_once, SIGCONT), 0);
}

TEST(a_thread_exits_the_process_with_work_pending)
{
	NEEDS_WAITING_ENGINE();
	CHECK_EQ(end_with_work(exit_elsewhere, SIGCONT), 0);
}
