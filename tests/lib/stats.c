/* SPDX-License-Identifier: MIT */
/*
 * The statistics add up, report what happened, and can be read by other threads and
 * processes. And a loop without work uses no processor time.
 */
#include "tests/harness/harness.h"
#include "tests/lib/counted.h"


#define CALLS	1000

static struct call calls[CALLS];
static int readers[CALLS];

/*
 * Posts a call that waits, is fast, uses the disk, or belongs to the owner's thread,
 * depending on the index.
 */
static void post_mixture(unsigned int i)
{
	static const struct timespec brief = { 0, 1000000 };
	static char byte[CALLS];
	int p[2];

	calls[i].cb.callback = count_call;
	switch (i % 5) {
	case 0:
		POST(loop, &calls[i], SYS_getppid);
		break;
	case 1:
		POST(loop, &calls[i], SYS_nanosleep, &brief, NULL);
		break;
	case 2:
		POST(loop, &calls[i], SYS_openat, -1, "none", O_RDONLY, 0);
		break;
	case 3:
		POST(loop, &calls[i], SYS_gettid);
		break;
	case 4:
		CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
		readers[i] = p[1];
		POST(loop, &calls[i], SYS_read, p[0], &byte[i], 1);
		break;
	}
}

/* The number of calls made in all ways. */
static uint64_t ran(struct flexsc_stats s)
{
	return s.by_inline + s.by_uring + s.by_thread + s.by_kmod;
}

/*
 * Returns the statistics when this number of calls was counted: a syscall thread counts
 * its calls after their delivery.
 */
static struct flexsc_stats await_counts(uint64_t n)
{
	while (ran(stats_of(loop)) < n)
		sleep_ms(1);
	return stats_of(loop);
}

LOOP_TEST(every_call_is_counted_where_it_ran)
{
	bool waits = strcmp(test_engine(), "sync");
	struct flexsc_stats s;

	for (unsigned int i = 0; i < CALLS; i++)
		if (waits || i % 5 != 4)
			post_mixture(i);
	CHECK_EQ(stats_of(loop).posted, waits ? CALLS : CALLS * 4 / 5);
	CHECK_EQ(stats_of(loop).completed, 0);
	if (waits) {
		CHECK(run_until(loop, &done, CALLS * 4 / 5, 10000));
		for (unsigned int i = 4; i < CALLS; i += 5)
			CHECK_EQ(write(readers[i], "x", 1), 1);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	s = await_counts(stats_of(loop).posted);
	CHECK_EQ(s.completed, s.posted);
	CHECK_EQ(ran(s), s.posted);
	CHECK_EQ(s.batched, s.posted);
	CHECK(s.batches > 0 && s.batches <= s.batched);
	CHECK_EQ(s.cancelled + s.waited + s.outstanding + s.waiting, 0);
	CHECK(s.mode_switches > 0);
	CHECK(s.entries >= 64 && s.entries <= s.max_entries);
	if (strcmp(test_engine(), "sync") == 0) {
		CHECK_EQ(s.by_inline, s.posted);
		CHECK_EQ(s.threads, 0);
	}
}

/*
 * The kernel has the data in memory, so the owner makes these calls without an
 * engine.
 */
LOOP_TEST(attributes_of_open_files_are_read_inline)
{
	char name[] = "/tmp/flexsc-stats-XXXXXX";
	int fd = mkstemp(name), folder = open("/tmp", O_RDONLY | O_DIRECTORY);
	struct stat plain, posted;
	struct statx more;

	CHECK(fd >= 0 && folder >= 0);
	CHECK_EQ(fstat(fd, &plain), 0);
	for (int i = 0; i < 2; i++) {
		memset(&posted, 0xff, sizeof(posted));
		CHECK_EQ(DO(loop, SYS_fstat, fd, &posted), 0);
		CHECK(!memcmp(&plain, &posted, sizeof(plain)));
	}
	CHECK_EQ(DO(loop, SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &more),
		 0);
	CHECK_EQ(more.stx_ino, plain.st_ino);
	if (strcmp(test_engine(), "kmod"))
		CHECK_EQ(stats_of(loop).by_inline, 3);
	/* Calls that use a path, or that fail. */
	CHECK_EQ(DO(loop, SYS_statx, folder, name + 5, AT_EMPTY_PATH,
		    STATX_INO, &more), 0);
	CHECK_EQ(more.stx_ino, plain.st_ino);
	CHECK_EQ(DO(loop, SYS_statx, fd, name + 5, AT_EMPTY_PATH, STATX_INO,
		    &more), -ENOTDIR);
	CHECK_EQ(DO(loop, SYS_statx, fd, 1, AT_EMPTY_PATH, STATX_INO, &more),
		 -EFAULT);
	CHECK_EQ(DO(loop, SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, 1),
		 -EFAULT);
	CHECK_EQ(DO(loop, SYS_fstat, fd, 1), -EFAULT);
	CHECK_EQ(DO(loop, SYS_fstat, -1, &posted), -EBADF);
	CHECK_EQ(DO(loop, SYS_statx, AT_FDCWD, "/", 0, STATX_INO, &more), 0);
	unlink(name);
	close(fd);
	close(folder);
}

/* A cancelled call that never started doesn't count for any way. */
LOOP_TEST(cancelled_calls_are_counted_apart)
{
	struct flexsc_stats s;

	for (unsigned int i = 0; i < 100; i++) {
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_getppid);
		if (i % 4 == 0)
			CHECK_EQ(flexsc_loop_cancel(loop, &calls[i].cb), 0);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	s = await_counts(75);
	CHECK_EQ(s.posted, 100);
	CHECK_EQ(s.completed, 100);
	CHECK_EQ(s.cancelled, 25);
	CHECK_EQ(ran(s), 75);
}

/* Failures count only for calls without a cb, whichever way they end. */
LOOP_TEST(failures_without_a_cb_are_counted)
{
	struct flexsc_stats s;

	for (unsigned int i = 0; i < 10; i++) {
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_close, -1);
		CHECK_EQ(flexsc_loop_call(loop, NULL, ARGS(SYS_getppid)), 0);
	}
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[0].cb), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(stats_of(loop).failed_unseen, 0);
	CHECK_EQ(flexsc_loop_call(loop, NULL, ARGS(SYS_close, -1)), 0);
	POST(loop, &calls[0], SYS_unlinkat, AT_FDCWD, "none/none", 0);
	/* These two wait for the first call, and never run. */
	POST_AFTER(loop, &calls[0], 0, &calls[1], SYS_getppid);
	CHECK_EQ(flexsc_loop_getppid_after(loop, NULL, &calls[1].cb, 0), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	s = stats_of(loop);
	CHECK_EQ(s.failed_unseen, 2);
	CHECK_EQ(s.completed, 24);
}

LOOP_TEST(timers_and_deadlines_are_counted)
{
	for (unsigned int i = 0; i < 10; i++) {
		calls[i].cb.callback = count_call;
		CHECK_EQ(flexsc_loop_timer(loop, &calls[i].cb, MS), 0);
	}
	calls[10].cb.callback = count_call;
	POST(loop, &calls[10], SYS_getppid);
	CHECK_EQ(flexsc_loop_deadline(loop, &calls[10].cb, 60 * SECOND), 0);
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(stats_of(loop).timers, 11);
	CHECK_EQ(stats_of(loop).posted, 1);
}

LOOP_TEST(at_most_size_bytes_are_copied)
{
	struct {
		struct flexsc_stats stats;
		uint64_t beyond[2];
	} s;

	CHECK_EQ(DO(loop, SYS_getppid), getppid());
	memset(&s, 0x5a, sizeof(s));
	CHECK_EQ(flexsc_loop_stats(loop, &s.stats, 16), 0);
	CHECK_EQ(s.stats.posted, 1);
	CHECK_EQ(s.stats.completed, 1);
	CHECK_EQ(s.stats.cancelled, 0x5a5a5a5a5a5a5a5a);
	CHECK_EQ(flexsc_loop_stats(loop, &s.stats, sizeof(s)), 0);
	CHECK_EQ(s.stats.cancelled, 0);
	CHECK_EQ(flexsc_loop_stats(loop, NULL, 8), -EINVAL);
}

static atomic_bool reader_stop;

/* Counters never decrease, as seen by any reader at any time. */
static void *observe(void *arg)
{
	struct flexsc_stats last = { .posted = 0 };

	while (!atomic_load(&reader_stop)) {
		struct flexsc_stats now = stats_of(loop);

		CHECK(now.posted >= last.posted);
		CHECK(now.completed >= last.completed);
		CHECK(now.batched >= last.batched);
		CHECK(now.by_inline >= last.by_inline);
		CHECK(now.by_thread >= last.by_thread);
		CHECK(now.by_uring >= last.by_uring);
		last = now;
	}
	return arg;
}

LOOP_TEST(another_thread_may_read_the_statistics)
{
	pthread_t thread;

	thread = test_thread(observe, NULL);
	for (unsigned int i = 0; i < MANY(20000); i++)
		CHECK_EQ(DO(loop, SYS_getppid), getppid());
	atomic_store(&reader_stop, true);
	pthread_join(thread, NULL);
	CHECK_EQ(stats_of(loop).posted, MANY(20000));
}

/* Finds the memfd as another process would. */
static int published(void)
{
	char path[40];
	int fd = find_fd(FLEXSC_STATS_NAME);

	CHECK(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

LOOP_TEST(another_process_may_read_the_statistics)
{
	struct flexsc_stats_page page;
	int fd;

	for (unsigned int i = 0; i < 100; i++)
		CHECK_EQ(DO(loop, SYS_getppid), getppid());
	fd = published();
	CHECK_EQ(pread(fd, &page, sizeof(page), 0), sizeof(page));
	CHECK_EQ(page.magic, FLEXSC_STATS_MAGIC);
	CHECK_EQ(page.size, sizeof(page));
	CHECK_EQ(page.tid, gettid());
	CHECK_EQ(strcmp(page.engine, test_engine()), 0);
	CHECK_EQ(page.stats.posted, 100);
	CHECK_EQ(page.stats.completed, 100);
	close(fd);
}

TEST(a_batch_costs_few_mode_switches)
{
	static char page[CALLS][64];
	struct flexsc_stats before, after;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (strcmp(test_engine(), "uring"))
		SKIP("%s makes a system call for each call", test_engine());
	loop = test_loop();
	CHECK_EQ(DO(loop, SYS_pread64, fd, page[0], 64, 0), 64);
	before = stats_of(loop);
	for (unsigned int i = 0; i < CALLS; i++) {
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_pread64, fd, page[i], 64, i);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	after = stats_of(loop);
	CHECK_EQ(after.by_uring - before.by_uring, CALLS);
	CHECK(after.mode_switches - before.mode_switches < CALLS / 20);
}

/* Idle loops. */

static void work_in_threads(unsigned int n)
{
	static const struct timespec brief = { 0, 50000000 };

	done = 0;
	for (unsigned int i = 0; i < n; i++) {
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_nanosleep, &brief, NULL);
	}
	CHECK(run_until(loop, &done, n, 10000));
}

static uint64_t sleeps(void)
{
	struct rusage usage;

	CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
	return (uint64_t)usage.ru_nvcsw;
}

LOOP_TEST(a_loop_without_work_uses_no_processor_time)
{
	struct call reader = CALL_INIT;
	unsigned int looks = 8;
	uint64_t before, slept;
	char c;
	int p[2];

	work_in_threads(20);
	if (strcmp(test_engine(), "sync")) {
		CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
		POST(loop, &reader, SYS_read, p[0], &c, 1);
	}
	run_for(loop, 100);
	/*
	 * First with the owner asleep in the loop, then with the owner outside it. No
	 * thread wakes periodically, except a sanitizer's. On a busy machine, threads
	 * of the work before may still be ending at the first look.
	 */
	do {
		CHECK(looks--);
		before = cpu_ns();
		slept = sleeps();
		run_for(loop, 700);
		sleep_ms(700);
	} while (sleeps() - slept >= (SANITIZED ? 60 : 20) ||
		 cpu_ns() - before >= 40 * MS * (SANITIZED ? 4 : 1));
	test_end_loop();
}

/* Wakes until n calls have ended. Some of them may not be waiting yet. */
static void wake_futexes(uint32_t *word, unsigned int n)
{
	while (done < n) {
		PLAIN(SYS_futex, word, 1, n);
		run_for(loop, 5);
	}
}

/* Assumes that an idle syscall thread ends after two seconds. */
WAITING_TEST(threads_grow_on_demand_and_shrink_again)
{
	static uint32_t word;
	unsigned int most = 0;

	for (unsigned int i = 0; i < 32; i++) {
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_futex, &word, 0, 0, NULL);
	}
	while (most < 32) {
		run_for(loop, 10);
		most = (unsigned int)stats_of(loop).threads;
	}
	/* Beside the blocked threads, one thread per core may be active. */
	CHECK(most >= 32 && most <= 32 + sysconf(_SC_NPROCESSORS_ONLN));
	CHECK(count_tasks() >= 33);
	wake_futexes(&word, 32);
	CHECK(falls_to(count_tasks, 2 + TSAN_TASKS));
	run_for(loop, 1);
	CHECK(stats_of(loop).threads <= 1);
	work_in_threads(4);
	test_end_loop();
	CHECK(falls_to(count_tasks, 1 + TSAN_TASKS));
}

static atomic_bool core_held, core_free;

/* Keeps all threads of ordinary priority away from a core. */
static void *hold_core(void *core)
{
	const struct sched_param first = { .sched_priority = 1 };
	const char *why = NULL;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)(intptr_t)core, &set);
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(set), &set), 0);
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &first))
		why = "no real-time priority here";
	atomic_store(&core_held, true);
	while (!why && !atomic_load(&core_free))
		;
	return (void *)(uintptr_t)why;
}

/*
 * The pool must not start another syscall thread because one waits for a processor:
 * the new one would wait for the same processor.
 */
TEST(threads_without_a_processor_do_not_multiply)
{
	static const struct timespec brief = { 0, 1000000 };
	static uint32_t word;
	pthread_t holder;
	cpu_set_t mine;
	void *why;
	unsigned int most;
	uint64_t since;
	const int core = first_core();
	char name[16];

	NEEDS_WAITING_ENGINE();
	CHECK_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
	if (CPU_COUNT(&mine) < 2)
		SKIP("needs two cores");
	CPU_CLR(core, &mine);
	CHECK_EQ(sched_setaffinity(0, sizeof(mine), &mine), 0);
	snprintf(name, sizeof(name), "%d", core);
	loop = NEW_LOOP(.kernel_cores = name);
	/*
	 * Posted before the core is held, because the creation of the first thread
	 * would wait for it.
	 */
	calls[0].cb.callback = count_call;
	POST(loop, &calls[0], SYS_futex, &word, 0, 0, &brief);
	CHECK(run_until(loop, &done, 1, 10000));
	done = 0;
	holder = test_thread(hold_core, (void *)(intptr_t)core);
	while (!atomic_load(&core_held))
		sleep_ms(1);
	since = now_ns();
	for (unsigned int i = 0; i < 32; i++) {
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_futex, &word, 0, 0, NULL);
	}
	run_for(loop, 100);
	most = (unsigned int)stats_of(loop).threads;
	since = now_ns() - since;
	atomic_store(&core_free, true);
	CHECK_EQ(pthread_join(holder, &why), 0);
	if (why)
		SKIP("%s", (const char *)why);
	/* Ordinary threads get a small part of each second. */
	CHECK(most <= 3 || since > 900 * MS);
	wake_futexes(&word, 32);
}

WAITING_TEST(threads_stay_below_their_limit, .max_threads = 5)
{
	static uint32_t word;

	for (unsigned int i = 0; i < 100; i++) {
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_futex, &word, 0, 0, NULL);
	}
	/*
	 * An engine may create a part of its threads at first, and the others when
	 * it needs them.
	 */
	while (stats_of(loop).max_threads < 5)
		run_for(loop, 10);
	run_for(loop, 100);
	CHECK_EQ(stats_of(loop).max_threads, 5);
	CHECK(stats_of(loop).threads <= 5);
	CHECK(count_tasks() <= 6 + TSAN_TASKS);
	test_end_loop();
	CHECK_EQ(done, 100);
}
