// SPDX-License-Identifier: MIT
/*
 * The kernel module by its own interface: what libflexsc doesn't use of it, and
 * what it has to refuse. Runs in a guest, as root.
 */
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "raw.h"
#include "lib/calls/table.h"

#define FOREVER	UINT64_MAX

static struct raw raw;

/* Wait until so many have completed. */
static void finish(uint32_t count)
{
	uint32_t done = raw_reap(&raw);

	while (done < count) {
		CHECK(raw_wait(&raw, FOREVER) >= 0);
		done += raw_reap(&raw);
	}
	CHECK_EQ(done, count);
}

static struct flexsc_entry *completed(void)
{
	uint32_t index;

	while ((index = raw_take(&raw)) == FLEXSC_NO_ENTRY)
		CHECK(raw_wait(&raw, FOREVER) >= 0);
	CHECK_EQ(raw.entries[index].link, FLEXSC_NO_ENTRY);
	raw.seen++;
	raw.entries[index].status = FLEXSC_FREE;
	return &raw.entries[index];
}

static int64_t call(uint8_t flags, unsigned int nr, uint64_t a0, uint64_t a1,
		    uint64_t a2)
{
	raw_post(&raw, 0, flags, nr, a0, a1, a2);
	return completed()->ret;
}

TEST(a_call_is_executed)
{
	raw_open(&raw, 1, 0);
	CHECK_EQ(call(0, SYS_getppid, 0, 0, 0), getppid());
	CHECK_EQ(call(0, SYS_close, 12345, 0, 0), -EBADF);
	CHECK_EQ(raw.threads, 0);
	raw_close(&raw);
}

TEST(a_batch_is_executed)
{
	raw_open(&raw, 1024, 0);
	CHECK_EQ(raw.args.ring_entries, 65536);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 65536; i++)
			raw_post(&raw, i, 0, SYS_getppid, 0, 0, 0);
		finish(65536);
		for (uint32_t i = 0; i < 65536; i++)
			CHECK_EQ(raw.entries[i].ret, getppid());
	}
	raw_close(&raw);
}

TEST(what_acts_on_the_thread_is_refused)
{
	raw_open(&raw, 1, 0);
	CHECK_EQ(call(0, SYS_gettid, 0, 0, 0), -EOPNOTSUPP);
	CHECK_EQ(call(0, SYS_exit, 0, 0, 0), -EOPNOTSUPP);
	CHECK_EQ(call(0, SYS_clone, 0, 0, 0), -EOPNOTSUPP);
	CHECK_EQ(call(0, SYS_rt_sigreturn, 0, 0, 0), -EOPNOTSUPP);
	CHECK_EQ(call(0, 5000, 0, 0, 0), -ENOSYS);
	CHECK_EQ(call(0, 65535, 0, 0, 0), -ENOSYS);
	raw_close(&raw);
}

/* What the module has to answer, unless it makes the call: 0. */
static int64_t refusal(unsigned int nr)
{
	switch (flexsc__table_row(nr)->class) {
	case CLASS_FAST:
	case CLASS_DISK:
	case CLASS_WAIT:
		return 0;
	case CLASS_SELF:
	case CLASS_NEVER:
		return -EOPNOTSUPP;
	default:
		return -ENOSYS;
	}
}

/* Calls that came after 6.1: the module of an older kernel can't know them. */
static bool is_newer(unsigned int nr)
{
	const char *name = flexsc__table_row(nr)->name;

	return nr > SYS_set_mempolicy_home_node ||
	       (name && strstr(name, "probe"));
}

/* Its result: the error, or 0. */
static int64_t plain(unsigned int nr)
{
	long ret = syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L);

	return ret == -1 ? -errno : 0;
}

/*
 * With arguments that mean nothing each call says what a plain one says. Some
 * are there once (a session), so the plain one is made twice.
 */
TEST(what_the_table_allows_is_executed_and_nothing_else)
{
	int executed = 0;
	int64_t expected, ret;

	raw_open(&raw, 1, 0);
	for (unsigned int nr = 0; nr < 1024; nr++) {
		expected = refusal(nr);
		if (!expected) {
			executed++;
			plain(nr);
			expected = plain(nr);
		}
		for (int i = 0; i < FLEXSC_ARGS_MAX; i++)
			raw.entries[0].args[i] = UINT64_MAX;
		ret = call(0, nr, UINT64_MAX, UINT64_MAX, UINT64_MAX);
		if (expected == -EOPNOTSUPP && is_newer(nr) && ret == -ENOSYS)
			continue;
		if ((ret < 0 ? ret : 0) != expected)
			printf("# call %u, %s\n", nr,
			       flexsc__table_row(nr)->name);
		CHECK_EQ(ret < 0 ? ret : 0, expected);
	}
	CHECK(executed > 200);
	raw_close(&raw);
}

TEST(a_futex_with_an_owner_is_refused)
{
	static const int with_owner[] = {
		FUTEX_LOCK_PI, FUTEX_LOCK_PI2, FUTEX_UNLOCK_PI,
		FUTEX_TRYLOCK_PI, FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI,
	};
	uint32_t word = 0;

	raw_open(&raw, 1, 0);
	for (size_t i = 0; i < sizeof(with_owner) / sizeof(int); i++)
		for (int flags = 0; flags <= FUTEX_PRIVATE_FLAG;
		     flags += FUTEX_PRIVATE_FLAG)
			CHECK_EQ(call(0, SYS_futex, (uint64_t)&word,
				      (uint64_t)(with_owner[i] | flags), 0),
				 -EOPNOTSUPP);
	CHECK_EQ(word, 0);
	CHECK_EQ(call(0, SYS_futex, (uint64_t)&word, FUTEX_WAKE_PRIVATE, 1), 0);
	CHECK_EQ(call(0, SYS_futex, (uint64_t)&word, FUTEX_WAIT_PRIVATE, 1),
		 -EAGAIN);
	raw_close(&raw);
}

TEST(aside_is_for_a_syscall_thread)
{
	char byte = 0;
	int fds[2];

	raw_open(&raw, 1, 0);
	CHECK_EQ(pipe(fds), 0);
	raw_post(&raw, 0, FLEXSC_ASIDE | FLEXSC_MAY_SLEEP, SYS_read,
		 (uint64_t)fds[0], (uint64_t)&byte, 1);
	raw_post(&raw, 1, 0, SYS_getppid, 0, 0, 0);
	CHECK(completed() == &raw.entries[1]);
	CHECK_EQ(raw_wait(&raw, 50 * MS), 0);
	CHECK_EQ(raw_take(&raw), FLEXSC_NO_ENTRY);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK(completed() == &raw.entries[0]);
	CHECK_EQ(raw.entries[0].ret, 1);
	CHECK_EQ(byte, 'x');
	raw_close(&raw);
}

TEST(a_blocked_caller_is_interrupted)
{
	char byte = 0;
	int fds[2];

	raw_open(&raw, 1, 0);
	raw_thread(&raw);
	raw_await_sleepers();
	CHECK_EQ(pipe(fds), 0);
	/* The caller takes the read, and a thread what is behind it. */
	raw_post(&raw, 0, 0, SYS_read, (uint64_t)fds[0], (uint64_t)&byte, 1);
	raw_post(&raw, 1, 0, SYS_getppid, 0, 0, 0);
	CHECK_EQ(raw_wait(&raw, FOREVER), FLEXSC_WAIT_LOOK);
	finish(2);
	CHECK_EQ(raw.entries[1].ret, getppid());
	CHECK_EQ(raw.entries[0].ret, -EINTR);
	CHECK(raw.entries[0].nargs & FLEXSC_INTERRUPTED);
	raw_close(&raw);
}

TEST(a_blocked_callers_time_is_limited)
{
	struct timespec begin, end;
	char byte = 0;
	int fds[2];

	raw_open(&raw, 1, 0);
	raw_thread(&raw);
	raw_await_sleepers();
	CHECK_EQ(pipe(fds), 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	raw_post(&raw, 0, 0, SYS_read, (uint64_t)fds[0], (uint64_t)&byte, 1);
	CHECK_EQ(raw_wait(&raw, 100 * MS), FLEXSC_WAIT_LOOK);
	clock_gettime(CLOCK_MONOTONIC, &end);
	CHECK((end.tv_sec - begin.tv_sec) * 1000 +
	      (end.tv_nsec - begin.tv_nsec) / 1000000 >= 99);
	finish(1);
	CHECK(raw.entries[0].nargs & FLEXSC_INTERRUPTED);
	raw_close(&raw);
}

TEST(a_blocked_caller_that_must_not_wait_is_interrupted)
{
	char byte = 0;
	int fds[2];

	raw_open(&raw, 1, 0);
	raw_thread(&raw);
	raw_await_sleepers();
	CHECK_EQ(pipe(fds), 0);
	raw_post(&raw, 0, 0, SYS_read, (uint64_t)fds[0], (uint64_t)&byte, 1);
	CHECK_EQ(raw_wait(&raw, 0), FLEXSC_WAIT_LOOK);
	finish(1);
	CHECK_EQ(raw.entries[0].ret, -EINTR);
	CHECK(raw.entries[0].nargs & FLEXSC_INTERRUPTED);
	raw_close(&raw);
}

TEST(many_block_at_once)
{
	enum { COUNT = 256 };
	static char bytes[COUNT];
	int fds[COUNT][2];

	raw_open(&raw, 8, 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		CHECK_EQ(pipe(fds[i]), 0);
		raw_post(&raw, i, FLEXSC_ASIDE | FLEXSC_MAY_SLEEP, SYS_read,
			 (uint64_t)fds[i][0], (uint64_t)&bytes[i], 1);
	}
	CHECK_EQ(raw_wait(&raw, 500 * MS), 0);
	CHECK_EQ(raw_reap(&raw), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		CHECK_EQ(write(fds[COUNT - 1 - i][1], "y", 1), 1);
	finish(COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		CHECK_EQ(raw.entries[i].ret, 1);
		CHECK_EQ(bytes[i], 'y');
	}
	raw_close(&raw);
}

TEST(a_busy_entry_is_cancelled)
{
	char byte;
	int fds[2];

	raw_open(&raw, 1, 0);
	CHECK_EQ(pipe(fds), 0);
	for (int round = 0; round < 200; round++) {
		uint8_t busy = FLEXSC_BUSY;

		raw_post(&raw, 0, FLEXSC_ASIDE | FLEXSC_MAY_SLEEP, SYS_read,
			 (uint64_t)fds[0], (uint64_t)&byte, 1);
		while (raw.entries[0].status != FLEXSC_BUSY)
			CHECK(raw_wait(&raw, round % 3 * MS) >= 0);
		CHECK(__atomic_compare_exchange_n(&raw.entries[0].status, &busy,
						  FLEXSC_CANCEL, false,
						  __ATOMIC_SEQ_CST,
						  __ATOMIC_SEQ_CST));
		CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_CANCEL, 0), 0);
		CHECK(completed() == &raw.entries[0]);
		CHECK(raw.entries[0].ret == -EINTR ||
		      raw.entries[0].ret == -ECANCELED);
	}
	raw_close(&raw);
}

/* The role goes round; each round the last entry is the one that blocks. */
static _Atomic int callers;
static _Atomic int takeovers;
static int blocking[2];

static void go_on(struct raw *r)
{
	CHECK_EQ(atomic_fetch_add(&callers, 1), 0);
	atomic_fetch_add(&takeovers, 1);
	atomic_fetch_sub(&callers, 1);
	/* Gives the role back: this ends the read of who had it. */
	CHECK_EQ(write(blocking[1], "z", 1), 1);
	(void)r;
}

/* A thread that is still active may take the read; then the caller sleeps. */
TEST(the_role_is_handed_over)
{
	char byte = 0;
	int taken = 0;

	raw_open(&raw, 1, 0);
	raw.flags = FLEXSC_WAIT_HANDOVER;
	raw.taken_over = go_on;
	raw_thread(&raw);
	raw_thread(&raw);
	raw_await_sleepers();
	CHECK_EQ(pipe(blocking), 0);
	for (int round = 0; round < 50; round++) {
		raw_post(&raw, 0, 0, SYS_read, (uint64_t)blocking[0],
			 (uint64_t)&byte, 1);
		raw_post(&raw, 1, 0, SYS_getppid, 0, 0, 0);
		if (raw_wait(&raw, FOREVER) == FLEXSC_WAIT_TAKEN)
			CHECK_EQ(takeovers, ++taken);
		else
			CHECK_EQ(write(blocking[1], "z", 1), 1);
		finish(2);
		CHECK_EQ(raw.entries[0].ret, 1);
		CHECK_EQ(raw.entries[1].ret, getppid());
	}
	CHECK_EQ(takeovers, taken);
	CHECK(taken > 0);
	raw_close(&raw);
}

/*
 * A driver that sleeps even when it's only asked: an epoll descriptor, while
 * somebody else's epoll_wait() waits for the page that it writes to.
 */
static int epoll, faults;
static atomic_bool ended;

static void *fetch(void *page)
{
	CHECK_EQ(epoll_wait(epoll, page, 1, -1), 1);
	return NULL;
}

static void *wait_once(void *arg)
{
	CHECK(raw_wait(&raw, FOREVER) >= 0);
	atomic_store(&ended, true);
	return arg;
}

static pthread_t start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, run, arg), 0);
	return thread;
}

/* A page that isn't there before somebody says so. */
static void *missing_page(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED);
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	CHECK(faults >= 0);
	CHECK_EQ(ioctl(faults, UFFDIO_API, &api), 0);
	range.range.start = (uintptr_t)page;
	range.range.len = 4096;
	CHECK_EQ(ioctl(faults, UFFDIO_REGISTER, &range), 0);
	return page;
}

TEST(who_asks_in_vain_lets_others_go_on)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct uffdio_zeropage zero = { .range = { 0, 4096 } };
	struct uffd_msg fault;
	pthread_t fetcher, caller;
	void *page;
	int fds[2];

	raw_open(&raw, 1, 0);
	raw_thread(&raw);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event), 0);
	page = missing_page();
	fetcher = start(fetch, page);
	CHECK_EQ(read(faults, &fault, sizeof(fault)), sizeof(fault));
	raw_post(&raw, 0, FLEXSC_MAY_SLEEP | FLEXSC_IF_READABLE,
		 SYS_epoll_pwait, (uint64_t)epoll, (uint64_t)&event, 1);
	raw_post(&raw, 1, 0, SYS_getppid, 0, 0, 0);
	caller = start(wait_once, NULL);
	while (__atomic_load_n(&raw.entries[1].status, __ATOMIC_ACQUIRE) !=
	       FLEXSC_DONE)
		usleep(1000);
	/* The caller has asked, and has no answer yet. */
	CHECK(!atomic_load(&ended));
	CHECK_EQ(raw.entries[0].status, FLEXSC_SUBMITTED);
	zero.range.start = (uintptr_t)page;
	CHECK_EQ(ioctl(faults, UFFDIO_ZEROPAGE, &zero), 0);
	pthread_join(fetcher, NULL);
	pthread_join(caller, NULL);
	raw_finish(&raw, 2);
	CHECK_EQ(raw.entries[0].ret, 1);
	CHECK_EQ(raw.entries[1].ret, getppid());
	raw_close(&raw);
}

/*
 * The new caller hears of what the old one still executes: nobody else is there
 * to tell it.
 */
static void *end_blocking(void *arg)
{
	usleep(100000);
	CHECK_EQ(write(blocking[1], "z", 1), 1);
	return arg;
}

static void wait_for_the_old(struct raw *r)
{
	pthread_t writer;

	raw_reap(r);
	CHECK_EQ(r->entries[0].status, FLEXSC_BUSY);
	writer = start(end_blocking, NULL);
	while (!raw_reap(r))
		CHECK_EQ(raw_wait(r, FOREVER), FLEXSC_WAIT_LOOK);
	pthread_join(writer, NULL);
	atomic_store(&ended, true);
}

TEST(a_new_caller_hears_of_the_old_ones_call)
{
	char byte = 0;

	raw_open(&raw, 1, 0);
	raw.flags = FLEXSC_WAIT_HANDOVER;
	raw.taken_over = wait_for_the_old;
	raw_thread(&raw);
	raw_thread(&raw);
	raw_await_sleepers();
	CHECK_EQ(pipe(blocking), 0);
	raw_post(&raw, 0, 0, SYS_read, (uint64_t)blocking[0], (uint64_t)&byte,
		 1);
	raw_post(&raw, 1, 0, SYS_getppid, 0, 0, 0);
	CHECK_EQ(raw_wait(&raw, FOREVER), FLEXSC_WAIT_TAKEN);
	while (!atomic_load(&ended))
		usleep(1000);
	CHECK_EQ(raw.entries[0].ret, 1);
	CHECK_EQ(byte, 'z');
	raw_close(&raw);
}

/*
 * The last thread there is blocks in a call that wasn't said to: the caller,
 * who sleeps, executes what is behind it.
 */
static void *serve_alone(void *arg)
{
	struct flexsc_serve serve = {
		.index = FLEXSC_NO_ENTRY,
		.flags = FLEXSC_SERVE_FIRST,
		.core = -1,
	};
	int result;

	do {
		result = ioctl(raw.fd, FLEXSC_IOC_SERVE, &serve);
		serve.flags = FLEXSC_SERVE_NO_MORE;
	} while (result == FLEXSC_SERVE_MORE || result == FLEXSC_SERVE_AGAIN);
	CHECK_EQ(result, FLEXSC_SERVE_END);
	return arg;
}

TEST(a_sleeping_caller_is_the_last_one)
{
	static char much[1 << 24];
	const int urandom = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	pthread_t server, caller;
	const unsigned int n = 8 * test_slower();
	struct iovec parts[128];
	char byte = 0;

	CHECK(urandom >= 0 && n <= 128);
	/* A fault would have the call sleep, and the caller take the next. */
	memset(much, 1, sizeof(much));
	/* It takes a second or more: what follows is posted meanwhile. */
	for (unsigned int i = 0; i < n; i++)
		parts[i] = (struct iovec){ much, sizeof(much) };
	raw_open(&raw, 1, 0);
	CHECK_EQ(pipe(blocking), 0);
	server = start(serve_alone, NULL);
	/* It isn't woken by the first that completes. */
	raw.seen = 1;
	caller = start(wait_once, NULL);
	raw_await_sleepers();
	raw_post(&raw, 0, FLEXSC_ASIDE, SYS_readv, (uint64_t)urandom,
		 (uint64_t)parts, n);
	raw_kick(&raw);
	while (raw.entries[0].status == FLEXSC_SUBMITTED)
		usleep(100);
	raw_post(&raw, 1, 0, SYS_read, (uint64_t)blocking[0], (uint64_t)&byte,
		 1);
	raw_post(&raw, 2, 0, SYS_getppid, 0, 0, 0);
	pthread_join(caller, NULL);
	CHECK_EQ(raw.entries[0].status, FLEXSC_DONE);
	CHECK_EQ(raw.entries[1].status, FLEXSC_BUSY);
	CHECK_EQ(raw.entries[2].status, FLEXSC_DONE);
	CHECK_EQ(write(blocking[1], "z", 1), 1);
	raw.seen = 0;
	finish(3);
	CHECK_EQ(byte, 'z');
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_END), 0);
	pthread_join(server, NULL);
	raw_close(&raw);
}

/* Who sleeps hears of completions though others never run out of work. */
TEST(a_sleeping_caller_is_told_while_others_work)
{
	static char bytes[32768];
	pthread_t caller;

	raw_open(&raw, 1, 0);
	raw_thread(&raw);
	raw_thread(&raw);
	caller = start(wait_once, NULL);
	raw_await_sleepers();
	for (uint32_t i = 0; i < 64; i++)
		raw_post(&raw, i, 0, SYS_getrandom, (uint64_t)bytes,
			 sizeof(bytes), 0);
	raw_kick(&raw);
	while (!atomic_load(&ended)) {
		uint32_t index = raw_take(&raw);

		while (index != FLEXSC_NO_ENTRY) {
			uint32_t next = raw.entries[index].link;

			raw_push(&raw, index);
			index = next;
		}
	}
	pthread_join(caller, NULL);
	raw_close(&raw);
}

TEST(the_wait_can_be_woken)
{
	pid_t pid;

	raw_open(&raw, 1, 0);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_WAKE), 0);
	CHECK_EQ(raw_wait(&raw, FOREVER), 0);
	/* Not by another process. */
	pid = fork();
	if (!pid) {
		_exit(ioctl(raw.fd, FLEXSC_IOC_WAKE) == -1 && errno == EPERM
			      ? 0
			      : 1);
	}
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	raw_close(&raw);
}

TEST(bad_registrations_are_refused)
{
	struct flexsc_register good = {
		.size = sizeof(good), .abi = FLEXSC_ABI_VERSION, .pages = 1,
	}, bad;
	int fd = open("/dev/flexsc", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(ioctl(fd, FLEXSC_IOC_KICK) == -1 && errno == ENOTCONN);
	bad = good;
	bad.size = 8;
	CHECK(ioctl(fd, FLEXSC_IOC_REGISTER, &bad) == -1 && errno == EINVAL);
	bad.size = 4096;
	CHECK(ioctl(fd, FLEXSC_IOC_REGISTER, &bad) == -1 && errno == E2BIG);
	bad = good;
	bad.abi = 99;
	CHECK(ioctl(fd, FLEXSC_IOC_REGISTER, &bad) == -1 && errno == EPROTONOSUPPORT);
	bad = good;
	bad.flags = 0x80;
	CHECK(ioctl(fd, FLEXSC_IOC_REGISTER, &bad) == -1 && errno == EINVAL);
	bad = good;
	bad.reserved[2] = 1;
	CHECK(ioctl(fd, FLEXSC_IOC_REGISTER, &bad) == -1 && errno == EINVAL);
	for (uint32_t pages = 0; pages < 4; pages += 3) {
		bad = good;
		bad.pages = pages;
		CHECK(ioctl(fd, FLEXSC_IOC_REGISTER, &bad) == -1 &&
		      errno == EINVAL);
	}
	CHECK_EQ(ioctl(fd, FLEXSC_IOC_REGISTER, &good), 0);
	bad = good;
	CHECK(ioctl(fd, FLEXSC_IOC_REGISTER, &bad) == -1);
	close(fd);
}

/* udev gives it to a group; what the guest's root did to it doesn't count. */
/* It would post its parent's calls. */
TEST(a_child_does_not_have_the_pages)
{
	unsigned char here;
	int status;
	pid_t pid;

	raw_open(&raw, 1, 0);
	CHECK_EQ(mincore(raw.shared, 4096, &here), 0);
	pid = fork();
	if (!pid)
		_exit(mincore(raw.shared, 4096, &here) == 0 || errno != ENOMEM);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	raw_close(&raw);
}

TEST(the_device_is_not_for_everybody)
{
	char text[256];
	ssize_t n;
	int fd = open("/sys/class/misc/flexsc/uevent", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	CHECK(n > 0);
	text[n] = '\0';
	CHECK(strstr(text, "DEVMODE=0660\n"));
	close(fd);
}

TEST(bad_threads_are_refused)
{
	struct flexsc_serve good = { FLEXSC_NO_ENTRY, 0, 0, -1, 0 }, bad;

	raw_open(&raw, 1, 0);
	bad = good;
	bad.flags = 0x80;
	CHECK(ioctl(raw.fd, FLEXSC_IOC_SERVE, &bad) == -1 && errno == EINVAL);
	bad = good;
	bad.reserved = 1;
	CHECK(ioctl(raw.fd, FLEXSC_IOC_SERVE, &bad) == -1 && errno == EINVAL);
	/* What it never had in hand is nothing to go on with. */
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_END), 0);
	for (uint32_t i = 0; i < 128; i++) {
		bad = good;
		bad.index = i;
		CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_SERVE, &bad),
			 FLEXSC_SERVE_END);
	}
	CHECK_EQ(raw_take(&raw), FLEXSC_NO_ENTRY);
	raw_close(&raw);
}

TEST(memory_is_limited)
{
	struct flexsc_register args = {
		.size = sizeof(args), .abi = FLEXSC_ABI_VERSION, .pages = 1024,
	};
	struct rlimit none = { 65536, 65536 };
	int fd = open("/dev/flexsc", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	/* Root may lock what it likes; somebody else may not. */
	CHECK_EQ(syscall(SYS_setresuid, 1000, 1000, 1000), 0);
	CHECK(ioctl(fd, FLEXSC_IOC_REGISTER, &args) == -1 && errno == ENOMEM);
	args.pages = 8;
	CHECK_EQ(ioctl(fd, FLEXSC_IOC_REGISTER, &args), 0);
	close(fd);
}
