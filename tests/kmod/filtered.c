// SPDX-License-Identifier: MIT
/*
 * No call bypasses a seccomp filter: the filter decides about the calls of entries,
 * too. Runs in a guest, as root, with the module's own interface.
 */
#include "raw.h"

#include <dirent.h>
#include <linux/seccomp.h>
#include <sys/ptrace.h>

/* A test whose registration permits a later filter. */
#define LATER_TEST(id)							\
	RAW_TEST_WITH(id, 20, 1, FLEXSC_REGISTER_FILTERED_LATER)

/*
 * From now on this call fails with ENOTNAM, in this thread and in those that it
 * creates.
 */
static void filter(int nr, unsigned int flags)
{
	CHECK_EQ(filter_install(&nr, 1, SECCOMP_RET_ERRNO | ENOTNAM,
				SECCOMP_RET_ALLOW, flags), 0);
}

/* The result of a call, made by any thread. */
static int64_t call(unsigned int nr)
{
	raw_post(&raw, 0, 0, nr);
	return raw_result(&raw)->ret;
}

static int try_register(uint32_t flags)
{
	struct flexsc_register args = {
		.size = sizeof(args),
		.abi = FLEXSC_ABI_VERSION,
		.flags = flags,
		.pages = 1,
	};
	int fd = open("/dev/flexsc", O_RDWR | O_CLOEXEC);
	int err;

	CHECK(fd >= 0);
	err = ioctl(fd, FLEXSC_IOC_REGISTER, &args) ? -errno : 0;
	close(fd);
	return err;
}

TEST(registering_under_a_filter_is_refused)
{
	filter(SYS_getppid, 0);
	CHECK_EQ(try_register(0), -EPERM);
	CHECK_EQ(try_register(FLEXSC_REGISTER_FILTERED_LATER), -EPERM);
	CHECK_EQ(try_register(FLEXSC_REGISTER_FILTERED), 0);
}

TEST(a_filter_sees_bounced_calls)
{
	filter(SYS_getppid, 0);
	raw_open(&raw, 1, FLEXSC_REGISTER_FILTERED);
	CHECK_EQ(call(SYS_getppid), -ENOTNAM);
	CHECK_EQ(call(SYS_getpid), getpid());
	/* A thread that is under the filter makes the call, not the owner. */
	CHECK(raw.threads > 0);
	CHECK_EQ(call(SYS_gettid), -EOPNOTSUPP);
	raw_close(&raw);
}

RAW_TEST(a_later_filter_ends_waiting_and_kicking)
{
	CHECK_EQ(call(SYS_getppid), getppid());
	filter(SYS_getppid, 0);
	raw_post(&raw, 0, 0, SYS_getppid);
	CHECK(raw_wait(&raw, 0) == -1 && errno == EPERM);
	CHECK(ioctl(raw.fd, FLEXSC_IOC_KICK) == -1 && errno == EPERM);
	CHECK_EQ(raw.entries[0].status, FLEXSC_SUBMITTED);
}

LATER_TEST(a_later_filter_sees_bounced_calls)
{
	CHECK_EQ(call(SYS_getppid), getppid());
	CHECK_EQ(raw.threads, 0);
	filter(SYS_getppid, 0);
	CHECK_EQ(call(SYS_getppid), -ENOTNAM);
	CHECK(raw.threads > 0);
}

/* Threads that aren't under the filter leave the kernel, whatever they execute. */
LATER_TEST(a_later_filter_does_not_apply_to_older_threads)
{
	char byte = 0;

	raw_post(&raw, 63, DEFER, SYS_read, fds[0], &byte, 1);
	while (raw.entries[63].status != FLEXSC_BUSY)
		CHECK(raw_wait(&raw, MS) >= 0);
	CHECK_EQ(call(SYS_getppid), getppid());
	CHECK(raw.threads >= 2);
	filter(SYS_getppid, 0);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(call(SYS_getppid), -ENOTNAM);
	/* A call that such a thread executes continues to its end. */
	CHECK_EQ(write(fds[1], "x", 1), 1);
	while (raw_reap(&raw) == 0)
		CHECK(raw_wait(&raw, FOREVER) >= 0);
	CHECK_EQ(byte, 'x');
	CHECK_EQ(call(SYS_getppid), -ENOTNAM);
}

/* The flag puts all existing threads under the filter. */
LATER_TEST(a_filter_for_all_threads_reaches_syscall_threads)
{
	raw_thread(&raw);
	raw_await_sleepers();
	filter(SYS_getppid, SECCOMP_FILTER_FLAG_TSYNC);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(call(SYS_getppid), -ENOTNAM);
}

#define TRACED_MOST	8

/* The syscall threads: all threads but the first. */
static int other_threads(pid_t tids[TRACED_MOST])
{
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	CHECK(dir);
	while ((entry = readdir(dir)))
		if (atoi(entry->d_name) && atoi(entry->d_name) != getpid()) {
			CHECK(n < TRACED_MOST);
			tids[n++] = atoi(entry->d_name);
		}
	closedir(dir);
	return n;
}

/* A tracer stops the threads outside their ioctls, until it gets a byte. */
static pid_t trace_others(int go[2])
{
	pid_t pid, tids[TRACED_MOST];
	const int n = other_threads(tids);
	int stopped[2], status;
	char c;

	CHECK_EQ(pipe(stopped), 0);
	CHECK_EQ(pipe(go), 0);
	pid = test_fork();
	if (pid) {
		CHECK_EQ(read(stopped[0], &c, 1), 1);
		return pid;
	}
	for (int i = 0; i < n; i++) {
		CHECK_EQ(ptrace(PTRACE_SEIZE, tids[i], NULL, NULL), 0);
		CHECK_EQ(ptrace(PTRACE_INTERRUPT, tids[i], NULL, NULL), 0);
		CHECK_EQ(waitpid(tids[i], &status, __WALL), tids[i]);
	}
	CHECK_EQ(write(stopped[1], "x", 1), 1);
	CHECK_EQ(read(go[0], &c, 1), 1);
	for (int i = 0; i < n; i++)
		CHECK_EQ(ptrace(PTRACE_DETACH, tids[i], NULL, NULL), 0);
	test_leave();
}

/*
 * An interrupted sleep continues in the thread that began it. If this thread is
 * under a filter by then, the call is made again, so that the filter sees it.
 */
LATER_TEST(a_filter_sees_a_sleep_that_goes_on)
{
	static const struct timespec minute = { 60, 0 };
	pid_t pid;
	int go[2];

	raw_post(&raw, 0, DEFER, SYS_nanosleep, &minute);
	while (raw.entries[0].status != FLEXSC_BUSY) {
		raw_kick(&raw);
		usleep(1000);
	}
	raw_await_sleepers();
	pid = trace_others(go);
	filter(SYS_nanosleep, SECCOMP_FILTER_FLAG_TSYNC);
	CHECK_EQ(write(go[1], "x", 1), 1);
	test_reap(pid);
	raw_finish(&raw, 1);
	CHECK_EQ(raw.entries[0].ret, -ENOTNAM);
}

/* For programs that may not call ioctl(). */
static long command(unsigned int number, uint64_t arg)
{
	return raw_syscall(SYS_lseek, (uint64_t)raw.fd, number | arg << 8,
			   FLEXSC_CALL_SEEK, 0, 0, 0);
}

RAW_TEST(commands_go_by_lseek)
{
	char byte;

	CHECK_EQ(command(_IOC_NR(FLEXSC_IOC_WAKE), 0), 0);
	CHECK_EQ(raw_wait(&raw, FOREVER), FLEXSC_WAIT_LOOK);
	raw_post(&raw, 3, DEFER, SYS_read, fds[0], &byte, 1);
	CHECK_EQ(command(_IOC_NR(FLEXSC_IOC_KICK), 0), FLEXSC_WAIT_MORE);
	raw_thread(&raw);
	raw_await(&raw, 3, FLEXSC_BUSY);
	CHECK(__sync_bool_compare_and_swap(&raw.entries[3].status, FLEXSC_BUSY,
					   FLEXSC_CANCEL));
	CHECK_EQ(command(_IOC_NR(FLEXSC_IOC_CANCEL), 64), -EINVAL);
	CHECK_EQ(command(_IOC_NR(FLEXSC_IOC_CANCEL), 3), 0);
	while (!raw_reap(&raw))
		CHECK(raw_wait(&raw, FOREVER) >= 0);
	CHECK(raw.threads > 0);
	CHECK_EQ(command(_IOC_NR(FLEXSC_IOC_END), 0), 0);
	while (atomic_load(&raw.threads))
		usleep(1000);
	CHECK_EQ(command(_IOC_NR(FLEXSC_IOC_SERVE), 0), -ENOTTY);
	CHECK_EQ(command(200, 0), -ENOTTY);
	CHECK(lseek(raw.fd, 0, SEEK_END) == -1 && errno == EINVAL);
}

LATER_TEST(calls_come_back_if_no_thread_can_be_created)
{
	filter(SYS_getppid, 0);
	raw_post(&raw, 0, 0, SYS_getppid);
	raw.shared->timeout = FOREVER;
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_WAIT, 0), FLEXSC_WAIT_MORE);
	raw.shared->wait_flags = FLEXSC_WAIT_NO_MORE;
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_WAIT, 0), FLEXSC_WAIT_LOOK);
	CHECK_EQ(raw_take(&raw), 0);
	CHECK_EQ(raw.entries[0].ret, -EAGAIN);
	CHECK(raw.entries[0].nargs & FLEXSC_INTERRUPTED);
}
