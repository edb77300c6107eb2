// SPDX-License-Identifier: MIT
/*
 * Events that stop a process or one of its threads while calls are in flight:
 * signals, the freezer, setuid(), task work, exec(). Calls that the kernel restarts
 * are restarted transparently. Runs in a guest, as root.
 */
#include "raw.h"
#include "system.h"

#include <linux/futex.h>
#include <sys/select.h>

#define ROOTS	"/sys/kernel/debug"	/* other users can't enter it */
#define ICE	"ice"

/* Shared by a test and its child. */
static struct shared {
	atomic_uint word;	/* a futex */
	atomic_int waiting;	/* set when the child's calls are in flight */
	atomic_int ended;
	atomic_int calls;
} *shared;

static void await(atomic_int *flag)
{
	while (!atomic_load(flag))
		usleep(1000);
}

/* Waits until this many entries execute. */
static void await_busy(uint32_t count)
{
	for (uint32_t busy = 0; busy < count;) {
		busy = 0;
		raw_kick(&raw);
		for (uint32_t i = 0; i < count; i++)
			busy += raw.entries[i].status == FLEXSC_BUSY;
		usleep(1000);
	}
}

/*
 * Calls that wait, in each of the kernel's ways to be interrupted: ERESTARTSYS,
 * ERESTARTNOHAND, a restart block, and plain EINTR.
 */
enum {
	READ, ACCEPT, FUTEX,		/* ERESTARTSYS */
	PPOLL, PSELECT,			/* ERESTARTNOHAND */
	POLL, NANOSLEEP,		/* ERESTART_RESTARTBLOCK */
	EPOLL,				/* EINTR */
	WAITING,
};

static int pipes[WAITING][2];
static int listener;

static void make_files(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	for (int i = 0; i < WAITING; i++)
		CHECK_EQ(pipe(pipes[i]), 0);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(listener >= 0);
	/* The kernel chooses the name. */
	CHECK_EQ(bind(listener, (void *)&name, sizeof(sa_family_t)), 0);
	CHECK_EQ(listen(listener, 1), 0);
}

static void wake_all(void)
{
	struct sockaddr_un name;
	socklen_t size = sizeof(name);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	for (int i = 0; i < WAITING; i++)
		CHECK_EQ(write(pipes[i][1], "x", 1), 1);
	CHECK_EQ(getsockname(listener, (void *)&name, &size), 0);
	CHECK_EQ(connect(fd, (void *)&name, size), 0);
	atomic_store(&shared->word, 1);
	syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void post(uint32_t index, unsigned int nr, const uint64_t *args)
{
	struct flexsc_entry *entry = &raw.entries[index];

	entry->nr = (uint16_t)nr;
	entry->nargs = 6 | DEFER;
	memcpy(entry->args, args, sizeof(entry->args));
	raw_push(&raw, index);
}

#define POST_TO(index, nr, ...)						\
	post(index, nr, (uint64_t[FLEXSC_ARGS_MAX]){ __VA_ARGS__ })

/* Waits in all of these calls, until they end. */
static void wait_in_all(void)
{
	static struct pollfd fds[2];
	static struct timespec second = { 1, 0 };
	static uint8_t event[12];
	static char byte;
	static fd_set set;
	int epoll = (int)syscall(SYS_epoll_create1, 0);
	/* Packed, as in the kernel. */
	uint32_t interest[3] = { POLLIN, 0, 0 };

	CHECK(epoll >= 0);
	CHECK_EQ(syscall(SYS_epoll_ctl, epoll, 1, pipes[EPOLL][0], interest), 0);
	fds[0] = (struct pollfd){ pipes[PPOLL][0], POLLIN, 0 };
	fds[1] = (struct pollfd){ pipes[POLL][0], POLLIN, 0 };
	FD_SET(pipes[PSELECT][0], &set);
	POST_TO(READ, SYS_read, (uint64_t)pipes[READ][0], PTR(&byte), 1);
	POST_TO(ACCEPT, SYS_accept, (uint64_t)listener);
	POST_TO(FUTEX, SYS_futex, PTR(&shared->word), FUTEX_WAIT, 0);
	POST_TO(PPOLL, SYS_ppoll, PTR(&fds[0]), 1, 0, 0, 8);
	POST_TO(PSELECT, SYS_pselect6, (uint64_t)pipes[PSELECT][0] + 1, PTR(&set));
	POST_TO(POLL, SYS_poll, PTR(&fds[1]), 1, 60000);
	POST_TO(NANOSLEEP, SYS_nanosleep, PTR(&second));
	POST_TO(EPOLL, SYS_epoll_wait, (uint64_t)epoll, PTR(event), 1, (uint64_t)-1);
	await_busy(WAITING);
	atomic_store(&shared->waiting, 1);
	raw_finish(&raw, WAITING);
	CHECK_EQ(raw.entries[READ].ret, 1);
	CHECK(raw.entries[ACCEPT].ret > 0);
	CHECK(raw.entries[FUTEX].ret == 0 || raw.entries[FUTEX].ret == -EAGAIN);
	CHECK_EQ(raw.entries[PPOLL].ret, 1);
	CHECK_EQ(raw.entries[PSELECT].ret, 1);
	CHECK_EQ(raw.entries[POLL].ret, 1);
	CHECK_EQ(raw.entries[NANOSLEEP].ret, 0);
	CHECK_EQ(raw.entries[EPOLL].ret, 1);
	CHECK_EQ(byte, 'x');
}

static pid_t start_waiting(void)
{
	pid_t pid;

	shared = system_share();
	make_files();
	pid = test_fork();
	if (!pid) {
		raw_open(&raw, 1, 0);
		wait_in_all();
		/* Without restarts the test would prove nothing. */
		CHECK(raw_shown(NULL, " restarted ") >= 5);
		raw_close(&raw);
		test_leave();
	}
	await(&shared->waiting);
	return pid;
}

TEST(calls_go_on_after_a_stop)
{
	pid_t pid = start_waiting();

	for (int i = 0; i < 10; i++) {
		system_stop(pid);
		usleep(10000);
		CHECK_EQ(kill(pid, SIGCONT), 0);
		usleep(10000);
	}
	system_stop(pid);
	wake_all();
	CHECK_EQ(kill(pid, SIGCONT), 0);
	test_reap(pid);
}

/* The freezer. */

static void freeze(bool on)
{
	CHECK(system_group_freeze(ICE, on));
}

static void put_on_ice(pid_t pid)
{
	system_group_make(ICE);
	system_group_enter(ICE, pid);
}

TEST(calls_go_on_after_a_freeze)
{
	pid_t pid = start_waiting();

	put_on_ice(pid);
	for (int i = 0; i < 10; i++) {
		freeze(true);
		freeze(false);
		usleep(10000);
	}
	freeze(true);
	wake_all();
	freeze(false);
	test_reap(pid);
	system_group_remove(ICE);
}

/* A process whose owner never waits, and one whose syscall thread never sleeps. */
static void keep_calling(uint32_t spin)
{
	struct flexsc_policy policy = {
		.backlog = 64, .spin = spin, .spin_us = 10000,
	};

	raw_open(&raw, 1, 0);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_SET_POLICY, &policy), 0);
	while (!atomic_load(&shared->ended)) {
		for (uint32_t i = 0; i < 64; i++)
			raw_post(&raw, i, i % 2 ? DEFER : 0, SYS_getppid);
		raw_finish(&raw, 64);
		for (uint32_t i = 0; i < 64; i++)
			CHECK_EQ(raw.entries[i].ret, getppid());
		atomic_fetch_add(&shared->calls, 64);
	}
	raw_close(&raw);
	test_leave();
}

TEST(a_busy_process_is_frozen)
{
	for (uint32_t spin = FLEXSC_SPIN_OFF; spin <= FLEXSC_SPIN_FIXED;
	     spin++) {
		pid_t pid;
		int calls;

		shared = system_share();
		pid = test_fork();
		if (!pid)
			keep_calling(spin);
		put_on_ice(pid);
		for (int i = 0; i < 10; i++) {
			calls = atomic_load(&shared->calls);
			while (atomic_load(&shared->calls) == calls)
				usleep(1000);
			freeze(true);
			calls = atomic_load(&shared->calls);
			usleep(5000);
			CHECK_EQ(atomic_load(&shared->calls), calls);
			freeze(false);
		}
		atomic_store(&shared->ended, 1);
		test_reap(pid);
		system_group_remove(ICE);
	}
}

/*
 * A call with a time limit continues with the remaining time. The calls are
 * interrupted so often that they would never end otherwise.
 */
static void sleep_in_all(void)
{
	/* Long enough that all calls have begun before the first one ends. */
	const unsigned int ms = 300 * test_slower();
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
	static uint32_t word;

	raw_open(&raw, 1, 0);
	POST_TO(0, SYS_nanosleep, PTR(&time));
	POST_TO(1, SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, PTR(&time));
	POST_TO(2, SYS_poll, 0, 0, ms);
	POST_TO(3, SYS_futex, PTR(&word), FUTEX_WAIT, 0, PTR(&time));
	await_busy(4);
	atomic_store(&shared->waiting, 1);
	raw_finish(&raw, 4);
	CHECK_EQ(raw.entries[0].ret, 0);
	CHECK_EQ(raw.entries[1].ret, 0);
	CHECK_EQ(raw.entries[2].ret, 0);
	CHECK_EQ(raw.entries[3].ret, -ETIMEDOUT);
	CHECK(raw_shown(NULL, " restarted ") > 0);
	atomic_store(&shared->ended, 1);
	raw_close(&raw);
	test_leave();
}

TEST(an_interrupted_time_limit_continues)
{
	pid_t pid;

	shared = system_share();
	pid = test_fork();
	if (!pid)
		sleep_in_all();
	await(&shared->waiting);
	for (int i = 0; !atomic_load(&shared->ended); i++) {
		CHECK(i < 300 * (int)test_slower());
		system_stop(pid);
		CHECK_EQ(kill(pid, SIGCONT), 0);
		usleep(30000);
	}
	test_reap(pid);
}

/* Threads and their process. */

RAW_TEST(setuid_reaches_syscall_threads)
{
	struct flexsc_policy policy = {
		.backlog = 64, .spin = FLEXSC_SPIN_FIXED, .spin_us = 10000,
	};
	char byte;

	raw_post(&raw, 0, DEFER, SYS_read, fds[0], &byte, 1);
	await_busy(1);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_SET_POLICY, &policy), 0);
	raw_post(&raw, 1, DEFER, SYS_chdir, ROOTS);
	raw_finish(&raw, 1);
	CHECK_EQ(raw.entries[1].ret, 0);
	/* One thread waits in a call, another one is idle or polls. */
	CHECK_EQ(setuid(1000), 0);
	raw_post(&raw, 1, DEFER, SYS_chdir, ROOTS);
	raw_finish(&raw, 1);
	CHECK_EQ(raw.entries[1].ret, -EACCES);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	raw_finish(&raw, 1);
	CHECK_EQ(raw.entries[0].ret, 1);
}

static bool hangs_up(int fd)
{
	struct pollfd wait = { fd, POLLIN, 0 };

	return poll(&wait, 1, 0) == 1 && wait.revents & POLLHUP;
}

/*
 * A file is closed by a syscall thread that stays in the kernel, or by the owner.
 * The other end has to see the close as soon as the call is complete.
 */
RAW_TEST(a_file_is_closed_at_once)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < 120; i++) {
		uint8_t flags = i % 2 ? DEFER : 0;
		uint64_t fd;
		int fds[2];

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		fd = (uint64_t)fds[1];
		if (i % 3 == 0)
			raw_post(&raw, 0, flags, SYS_close, fd);
		else if (i % 3 == 1)
			raw_post(&raw, 0, flags, SYS_dup2, null, fd);
		else
			raw_post(&raw, 0, flags, SYS_dup3, null, fd, O_CLOEXEC);
		if (flags) {
			raw_kick(&raw);
			while (__atomic_load_n(&raw.entries[0].status,
					       __ATOMIC_ACQUIRE) != FLEXSC_DONE)
				;
		} else {
			raw_finish(&raw, 1);
		}
		CHECK(hangs_up(fds[0]));
		CHECK(raw.entries[0].ret >= 0);
		if (flags)
			raw_finish(&raw, 1);
		close(fds[0]);
		if (i % 3)
			close(fds[1]);
	}
}
