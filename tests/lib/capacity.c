/* SPDX-License-Identifier: MIT */
/* Many calls at the same time: more than there are entries, and a hundred thousand. */
#include "tests/harness/harness.h"
#include "tests/lib/counted.h"

static struct reader blocked[64];

/* A test whose loop has 64 entries, with a blocked read in each of them. */
#define EXHAUSTED_TEST(id)						\
	WAITING_TEST(id, .max_entries = 64, .max_threads = 4)

static void exhaust(void)
{
	struct flexsc_stats stats;

	for (unsigned int i = 0; i < 64; i++) {
		reader_open(&blocked[i]);
		blocked[i].call.cb.callback = call_done;
		reader_post(&blocked[i]);
	}
	run_for(loop, 20);
	stats = stats_of(loop);
	CHECK_EQ(stats.outstanding, 64);
	CHECK_EQ(stats.waited, 0);
	CHECK_EQ(stats.max_entries, 64);
	CHECK_EQ(stats.entries, 64);
}

static void free_entry(unsigned int i)
{
	reader_feed(&blocked[i]);
}

EXHAUSTED_TEST(calls_wait_for_an_entry_and_start_in_the_order_posted)
{
	static struct call calls[50];
	char text[50], got[51] = "";
	struct flexsc_stats stats;
	int out[2];

	exhaust();
	CHECK_EQ(pipe2(out, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < 50; i++) {
		text[i] = (char)('0' + i);
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_write, out[1], &text[i], 1);
	}
	run_for(loop, 50);
	CHECK_EQ(done, 0);
	stats = stats_of(loop);
	CHECK_EQ(stats.waiting, 50);
	CHECK_EQ(stats.waited, 50);
	CHECK_EQ(stats.outstanding, 114);
	CHECK_EQ(stats.entries, 64);
	/* From here on one entry is free, so the calls run one after the other. */
	free_entry(17);
	CHECK(run_until(loop, &done, 50, 10000));
	CHECK_EQ(blocked[17].call.cb.ret, 1);
	CHECK_EQ(read(out[0], got, sizeof(got)), 50);
	CHECK_EQ(memcmp(got, text, 50), 0);
	stats = stats_of(loop);
	CHECK_EQ(stats.waiting, 0);
	CHECK_EQ(stats.outstanding, 63);
	test_end_loop();
}

/* A posted close without a cb is made even if the loop ends before its turn. */
EXHAUSTED_TEST(a_close_that_waits_for_an_entry_outlives_the_loop)
{
	int fd;

	exhaust();
	fd = fcntl(0, F_DUPFD, 0);
	CHECK_EQ(flexsc_loop_close(loop, NULL, fd), 0);
	CHECK_EQ(stats_of(loop).waiting, 1);
	test_end_loop();
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
}

/*
 * A call that waits for an entry can be cancelled and can time out. The others keep
 * their order.
 */
EXHAUSTED_TEST(calls_that_wait_for_an_entry_end_early)
{
	struct call calls[3];
	int fd;

	exhaust();
	fd = fcntl(0, F_DUPFD, 0);
	for (unsigned int i = 0; i < 3; i++) {
		calls[i] = (struct call)CALL_INIT;
		POST(loop, &calls[i], i == 2 ? SYS_getppid : SYS_close, fd);
	}
	CHECK_EQ(flexsc_loop_cancel(loop, &calls[0].cb), 0);
	CHECK_EQ(flexsc_loop_deadline(loop, &calls[1].cb, 10 * MS), 0);
	CHECK_EQ(await_call(loop, &calls[0]), -ECANCELED);
	CHECK_EQ(await_call(loop, &calls[1]), -ETIME);
	CHECK(fcntl(fd, F_GETFD) >= 0);
	CHECK_EQ(calls[2].runs, 0);
	free_entry(3);
	CHECK_EQ(await_call(loop, &calls[2]), getppid());
	test_end_loop();
}

EXHAUSTED_TEST(calls_that_wait_are_cancelled_by_descriptor)
{
	struct call calls[4];
	char c;

	exhaust();
	for (unsigned int i = 0; i < 4; i++) {
		calls[i] = (struct call)CALL_INIT;
		POST(loop, &calls[i], SYS_read, blocked[i % 2].p[0], &c, 1);
	}
	CHECK_EQ(flexsc_loop_cancel_fd(loop, blocked[0].p[0]), 3);
	CHECK_EQ(await_call(loop, &calls[0]), -ECANCELED);
	CHECK_EQ(await_call(loop, &calls[2]), -ECANCELED);
	CHECK(is_cancelled(await_call(loop, &blocked[0].call)));
	run_for(loop, 20);
	CHECK_EQ(calls[1].runs + calls[3].runs, 0);
	test_end_loop();
	CHECK_EQ(calls[1].runs + calls[3].runs, 2);
}

/* Data for the blocked calls arrives while other calls wait for an entry. */
EXHAUSTED_TEST(calls_complete_when_entries_are_short)
{
	static struct reader many[500];

	exhaust();
	for (unsigned int i = 0; i < 500; i++) {
		reader_open(&many[i]);
		reader_post(&many[i]);
		reader_feed(&many[i]);
	}
	free_entry(0);
	CHECK(run_until(loop, &done, 500, 10000));
	for (unsigned int i = 0; i < 500; i++)
		CHECK_EQ(many[i].call.cb.ret, 1);
	for (unsigned int i = 1; i < 64; i++) {
		free_entry(i);
		CHECK_EQ(await_call(loop, &blocked[i].call), 1);
	}
}

/* Choose the core of the poller, to which the owner moves later. */
static void choose_core(cpu_set_t *chosen, char *list, size_t size)
{
	const int own = first_core();
	cpu_set_t mine;
	int core = own + 1;

	CHECK_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
	while (core < CPU_SETSIZE && !CPU_ISSET(core, &mine))
		core++;
	if (core == CPU_SETSIZE)
		SKIP("needs two cores");
	snprintf(list, size, "%d", core);
	CPU_ZERO(chosen);
	CPU_SET(core, chosen);
}

/*
 * Four times as many calls as the submission queue has room for. The owner and the poller
 * have the same real-time priority, so the poller runs only while the owner sleeps.
 */
TEST(a_poller_on_the_owners_core_takes_all_calls)
{
	const struct sched_param priority = { .sched_priority = 1 };
	static struct call calls[4096];
	cpu_set_t core;
	char list[16];

	choose_core(&core, list, sizeof(list));
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		SKIP("needs CAP_SYS_NICE");
	loop = NEW_LOOP(.kernel_cores = list);
	if (strcmp(flexsc_loop_engine(loop), "uring") || flexsc_loop_why(loop))
		SKIP("needs a poller");
	CHECK_EQ(sched_setaffinity(0, sizeof(core), &core), 0);
	for (unsigned int i = 0; i < 4096; i++) {
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_close, -1);
	}
	CHECK(run_until(loop, &done, 4096, 10000));
	for (unsigned int i = 0; i < 4096; i++)
		CHECK_EQ(calls[i].cb.ret, -EBADF);
	test_end_loop();
}

/* An open without a free descriptor fails. The loop continues to work. */
LOOP_TEST(lack_of_descriptors_fails_the_call)
{
	unsigned int opened = 0, refused = 0;
	struct rlimit limit;

	DO(loop, SYS_getppid);
	limit.rlim_cur = count_fds() + 10;
	limit.rlim_max = limit.rlim_cur;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (unsigned int i = 0; i < 40; i++) {
		int64_t fd = DO(loop, SYS_openat, AT_FDCWD, "/proc/self/comm",
				O_RDONLY, 0);

		CHECK(fd >= 0 || fd == -EMFILE);
		opened += fd >= 0;
		refused += fd < 0;
	}
	CHECK(opened > 0 && opened <= 10 && refused >= 30);
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
}

/* A hundred thousand calls. */

#define TOTAL		MANY(100000)

static size_t resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	CHECK(file);
	CHECK_EQ(fscanf(file, "%*u %lu", &pages), 1);
	fclose(file);
	return pages * (size_t)getpagesize();
}

static void *touched(size_t count, size_t size)
{
	char *p = malloc(count * size);

	CHECK(p);
	memset(p, 1, count * size);
	return memset(p, 0, count * size);
}

/*
 * Creates one eventfd per read, up to the limit on descriptors. Because of
 * EFD_SEMAPHORE, reads that share one take turns.
 */
static uint32_t make_eventfds(int *fds)
{
	uint32_t n = 0;

	raise_fd_limit(TOTAL + 100);
	while (n < TOTAL) {
		fds[n] = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
		if (fds[n] < 0)
			break;
		n++;
	}
	/* The test needs some descriptors for other purposes. */
	for (unsigned int i = 0; n < TOTAL && i < 20; i++)
		close(fds[--n]);
	CHECK(n >= 100);
	return n;
}

static void check_bytes(size_t resident)
{
	struct flexsc_stats stats = stats_of(loop);

	CHECK_EQ(stats.outstanding, TOTAL);
	test_note("%llu bytes per outstanding call, %zu resident",
		  (unsigned long long)stats.bytes / TOTAL, resident / TOTAL);
	CHECK(stats.bytes > 0 && stats.bytes / TOTAL <= 256);
	/* The reported size is realistic: the loop uses little other memory. */
	if (!SANITIZED)
		CHECK(resident < 256 * (size_t)TOTAL + (8 << 20));
}

WAITING_TEST_LIMIT(a_hundred_thousand_reads_complete_once_each_in_any_order, 60)
{
	struct call *calls = touched(TOTAL, sizeof(*calls));
	uint64_t *values = touched(TOTAL, sizeof(*values)), one = 1;
	uint32_t *order = touched(TOTAL, sizeof(*order)), n;
	int *fds = touched(TOTAL, sizeof(*fds));
	struct flexsc_stats stats;
	size_t before;

	n = make_eventfds(fds);
	before = resident_bytes();
	for (uint32_t i = 0; i < TOTAL; i++) {
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_read, fds[i % n], &values[i], 8);
	}
	run_for(loop, 100);
	CHECK_EQ(done, 0);
	check_bytes(resident_bytes() - before);
	shuffle(order, TOTAL);
	for (uint32_t i = 0; i < TOTAL; i++) {
		CHECK_EQ(write(fds[order[i] % n], &one, 8), 8);
		if (i % 1000 == 0)
			CHECK(flexsc_loop_dispatch(loop) >= 0);
	}
	CHECK(run_until(loop, &done, TOTAL, 50000));
	CHECK_EQ(flexsc_loop_run(loop), 0);
	CHECK_EQ(done, TOTAL);
	for (uint32_t i = 0; i < TOTAL; i++)
		CHECK(calls[i].runs == 1 && calls[i].cb.ret == 8 && values[i] == 1);
	stats = stats_of(loop);
	CHECK_EQ(stats.posted, TOTAL);
	CHECK_EQ(stats.completed, TOTAL);
	CHECK_EQ(stats.outstanding, 0);
	test_end_loop();
	free(calls);
	free(values);
	free(order);
	free(fds);
}

/* The kernel searches for each read to cancel, so more would take several seconds. */
#define CANCELLED	MANY(30000)

WAITING_TEST_LIMIT(tens_of_thousands_of_reads_are_cancelled, 60)
{
	struct call *calls = touched(CANCELLED, sizeof(*calls));
	uint64_t *values = touched(CANCELLED, sizeof(*values));
	int fd = eventfd(0, EFD_CLOEXEC), other = eventfd(0, EFD_CLOEXEC);

	for (unsigned int i = 0; i < CANCELLED; i++) {
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_read, i % 2 ? fd : other, &values[i], 8);
	}
	run_for(loop, 100);
	for (unsigned int i = 0; i < CANCELLED; i += 2)
		CHECK_EQ(flexsc_loop_cancel(loop, &calls[i].cb), 0);
	CHECK(run_until(loop, &done, CANCELLED / 2, 30000));
	CHECK_EQ(flexsc_loop_cancel_fd(loop, fd), CANCELLED / 2);
	CHECK(run_until(loop, &done, CANCELLED, 30000));
	for (unsigned int i = 0; i < CANCELLED; i++)
		CHECK(calls[i].runs == 1 && is_cancelled(calls[i].cb.ret));
	CHECK_EQ(stats_of(loop).cancelled, CANCELLED);
	test_end_loop();
	free(calls);
	free(values);
}

WAITING_TEST_LIMIT(tens_of_thousands_of_reads_end_with_their_loop, 60)
{
	struct call *calls = touched(CANCELLED, sizeof(*calls));
	uint64_t *values = touched(CANCELLED, sizeof(*values));
	int fd = eventfd(0, EFD_CLOEXEC);

	for (unsigned int i = 0; i < CANCELLED; i++) {
		calls[i].cb.callback = count_call;
		POST(loop, &calls[i], SYS_read, fd, &values[i], 8);
	}
	run_for(loop, 20);
	test_end_loop();
	CHECK_EQ(done, CANCELLED);
	free(calls);
	free(values);
}
