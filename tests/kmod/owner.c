// SPDX-License-Identifier: MIT
/*
 * The owner in FLEXSC_IOC_WAIT: blocked in an entry while it is due in user mode,
 * handing over its role, and asleep while other threads execute entries. Uses the
 * module's own interface. Runs in a guest, as root.
 */
#include "raw.h"
#include "system.h"

#include <linux/userfaultfd.h>

/* A registration with an idle syscall thread. */
static void open_with_idle_thread(void)
{
	raw_begin(1, 0);
	raw_thread(&raw);
	raw_await_sleepers();
}

/*
 * The owner executes a read that blocks. The owner's wait ends after "least" at the
 * earliest.
 */
static void block_owner(uint32_t others, uint64_t timeout, uint64_t least)
{
	uint64_t begin;
	char byte;

	open_with_idle_thread();
	begin = now_ns();
	raw_post(&raw, 0, 0, SYS_read, fds[0], &byte, 1);
	for (uint32_t i = 1; i <= others; i++)
		raw_post(&raw, i, 0, SYS_getppid);
	CHECK_EQ(raw_wait(&raw, timeout), FLEXSC_WAIT_LOOK);
	CHECK(now_ns() - begin >= least);
	raw_collect(&raw, 1 + others);
	CHECK_EQ(raw.entries[0].ret, -EINTR);
	CHECK(raw.entries[0].nargs & FLEXSC_INTERRUPTED);
	if (others)
		CHECK_EQ(raw.entries[1].ret, getppid());
	raw_close(&raw);
}

TEST(a_blocked_owner_is_interrupted)
{
	block_owner(1, FOREVER, 0);
}

TEST(a_blocked_owners_time_is_limited)
{
	block_owner(0, 100 * MS, 99 * MS);
}

TEST(a_blocked_owner_that_must_not_wait_is_interrupted)
{
	block_owner(0, 0, 0);
}

/* The role is handed on. In each round the last entry blocks. */
static _Atomic int owners;
static _Atomic int takeovers;

static void go_on(struct raw *r)
{
	CHECK_EQ(atomic_fetch_add(&owners, 1), 0);
	atomic_fetch_add(&takeovers, 1);
	atomic_fetch_sub(&owners, 1);
	/* Gives the role back: this write ends the read of the previous owner. */
	CHECK_EQ(write(fds[1], "z", 1), 1);
}

/* Creates two idle threads. A thread that gets the role calls taken_over(). */
static void hand_over_to(void (*taken_over)(struct raw *raw))
{
	raw.flags = FLEXSC_WAIT_HANDOVER;
	raw.taken_over = taken_over;
	raw_thread(&raw);
	raw_thread(&raw);
	raw_await_sleepers();
}

/* If a thread that is still active takes the read, the owner sleeps instead. */
RAW_TEST(the_role_is_handed_over)
{
	char byte = 0;
	int taken = 0;

	hand_over_to(go_on);
	for (int round = 0; round < 50; round++) {
		raw_post(&raw, 0, 0, SYS_read, fds[0], &byte, 1);
		raw_post(&raw, 1, 0, SYS_getppid);
		if (raw_wait(&raw, FOREVER) == FLEXSC_WAIT_TAKEN)
			CHECK_EQ(takeovers, ++taken);
		else
			CHECK_EQ(write(fds[1], "z", 1), 1);
		raw_collect(&raw, 2);
		CHECK_EQ(raw.entries[0].ret, 1);
		CHECK_EQ(raw.entries[1].ret, getppid());
	}
	CHECK_EQ(takeovers, taken);
	CHECK(taken > 0);
}

/*
 * A driver that sleeps even in poll(): an epoll descriptor, while another thread's
 * epoll_wait() waits for the page to which it writes.
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

/* Returns a page that is missing until the test provides it. */
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

RAW_TEST(a_thread_in_poll_does_not_delay_others)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct uffdio_zeropage zero = { .range = { 0, 4096 } };
	struct uffd_msg fault;
	pthread_t fetcher, owner;
	void *page;

	raw_thread(&raw);
	/* Otherwise the owner would leave the entry to a new thread. */
	raw_await_sleepers();
	CHECK_EQ(write(fds[1], "x", 1), 1);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event), 0);
	page = missing_page();
	fetcher = test_thread(fetch, page);
	CHECK_EQ(read(faults, &fault, sizeof(fault)), sizeof(fault));
	raw_post(&raw, 0, FLEXSC_MAY_SLEEP | FLEXSC_IF_READABLE,
		 SYS_epoll_pwait, epoll, &event, 1);
	raw_post(&raw, 1, 0, SYS_getppid);
	owner = test_thread(wait_once, NULL);
	raw_await(&raw, 1, FLEXSC_DONE);
	/* The owner polls the file, and poll() hasn't returned yet. */
	CHECK(!atomic_load(&ended));
	CHECK_EQ(raw.entries[0].status, FLEXSC_SUBMITTED);
	zero.range.start = (uintptr_t)page;
	CHECK_EQ(ioctl(faults, UFFDIO_ZEROPAGE, &zero), 0);
	pthread_join(fetcher, NULL);
	pthread_join(owner, NULL);
	raw_finish(&raw, 2);
	CHECK_EQ(raw.entries[0].ret, 1);
	CHECK_EQ(raw.entries[1].ret, getppid());
}

/*
 * The new owner is notified of the call that the old owner still executes, although
 * there is no other thread that could do it.
 */
static void *end_blocking(void *arg)
{
	usleep(100000);
	CHECK_EQ(write(fds[1], "z", 1), 1);
	return arg;
}

static void wait_for_the_old(struct raw *r)
{
	pthread_t writer;

	raw_reap(r);
	CHECK_EQ(r->entries[0].status, FLEXSC_BUSY);
	writer = test_thread(end_blocking, NULL);
	while (!raw_reap(r))
		CHECK_EQ(raw_wait(r, FOREVER), FLEXSC_WAIT_LOOK);
	pthread_join(writer, NULL);
	atomic_store(&ended, true);
}

RAW_TEST(a_new_owner_is_notified_of_the_old_ones_call)
{
	char byte = 0;

	hand_over_to(wait_for_the_old);
	raw_post(&raw, 0, 0, SYS_read, fds[0], &byte, 1);
	raw_post(&raw, 1, 0, SYS_getppid);
	CHECK_EQ(raw_wait(&raw, FOREVER), FLEXSC_WAIT_TAKEN);
	while (!atomic_load(&ended))
		usleep(1000);
	CHECK_EQ(raw.entries[0].ret, 1);
	CHECK_EQ(byte, 'z');
}

/*
 * The only syscall thread blocks in a call that isn't marked as blocking. The
 * sleeping owner executes the entries behind it.
 */
static void *serve_alone(void *arg)
{
	struct flexsc_serve serve = SERVE_FIRST;
	int result;

	do {
		result = ioctl(raw.fd, FLEXSC_IOC_SERVE, &serve);
		serve.flags = FLEXSC_SERVE_NO_MORE;
	} while (result == FLEXSC_SERVE_MORE || result == FLEXSC_SERVE_AGAIN);
	CHECK_EQ(result, FLEXSC_SERVE_END);
	return arg;
}

/* Did the owner sleep until the syscall thread had finished its call? */
static bool owner_was_last(int urandom)
{
	static char much[1 << 24];
	pthread_t server, owner;
	const unsigned int n = 8 * test_slower();
	struct iovec parts[128];
	char byte = 0;
	bool last;

	CHECK(n <= 128);
	/*
	 * At a page fault the call would sleep, and the owner would take the next
	 * entry.
	 */
	memset(much, 1, sizeof(much));
	/* The call takes a second or more. The next entries are posted meanwhile. */
	for (unsigned int i = 0; i < n; i++)
		parts[i] = (struct iovec){ much, sizeof(much) };
	raw_begin(1, 0);
	server = test_thread(serve_alone, NULL);
	/* The first completion doesn't wake the owner. */
	raw.seen = 1;
	owner = test_thread(wait_once, NULL);
	raw_await_sleepers();
	raw_post(&raw, 0, FLEXSC_DEFER, SYS_readv, urandom, parts, n);
	raw_kick(&raw);
	while (raw.entries[0].status == FLEXSC_SUBMITTED)
		usleep(100);
	raw_post(&raw, 1, 0, SYS_read, fds[0], &byte, 1);
	raw_post(&raw, 2, 0, SYS_getppid);
	pthread_join(owner, NULL);
	/* Only the first entry may have ended since the owner woke. */
	last = raw.entries[0].status == FLEXSC_DONE &&
	       raw.entries[1].status == FLEXSC_BUSY &&
	       raw.entries[2].status == FLEXSC_DONE;
	CHECK_EQ(write(fds[1], "z", 1), 1);
	raw.seen = 0;
	/*
	 * If the owner made the read itself, the read was interrupted and has to be
	 * posted again.
	 */
	raw_finish(&raw, 3);
	CHECK_EQ(byte, 'z');
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_END), 0);
	pthread_join(server, NULL);
	raw_close(&raw);
	close(fds[0]);
	close(fds[1]);
	return last;
}

/*
 * If the machine or its host withholds the processor from the syscall thread for
 * long, the thread counts as blocked, and the owner correctly continues. That
 * doesn't happen each time, so the test tries several times.
 */
TEST_LIMIT(a_sleeping_owner_executes_last, 120)
{
	const int urandom = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	CHECK(urandom >= 0);
	for (unsigned int i = 0; i < 4; i++)
		if (owner_was_last(urandom))
			return;
	CHECK(!"the owner goes on while a syscall thread executes");
}

RAW_TEST(a_sleeping_owner_is_notified_while_others_work)
{
	static char bytes[32768];
	pthread_t owner;

	raw_thread(&raw);
	raw_thread(&raw);
	owner = test_thread(wait_once, NULL);
	raw_await_sleepers();
	for (uint32_t i = 0; i < 64; i++)
		raw_post(&raw, i, 0, SYS_getrandom, bytes, sizeof(bytes));
	raw_kick(&raw);
	while (!atomic_load(&ended)) {
		uint32_t index = raw_take(&raw);

		while (index != FLEXSC_NO_ENTRY) {
			uint32_t next = raw.entries[index].link;

			raw_push(&raw, index);
			index = next;
		}
	}
	pthread_join(owner, NULL);
}

RAW_TEST(the_wait_can_be_woken)
{
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_WAKE), 0);
	CHECK_EQ(raw_wait(&raw, FOREVER), 0);
	/* Another process may not wake it. */
	IN_CHILD
		CHECK(ioctl(raw.fd, FLEXSC_IOC_WAKE) == -1 && errno == EPERM);
}

/* The owner waits once, and creates no thread. */
static int wait_plainly(uint64_t timeout, uint32_t flags)
{
	raw.shared->seen = raw.seen;
	raw.shared->timeout = timeout;
	raw.shared->wait_flags = flags;
	return ioctl(raw.fd, FLEXSC_IOC_WAIT, 0);
}

/* The module requests a thread for the entry: the wait goes on, but must not sleep. */
RAW_TEST(a_wake_up_is_kept_while_a_thread_is_created)
{
	char byte;

	raw_post(&raw, 0, FLEXSC_DEFER, SYS_read, fds[0], &byte, 1);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_WAKE), 0);
	CHECK_EQ(wait_plainly(FOREVER, 0), FLEXSC_WAIT_MORE);
	raw_thread(&raw);
	CHECK_EQ(wait_plainly(FOREVER, 0), FLEXSC_WAIT_LOOK);
	CHECK_EQ(raw_take(&raw), FLEXSC_NO_ENTRY);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(raw_result(&raw)->ret, 1);
}

/* The owner never sleeps while the thread that it has created arrives. */
TEST_LIMIT(an_arriving_thread_is_requested_once, 120)
{
	for (int round = 0; round < 200; round++) {
		int requests = 0;
		char byte;

		raw_begin(1, 0);
		raw_post(&raw, 0, FLEXSC_DEFER, SYS_read, fds[0], &byte, 1);
		while (raw.entries[0].status != FLEXSC_BUSY) {
			if (wait_plainly(0, 0) != FLEXSC_WAIT_MORE)
				continue;
			requests++;
			raw_thread(&raw);
		}
		CHECK_EQ(requests, 1);
		CHECK_EQ(write(fds[1], "x", 1), 1);
		raw_collect(&raw, 1);
		raw_close(&raw);
		close(fds[0]);
		close(fds[1]);
	}
}

/*
 * The only syscall thread copies many bytes, then blocks until the owner's entry sends
 * the last one. Returns whether it had blocked already when the owner's wait began,
 * "delay" after the thread had begun.
 */
static bool block_last(const int pair[2], unsigned int delay)
{
	enum { MANY = 65536 };
	static char bytes[MANY + 1];
	bool blocked;

	CHECK_EQ(write(pair[1], bytes, MANY), MANY);
	raw_post(&raw, 0, FLEXSC_DEFER, SYS_recvfrom, pair[0], bytes, MANY + 1,
		 MSG_WAITALL);
	CHECK(ioctl(raw.fd, FLEXSC_IOC_KICK) >= 0);
	while (__atomic_load_n(&raw.entries[0].status, __ATOMIC_ACQUIRE) ==
	       FLEXSC_SUBMITTED)
		;
	for (volatile unsigned int i = 0; i < delay; i++)
		;
	raw_post(&raw, 1, 0, SYS_write, pair[1], bytes, 1);
	blocked = raw_needs_kick(&raw);
	for (uint32_t done = 0; done < 2; done += raw_reap(&raw))
		CHECK_EQ(wait_plainly(10 * SECOND, 0), FLEXSC_WAIT_LOOK);
	CHECK_EQ(raw.entries[0].ret, MANY + 1);
	CHECK_EQ(raw.entries[1].ret, 1);
	return blocked;
}

/* A probe, which records a stack trace, delays the owner before it enters the queue. */
static void delay_sleep(bool on)
{
	const char *enable = TRACING "events/kprobes/flexsc/enable";

	CHECK_EQ(system_set(TRACING "options/stacktrace", on ? "1" : "0"), 0);
	/* Opening the second file removes the probe, if there is one. */
	system_set(enable, "0");
	CHECK_EQ(system_set(TRACING "kprobe_events",
			    on ? "p:flexsc prepare_to_wait" : ""), 0);
	if (on)
		CHECK_EQ(system_set(enable, "1"), 0);
}

/* The delay adapts, so that the thread often blocks just when the owner falls asleep. */
TEST_LIMIT(the_last_thread_blocks_while_the_owner_falls_asleep, 120)
{
	const uint64_t end = now_ns() + 10 * SECOND;
	unsigned int rounds = 0, delay = 1000;
	pthread_t server;
	int pair[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	raw_open(&raw, 1, 0);
	server = test_thread(serve_alone, NULL);
	delay_sleep(true);
	while (now_ns() < end) {
		const unsigned int step = (unsigned int)(test_random() % 200);
		const uint64_t begin = now_ns();

		raw_await_sleepers();
		if (!block_last(pair, delay))
			delay += step;
		else if (delay > step)
			delay -= step;
		/* A lost wake-up would delay the owner until its time is up. */
		CHECK(now_ns() - begin < 10 * SECOND);
		rounds++;
	}
	delay_sleep(false);
	test_note("%u rounds", rounds);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_END), 0);
	pthread_join(server, NULL);
	raw_close(&raw);
}
