// SPDX-License-Identifier: MIT
/*
 * Attacks on the kernel module by a process, one per test. The results of the
 * attacking calls don't matter: the kernel has to survive, without a warning. Runs
 * in a guest, as root.
 */
#include "ecb.h"

#include <linux/reboot.h>
#include <sys/signalfd.h>

/* Waits in many registrations, each inside another. */
static void nest(unsigned int nr, uint64_t a1, uint64_t a2)
{
	enum { COUNT = 200 };
	static struct raw raws[COUNT];

	for (int i = COUNT - 1; i >= 0; i--) {
		raw_open(&raws[i], 1, 0);
		if (i < COUNT - 1)
			raw_post(&raws[i], 0, 0, nr, raws[i + 1].fd, a1, a2);
		raws[i].shared->timeout = 0;
	}
	CHECK_EQ(raw_wait(&raws[0], 0), 0);
	CHECK_EQ(raw_reap(&raws[0]), 1);
	CHECK_EQ(raws[0].entries[0].ret, -ELOOP);
	for (int i = 0; i < COUNT; i++)
		raw_close(&raws[i]);
}

TEST(waits_dont_nest)
{
	nest(SYS_ioctl, FLEXSC_IOC_WAIT, 0);
	nest(SYS_lseek, 0, FLEXSC_WAIT_SEEK);
}

static char stack[65536] __attribute__((aligned(16)));

/* With all capabilities over its own namespaces. */
static int reboot_in_wait(void *arg)
{
	struct raw *raw = arg;

	raw_post(raw, 0, 0, SYS_reboot, LINUX_REBOOT_MAGIC1,
		 LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_POWER_OFF);
	raw->shared->timeout = 0;
	ioctl(raw->fd, FLEXSC_IOC_WAIT, 0);
	_exit(raw->entries[0].ret == -EOPNOTSUPP ? 0 : 1);
}

/* In a pid namespace, reboot() would end its thread, in the middle of the wait. */
RAW_TEST(a_call_that_ends_its_thread_is_refused)
{
	pid_t pid;

	become_nobody();
	pid = clone(reboot_in_wait, stack + sizeof(stack),
		    CLONE_VM | CLONE_FILES | CLONE_NEWUSER | CLONE_NEWPID |
			    SIGCHLD,
		    &raw);
	CHECK(pid > 0);
	test_reap(pid);
	CHECK_EQ(raw_reap(&raw), 1);
}

RAW_TEST(a_wait_inside_an_entry_may_not_serve)
{
	struct flexsc_serve serve = { .index = FLEXSC_NO_ENTRY, .core = -1 };

	raw_post(&raw, 0, 0, SYS_ioctl, raw.fd, FLEXSC_IOC_SERVE, &serve);
	CHECK_EQ(raw_wait(&raw, 0), 0);
	CHECK_EQ(raw.entries[0].ret, -ELOOP);
}

/*
 * The process has a single thread, so the kernel may use its descriptors without a
 * reference.
 */
TEST(a_registration_closes_itself)
{
	int closed = 0;

	for (int round = 0; round < 100; round++) {
		raw_open(&raw, 1, 0);
		raw_post(&raw, 0, 0, SYS_munmap, raw.shared, raw.args.area);
		raw_post(&raw, 1, 0, SYS_close, raw.fd);
		for (uint32_t i = 2; i < FLEXSC_PAGE_ENTRIES; i++)
			raw_post(&raw, i, 0, SYS_getppid);
		raw.shared->timeout = 0;
		CHECK((round % 2 ? lseek(raw.fd, 0, FLEXSC_WAIT_SEEK) :
				   ioctl(raw.fd, FLEXSC_IOC_WAIT, 0)) >= 0);
		/* If the wait was cut short, the entry hasn't closed the descriptor. */
		closed += close(raw.fd) == -1;
	}
	CHECK(closed > 50);
}

/* A syscall thread that creates no other threads. */
static void *stubborn(void *arg)
{
	struct flexsc_serve serve = { .index = FLEXSC_NO_ENTRY, .core = -1 };
	struct raw *raw = arg;
	int result;

	do
		result = ioctl(raw->fd, FLEXSC_IOC_SERVE, &serve);
	while (result == FLEXSC_SERVE_AGAIN || result == FLEXSC_SERVE_MORE);
	CHECK_EQ(result, FLEXSC_SERVE_END);
	return NULL;
}

/*
 * Leaves an entry to syscall threads, while one of them executes another entry.
 * There may be no idle thread.
 */
static void leave(struct raw *raw, uint32_t index, unsigned int nr, uint64_t a0)
{
	int result;

	raw_post(raw, index, FLEXSC_DEFER, nr, a0);
	raw->shared->timeout = 0;
	result = ioctl(raw->fd, FLEXSC_IOC_WAIT, 0);
	CHECK(result == FLEXSC_WAIT_LOOK || result == FLEXSC_WAIT_MORE);
}

/*
 * A sleep that continues after an interruption stays with its thread. This entry is
 * posted again at each stage.
 */
RAW_TEST(an_entry_is_posted_while_it_is_executed)
{
	struct timespec second = { 1, 0 };
	pthread_t threads[2];

	leave(&raw, 0, SYS_nanosleep, (uint64_t)&second);
	threads[0] = test_thread(stubborn, &raw);
	raw_await(&raw, 0, FLEXSC_BUSY);
	for (uint32_t i = 0; i < 3; i++)
		leave(&raw, i, SYS_getppid, 0);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_CANCEL, 0), 0);
	usleep(50000);
	leave(&raw, 0, SYS_getppid, 0);
	threads[1] = test_thread(stubborn, &raw);
	for (uint32_t i = 0; i < 3; i++)
		raw_await(&raw, i, FLEXSC_DONE);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_END), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* The completion queue's head changes faster than the module can read it. */
static void *hammer(void *arg)
{
	struct raw *raw = arg;

	while (!atomic_load(&raw->ending))
		for (int i = 0; i < 10000; i++)
			__atomic_fetch_add(&raw->shared->completions.head, 1,
					   __ATOMIC_RELAXED);
	return NULL;
}

RAW_TEST(the_completion_queue_is_scribbled_on)
{
	const uint64_t end = now_ns() + SECOND;
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		threads[i] = test_thread(hammer, &raw);
	while (now_ns() < end) {
		for (uint32_t i = 0; i < FLEXSC_PAGE_ENTRIES; i++)
			raw_post(&raw, i, 0, SYS_getppid);
		raw_wait(&raw, 0);
	}
	raw.ending = true;
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* Cancels all entries, constantly. */
static void *canceller(void *arg)
{
	struct raw *raw = arg;

	while (!atomic_load(&raw->ending))
		for (uint64_t i = 0; i < 2; i++)
			CHECK_EQ(ioctl(raw->fd, FLEXSC_IOC_CANCEL, i), 0);
	return NULL;
}

/*
 * The owner puts an entry aside and learns that no other thread will take it. So the
 * owner executes this entry after others. Both entries are interrupted: the second
 * one begins only when the interruption of the first one is over.
 */
TEST(an_owner_is_cancelled_again_and_again)
{
	static char bytes[1 << 20];
	struct iovec parts[256];
	const uint64_t end = now_ns() + 2 * SECOND;
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	for (int i = 0; i < 256; i++)
		parts[i] = (struct iovec){ bytes, sizeof(bytes) };
	while (now_ns() < end) {
		pthread_t thread;

		raw_open(&raw, 1, 0);
		raw_post(&raw, 0, DEFER, SYS_readv, fd, parts, 256);
		CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_WAIT, 0), FLEXSC_WAIT_MORE);
		raw.entries[0].nargs = 3;
		raw_post(&raw, 1, 0, SYS_readv, fd, parts, 256);
		thread = test_thread(canceller, &raw);
		raw.shared->wait_flags = FLEXSC_WAIT_NO_MORE;
		for (uint32_t done = 0; done < 2;) {
			CHECK(ioctl(raw.fd, FLEXSC_IOC_WAIT, 0) >= 0 ||
			      errno == EINTR);
			done += raw_reap(&raw);
		}
		raw.ending = true;
		CHECK_EQ(pthread_join(thread, NULL), 0);
		raw_close(&raw);
	}
	close(fd);
}

/* lseek() by the system-call interface of 32-bit programs. */
static int lseek_32(int fd, int offset, int whence)
{
	int ret;

	asm volatile("int $0x80"
		     : "=a" (ret)
		     : "a" (19), "b" (fd), "c" (offset), "d" (whence)
		     : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

/* Otherwise the entry would be executed as a 32-bit program's call. */
TEST(a_32_bit_call_executes_nothing)
{
	int status;
	pid_t pid = test_fork();

	if (!pid)
		_exit(lseek_32(-1, 0, 0) == -EBADF ? 0 : 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (status)
		SKIP("this kernel has no 32-bit calls");
	raw_open(&raw, 1, 0);
	raw_post(&raw, 0, 0, SYS_getppid);
	raw.shared->timeout = 0;
	CHECK_EQ(lseek_32(raw.fd, 0, FLEXSC_WAIT_SEEK), -EINVAL);
	CHECK_EQ(raw.entries[0].status, FLEXSC_SUBMITTED);
	CHECK_EQ(lseek(raw.fd, 0, FLEXSC_WAIT_SEEK), FLEXSC_WAIT_LOOK);
	CHECK_EQ(raw.entries[0].ret, getppid());
	raw_close(&raw);
}

/* Registers in a process that then ends. Returns its error, or 0. */
static int register_in_child(int fd)
{
	struct flexsc_register args = {
		.size = sizeof(args), .abi = FLEXSC_ABI_VERSION, .pages = 128,
	};
	int status;
	pid_t pid = test_fork();

	if (!pid)
		_exit(ioctl(fd, FLEXSC_IOC_REGISTER, &args) ? errno : 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Files that outlive their processes must not accumulate. */
TEST(memory_of_the_dead_is_limited)
{
	const struct rlimit most = { 800 << 10, 800 << 10 };
	int fds[2];

	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &most), 0);
	CHECK_EQ(syscall(SYS_setresuid, 1001, 1001, 1001), 0);
	for (int i = 0; i < 2; i++) {
		fds[i] = open("/dev/flexsc", O_RDWR | O_CLOEXEC);
		CHECK(fds[i] >= 0);
	}
	CHECK_EQ(register_in_child(fds[0]), 0);
	CHECK_EQ(register_in_child(fds[1]), ENOMEM);
	CHECK_EQ(close(fds[0]), 0);
	CHECK_EQ(register_in_child(fds[1]), 0);
}

/* Event control blocks. */

/* The signal that notifies is itself an event, which notifies again. */
TEST(a_notification_that_causes_itself_ends)
{
	struct flexsc_event_slot event;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	fd = signalfd(-1, &set, SFD_NONBLOCK);
	ecb_open(&ecb, 8, 0);
	ecb_watch(&ecb, fd, POLLIN, 0);
	ecb_store(&ecb.control->notify, ALL_GROUPS);
	for (int i = 0; i < 1000; i++) {
		raise(SIGURG);
		while (ecb_next(&ecb, ALL_GROUPS, &event))
			CHECK_EQ(sigwaitinfo(&set, NULL), SIGURG);
	}
	ecb_close(&ecb);
}

/* All slots are revoked, and none is taken: the module must not reuse them. */
TEST(slots_that_are_never_taken_run_out)
{
	enum { COUNT = 4096 };
	int fds[2];

	ecb_open(&ecb, COUNT, 0);
	ecb_store(&ecb.control->deliver, ALL_GROUPS);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(ecb_forget(&ecb, ecb_watch(&ecb, fds[0], POLLOUT, 0)), 0);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(ecb_try_watch(&ecb, fds[0], POLLIN, 0), -ENOSPC);
	ecb_close(&ecb);
}

/* One descriptor has the maximum of watches, and is closed. */
ECB_TEST_LIMIT(many_watches_of_one_descriptor_end_at_once, 120,
	       FLEXSC_ECB_EVENTS_MAX, 0)
{
	enum { COUNT = FLEXSC_ECB_FILE_WATCHES };

	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(ecb_watch(&ecb, fds[0], POLLIN, 0), i);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(ecb.control->held, COUNT);
	CHECK_EQ(close(fds[0]), 0);
	CHECK_EQ(ecb_forget(&ecb, 0), -ENOENT);
	CHECK_EQ(ecb_forget(&ecb, COUNT - 1), -ENOENT);
	ecb_deliver(&ecb, ALL_GROUPS);
	CHECK_EQ(ecb.control->pending, 0);
}
