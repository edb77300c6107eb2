// SPDX-License-Identifier: MIT
/*
 * The library's options kernel_cores, backlog and poll_us with the engine kmod. Runs in
 * a guest with four processors, as root.
 */
#include "place.h"
#include "tests/lib/counts_by_core.h"

#include <sys/resource.h>

/* A loop whose owner runs on processor 0. */
#define PLACED_LOOP(...)						\
	({								\
		if (sysconf(_SC_NPROCESSORS_ONLN) < 4)			\
			SKIP("needs four processors");			\
		CHECK(raw_move(0));					\
		NEW_LOOP(.engine = "kmod", __VA_ARGS__);		\
	})

/* The policy that the process's only registration has. */
static struct flexsc_policy policy_of_loop(void)
{
	struct flexsc_policy policy;
	int fd = find_fd("/dev/flexsc");

	CHECK(fd >= 0);
	CHECK_EQ(ioctl(fd, FLEXSC_IOC_GET_POLICY, &policy), 0);
	return policy;
}

/* Writes a mark by the loop. Returns the processor where the call executed. */
static int mark_by_loop(void)
{
	static int fd = -1, marked;

	if (fd < 0)
		fd = open(TRACING "trace_marker", O_WRONLY | O_CLOEXEC);
	snprintf(marks[0], sizeof(marks[0]), "library %d %d\n", getpid(), marked++);
	CHECK(DO(loop, SYS_write, fd, marks[0], strlen(marks[0])) > 0);
	return place_marked(0);
}

/* As place_prefers(), with calls of the loop. */
static bool loop_prefers(int core)
{
	for (int tries = 0; tries < 20; tries++) {
		int there = 0;

		for (int i = 0; i < 10; i++)
			there += mark_by_loop() == core;
		if (there >= 9)
			return true;
	}
	return false;
}

TEST(the_only_core_is_used)
{
	loop = PLACED_LOOP(.kernel_cores = "2");
	for (int i = 0; i < 10; i++)
		CHECK_EQ(mark_by_loop(), 2);
}

TEST(the_options_are_the_policy)
{
	const struct flexsc_policy all = {
		.cores = 3,
		.core = { 3, 1, 2 },
		.spin = FLEXSC_SPIN_ADAPTIVE,
		.spin_us = 123,
		.backlog = 5,
	};
	const struct flexsc_policy none = { .backlog = 64 };
	struct flexsc_policy got;

	loop = PLACED_LOOP(.kernel_cores = "3,1-2", .backlog = 5, .poll_us = 123,
			   .flags = FLEXSC_POLL_ADAPTIVE);
	got = policy_of_loop();
	got.idle_ms = 0;
	CHECK(!memcmp(&got, &all, sizeof(all)));
	test_end_loop();
	loop = PLACED_LOOP(.kernel_cores = "2", .poll_us = 50000);
	got = policy_of_loop();
	CHECK_EQ(got.spin, FLEXSC_SPIN_FIXED);
	CHECK_EQ(got.spin_us, FLEXSC_SPIN_US_MAX);
	test_end_loop();
	loop = PLACED_LOOP();
	got = policy_of_loop();
	got.idle_ms = 0;
	CHECK(!memcmp(&got, &none, sizeof(none)));
}

TEST_LIMIT(the_first_listed_core_is_preferred, 60)
{
	loop = PLACED_LOOP(.kernel_cores = "3,1");
	CHECK(loop_prefers(3));
	test_end_loop();
	loop = PLACED_LOOP(.kernel_cores = "1,3");
	CHECK(loop_prefers(1));
}

/* Posts many calls at a time, and waits for them. Each may sleep. */
static void write_many(int fd)
{
	enum { COUNT = 512, SIZE = 4096 };
	static struct call calls[COUNT];
	static char bytes[SIZE];

	for (int i = 0; i < COUNT; i++) {
		calls[i] = (struct call)CALL_INIT;
		POST(loop, &calls[i], SYS_pwrite64, fd, bytes, SIZE, 0);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(calls[i].cb.ret, SIZE);
}

TEST_LIMIT(a_backlog_uses_the_next_core, 60)
{
	const int fd = memfd_create("backlog", MFD_CLOEXEC);

	loop = PLACED_LOOP(.kernel_cores = "3,2", .backlog = 4);
	while (raw_shown(" core 2 ", " taken ") < 10)
		write_many(fd);
	CHECK(raw_shown(" core 3 ", " taken ") > 0);
}

/*
 * The module uses the next core, too, if a slow host keeps it from taking entries. So at
 * least once in many tries the next core must take none.
 */
TEST_LIMIT(a_shorter_backlog_does_not, 60)
{
	const int fd = memfd_create("backlog", MFD_CLOEXEC);
	int64_t before, tries = 0;

	loop = PLACED_LOOP(.kernel_cores = "3,2", .backlog = 100000);
	write_many(fd);
	do {
		CHECK(++tries < 200);
		before = raw_shown(" core 2 ", " taken ");
		write_many(fd);
	} while (raw_shown(" core 2 ", " taken ") != before);
	CHECK(raw_shown(" core 3 ", " taken ") > 0);
	test_note("%ld tries", (long)tries);
}

static int64_t spin_ns(void)
{
	return raw_shown(" spin ", " ns ");
}

TEST_LIMIT(polling_adapts_to_the_calls, 60)
{
	const int fd = memfd_create("adaptive", MFD_CLOEXEC);

	loop = PLACED_LOOP(.kernel_cores = "2", .poll_us = 8000,
			   .flags = FLEXSC_POLL_ADAPTIVE);
	CHECK_EQ(spin_ns(), 8000000);
	/* Each call comes later than the longest time of polling. */
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(DO(loop, SYS_pwrite64, fd, "x", 1, 0), 1);
		usleep(20000);
	}
	CHECK_EQ(spin_ns(), 1000);
	/* Now polling would find each call. */
	for (int i = 0; i < 5000 && spin_ns() < 8000000; i++)
		CHECK_EQ(DO(loop, SYS_pwrite64, fd, "x", 1, 0), 1);
	CHECK_EQ(spin_ns(), 8000000);
}

/* Each call is one entry, unless a slow host interrupts it. */
TEST(calls_are_counted_by_core)
{
	const int fd = memfd_create("counted", MFD_CLOEXEC);
	struct flexsc_stats_cores cores;

	loop = PLACED_LOOP(.kernel_cores = "3,1", .backlog = 4);
	for (int i = 0; i < 4; i++)
		write_many(fd);
	cores = read_cores();
	CHECK_EQ(cores.poller, 0);
	CHECK_EQ(cores.by_thread[0], 0);
	CHECK_EQ(cores.by_thread[2], 0);
	CHECK(cores.by_thread[3] > 0);
	CHECK(cores.by_thread[1] + cores.by_thread[3] >= 4 * 512);
	CHECK_EQ(cores.by_thread[3], raw_shown(" core 3 ", " taken "));
	CHECK_EQ(cores.by_thread[1], raw_shown(" core 1 ", " taken "));
}

/* A slow call occupies the only core. Calls that are cancelled behind it end at once. */
TEST(a_call_that_has_not_started_is_withdrawn_at_once)
{
	enum { AT_ONCE = 10, ROUNDS = 30 };
	static struct call calls[AT_ONCE];
	struct call slow = CALL_INIT;
	char byte;
	int fds[2];

	loop = PLACED_LOOP(.kernel_cores = "2", .max_entries = 1024);
	CHECK_EQ(pipe(fds), 0);
	POST(loop, &slow, SYS_readv, open("/dev/urandom", O_RDONLY | O_CLOEXEC),
	     place_slow_parts(), SLOW_PARTS);
	while (raw_shown(NULL, " busy ") != 1)
		run_for(loop, 1);
	for (int i = 0; i < ROUNDS; i++) {
		for (int j = 0; j < AT_ONCE; j++) {
			calls[j] = (struct call)CALL_INIT;
			POST(loop, &calls[j], SYS_read, fds[0], &byte, 1);
		}
		run_for(loop, 1);
		for (int j = 0; j < AT_ONCE; j++) {
			CHECK_EQ(flexsc_loop_cancel(loop, &calls[j].cb), 0);
			CHECK_EQ(await_call(loop, &calls[j]), -ECANCELED);
		}
		CHECK_EQ(slow.runs, 0);
	}
	/* A call that is posted now is still executed. */
	calls[0] = (struct call)CALL_INIT;
	POST(loop, &calls[0], SYS_read, fds[0], &byte, 1);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	run_for(loop, 5);
	CHECK_EQ(flexsc_loop_cancel(loop, &slow.cb), 0);
	CHECK_EQ(await_call(loop, &calls[0]), 1);
}

/* Closing descriptors in another thread, while calls use them. */
enum { CLOSED = 8, FULL = 65536 };
static int pipes[CLOSED][2];

/* Returns how often the thread slept. */
static void *close_pipes(void *arg)
{
	struct flexsc_loop *closer = NEW_LOOP(.engine = "sync");
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	for (int i = 0; i < CLOSED; i++)
		CHECK_EQ(DO(closer, SYS_close, pipes[i][1]), 0);
	getrusage(RUSAGE_THREAD, &after);
	*(long *)arg = after.ru_nvcsw - before.ru_nvcsw;
	CHECK_EQ(flexsc_loop_destroy(closer), 0);
	return arg;
}

TEST_LIMIT(a_close_does_not_wait_for_calls_that_have_blocked, 60)
{
	static struct call writes[CLOSED];
	static char bytes[FULL];
	long sleeps;

	loop = PLACED_LOOP(.kernel_cores = "2,3");
	for (int i = 0; i < CLOSED; i++) {
		CHECK_EQ(pipe(pipes[i]), 0);
		CHECK_EQ(write(pipes[i][1], bytes, FULL), FULL);
		writes[i] = (struct call)CALL_INIT;
		POST(loop, &writes[i], SYS_write, pipes[i][1], bytes, FULL);
	}
	while (raw_shown(" executed ", " blocked ") < CLOSED)
		run_for(loop, 10);
	pthread_join(test_thread(close_pipes, &sleeps), NULL);
	test_note("%ld sleeps", sleeps);
	CHECK(sleeps < 10 * CLOSED);
	for (int i = 0; i < CLOSED; i++) {
		CHECK_EQ(read(pipes[i][0], bytes, FULL), FULL);
		CHECK(run_until(loop, &writes[i].runs, 1, 10000));
		CHECK_EQ(writes[i].cb.ret, FULL);
		close(pipes[i][0]);
	}
}

/* The loop's entry that writes these bytes. */
static struct flexsc_entry *entry_writing(const char *bytes)
{
	uintptr_t at = 0, end = 0;
	char line[256];
	FILE *maps = fopen("/proc/self/maps", "re");

	CHECK(maps);
	while (!end && fgets(line, sizeof(line), maps))
		if (strstr(line, "/dev/flexsc"))
			CHECK_EQ(sscanf(line, "%lx-%lx", &at, &end), 2);
	fclose(maps);
	for (; at + sizeof(struct flexsc_entry) <= end; at += sizeof(uint64_t)) {
		struct flexsc_entry *entry = (struct flexsc_entry *)at;

		if (entry->nr == SYS_write && entry->args[1] == PTR(bytes))
			return entry;
	}
	CHECK(!"the loop's entries are mapped");
	return NULL;
}

struct closer {
	int fd;
	atomic_int tid;
	long sleeps;
};

static void *close_one(void *arg)
{
	struct flexsc_loop *with = NEW_LOOP(.engine = "sync");
	struct closer *closer = arg;
	struct rusage before, after;

	/* Each sleep may take so long that this test's thread can act before the last. */
	CHECK_EQ(prctl(PR_SET_TIMERSLACK, 20 * MS), 0);
	getrusage(RUSAGE_THREAD, &before);
	atomic_store(&closer->tid, (int)syscall(SYS_gettid));
	CHECK_EQ(DO(with, SYS_close, closer->fd), 0);
	getrusage(RUSAGE_THREAD, &after);
	closer->sleeps = after.ru_nvcsw - before.ru_nvcsw;
	CHECK_EQ(flexsc_loop_destroy(with), 0);
	return arg;
}

/*
 * Closes a descriptor beside a write whose entry is marked as blocked only after the
 * closing thread has found it unmarked. Returns how often that thread slept.
 */
static long sleeps_until_marked(void)
{
	static char bytes[FULL];
	struct call call = CALL_INIT;
	struct closer closer = { .tid = 0 };
	struct flexsc_entry *entry;
	pthread_t thread;
	int p[2];

	CHECK_EQ(pipe(p), 0);
	closer.fd = p[1];
	CHECK_EQ(write(p[1], bytes, FULL), FULL);
	POST(loop, &call, SYS_write, p[1], bytes, FULL);
	CHECK_EQ(flexsc_loop_submit(loop), 0);
	entry = entry_writing(bytes);
	while (__atomic_load_n(&entry->ret, __ATOMIC_RELAXED) != FLEXSC_BLOCKED)
		run_for(loop, 1);
	__atomic_store_n(&entry->ret, 0, __ATOMIC_RELAXED);
	thread = test_thread(close_one, &closer);
	while (!atomic_load(&closer.tid))
		usleep(1000);
	await_sleep(atomic_load(&closer.tid), SYS_nanosleep);
	__atomic_store_n(&entry->ret, FLEXSC_BLOCKED, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CHECK_EQ(read(p[0], bytes, FULL), FULL);
	CHECK_EQ(await_call(loop, &call), FULL);
	CHECK_EQ(close(p[0]), 0);
	return closer.sleeps;
}

/*
 * The closing thread looks 250 times at most, also while this test's thread lacks a
 * processor. So one early end in several rounds is enough.
 */
TEST_LIMIT(a_close_looks_again_whether_a_call_has_blocked, 60)
{
	enum { ROUNDS = 20, LOOKS = 250 };
	long sleeps = LOOKS;

	loop = PLACED_LOOP(.kernel_cores = "2,3");
	for (int i = 0; i < ROUNDS && sleeps >= LOOKS; i++)
		sleeps = sleeps_until_marked();
	test_note("%ld sleeps", sleeps);
	CHECK(sleeps > 0 && sleeps < LOOKS);
}
