// SPDX-License-Identifier: MIT
/*
 * Guest instructions of a batch of 64 different calls, by the order in which they are
 * posted and by the cores that execute them, and of a chain. Runs like kmod-count: see
 * docs/explanation/results.md. "kmod-order mixed" prints, for each order, what the owner
 * executes per batch:
 *
 *	inline		posting, and executing on the waiting thread
 *	remote		posting and reaping, while another core executes
 *
 * "kmod-order chain" compares chains of open, read and close. "kmod-order classes", in a
 * guest with three processors, compares a loop with two kernel cores with two loops that
 * have one kernel core and one class of calls each.
 */
#include "raw.h"
#include "icount.h"

#include <sys/eventfd.h>

#include "lib/base/futex.h"

#define BATCH	64U
#define KINDS	8U

static char buffer[64];
static struct stat status;
static uint64_t word;

static struct what {
	uint16_t nr;
	uint8_t nargs;
	uint64_t args[4];
} kinds[KINDS];

static void make_kinds(void)
{
	uint64_t file = (uint64_t)memfd_create("mixed", MFD_CLOEXEC);
	uint64_t event = (uint64_t)eventfd(1, EFD_NONBLOCK | EFD_SEMAPHORE);
	int both[2];

	CHECK_EQ(write((int)file, buffer, sizeof(buffer)), sizeof(buffer));
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
	memcpy(kinds, (struct what[KINDS]){
		{ SYS_getppid, 0, { 0 } },
		{ SYS_pread64, 4, { file, (uint64_t)buffer, 64, 0 } },
		{ SYS_fstat, 2, { file, (uint64_t)&status } },
		{ SYS_lseek, 3, { file, 0, SEEK_SET } },
		{ SYS_pwrite64, 4, { file, (uint64_t)buffer, 64, 0 } },
		{ SYS_recvfrom, 4, { (uint64_t)both[0], (uint64_t)buffer, 64,
				     MSG_DONTWAIT } },
		{ SYS_fcntl, 2, { file, F_GETFL } },
		{ SYS_read, 3, { event, (uint64_t)&word, 8 } },
	}, sizeof(kinds));
}

static inline void post(struct raw *to, uint32_t index, uint32_t kind, uint8_t flags)
{
	struct flexsc_entry *entry = &to->entries[index];
	const struct what *what = &kinds[kind];

	entry->nr = what->nr;
	entry->nargs = what->nargs | flags;
	for (unsigned int i = 0; i < what->nargs; i++)
		entry->args[i] = what->args[i];
	raw_push(to, index);
}

/* The orders. */

static void as_posted(void)
{
	for (uint32_t i = 0; i < BATCH; i++)
		post(&raw, i, i % KINDS, 0);
}

/* As if the program had posted them so: the gain without the cost. */
static void grouped(void)
{
	for (uint32_t i = 0; i < BATCH; i++)
		post(&raw, i, i / (BATCH / KINDS), 0);
}

/* The owner groups what was posted in another order: one list per kind. */
static void sorted(void)
{
	uint32_t first[KINDS], last[KINDS], next[BATCH];

	memset(first, 0xff, sizeof(first));
	for (uint32_t i = 0; i < BATCH; i++) {
		uint32_t kind = i % KINDS;

		next[i] = UINT32_MAX;
		if (first[kind] == UINT32_MAX)
			first[kind] = i;
		else
			next[last[kind]] = i;
		last[kind] = i;
	}
	for (uint32_t kind = 0; kind < KINDS; kind++)
		for (uint32_t i = first[kind]; i != UINT32_MAX; i = next[i])
			post(&raw, i, kind, 0);
}

/* Every second call may sleep, but doesn't. */
static void sleepers_mixed(void)
{
	for (uint32_t i = 0; i < BATCH; i++)
		post(&raw, i, i % KINDS, i % 2 ? FLEXSC_MAY_SLEEP : 0);
}

static void post_half(uint32_t odd)
{
	for (uint32_t i = odd; i < BATCH; i += 2)
		post(&raw, i, i % KINDS, odd ? FLEXSC_MAY_SLEEP : 0);
}

static void sleepers_first(void)
{
	post_half(1);
	post_half(0);
}

static void sleepers_last(void)
{
	post_half(0);
	post_half(1);
}

static const struct order {
	const char *name;
	void (*post)(void);
} orders[] = {
	{ "as posted", as_posted },
	{ "grouped", grouped },
	{ "sorted", sorted },
	{ "sleepers mixed", sleepers_mixed },
	{ "sleepers first", sleepers_first },
	{ "sleepers last", sleepers_last },
};

#define ORDERS	(sizeof(orders) / sizeof(*orders))

static void report(const char *what, const char *where, double count)
{
	printf("%-16s %-8s %8.0f\n", what, where, count);
	fflush(stdout);
}

static void wait_for(uint32_t n)
{
	uint32_t completed = 0;

	while (completed < n) {
		if (raw_enter(&raw))
			CHECK(raw_wait(&raw, UINT64_MAX) >= 0);
		completed += raw_reap(&raw);
	}
}

/* The owner's instructions, without the time that it waits. */
static double remote(void (*post_all)(void))
{
	uint64_t counts[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t begin = instructions();
		uint32_t completed = 0;

		post_all();
		if (raw_needs_kick(&raw))
			raw_kick(&raw);
		counts[r] = since(begin);
		while (completed < BATCH) {
			while (__atomic_load_n(&raw.shared->completions.head,
					       __ATOMIC_RELAXED) == FLEXSC_NO_ENTRY)
				cpu_relax();
			begin = instructions();
			completed += raw_reap(&raw);
			counts[r] += since(begin);
		}
	}
	return median(counts, ROUNDS);
}

TEST_LIMIT(mixed, 600)
{
	struct flexsc_policy policy = {
		.cores = 1, .core = { 1 }, .spin = FLEXSC_SPIN_FIXED, .spin_us = 10000,
	};

	calibrate();
	make_kinds();
	raw_open(&raw, 8, 0);
	raw_thread(&raw);
	raw_await_sleepers();
	raw.shared->timeout = UINT64_MAX;
	for (unsigned int i = 0; i < ORDERS; i++) {
		orders[i].post();
		wait_for(BATCH);
		report(orders[i].name, "inline",
		       COUNT((orders[i].post(), wait_for(BATCH)), ));
	}
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
		CHECK(raw_move(0));
		CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_SET_POLICY, &policy), 0);
		for (unsigned int i = 0; i < ORDERS; i++)
			report(orders[i].name, "remote", remote(orders[i].post));
	}
	raw_close(&raw);
}

/* A chain of open, read and close: kmod-order chain. */

#define SAME	(FLEXSC_CHAIN_ARG(0) | FLEXSC_CHAIN_SAME)

static const char path[] = "/tmp/order";

static void plainly(void)
{
	long fd = raw_syscall(SYS_openat, (uint64_t)AT_FDCWD, (uint64_t)path, O_RDONLY,
			      0, 0, 0);

	raw_syscall(SYS_read, (uint64_t)fd, (uint64_t)buffer, sizeof(buffer), 0, 0, 0);
	raw_syscall(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
}

static int64_t in_module(unsigned int nr, uint64_t a, uint64_t b, uint64_t c)
{
	struct flexsc_entry *entry = &raw.entries[0];

	entry->nr = (uint16_t)nr;
	entry->nargs = 3;
	entry->args[0] = a;
	entry->args[1] = b;
	entry->args[2] = c;
	raw_push(&raw, 0);
	wait_for(1);
	return entry->ret;
}

static void in_three_waits(void)
{
	int64_t fd = in_module(SYS_openat, (uint64_t)AT_FDCWD, (uint64_t)path, O_RDONLY);

	in_module(SYS_read, (uint64_t)fd, (uint64_t)buffer, sizeof(buffer));
	in_module(SYS_close, (uint64_t)fd, 0, 0);
}

static struct call opened, got, closed;
static bool at_offset;		/* read(2), not pread(2) */
static int spare;

static void reset(void)
{
	opened.cb.callback = got.cb.callback = NULL;
	closed = (struct call)CALL_INIT;
}

/* As the library does it: the owner continues the chain between two waits. */
static void by_chain(void)
{
	POST(loop, &opened, SYS_openat, AT_FDCWD, path, O_RDONLY, 0);
	POST_AFTER(loop, &opened, FLEXSC_CHAIN_ARG(0), &got,
		   at_offset ? SYS_read : SYS_pread64, -1, buffer, sizeof(buffer), 0);
	POST_AFTER(loop, &got, SAME | FLEXSC_CHAIN_ALWAYS, &closed, SYS_close, -1);
	flexsc_loop_run(loop);
}

/*
 * The same calls in one turn, on a descriptor that exists already: no chain in the
 * module could cost less.
 */
static void in_one_turn(void)
{
	POST(loop, &opened, SYS_openat, AT_FDCWD, path, O_RDONLY, 0);
	POST(loop, &got, at_offset ? SYS_read : SYS_pread64, spare, buffer,
	     sizeof(buffer), 0);
	POST(loop, &closed, SYS_close, spare);
	flexsc_loop_run(loop);
}

static void check(void)
{
	CHECK_EQ(got.cb.ret, (int64_t)sizeof(buffer));
	CHECK_EQ(closed.cb.ret, 0);
	spare = (int)opened.cb.ret;
	reset();
}

static void count_chain(const char *what, void (*make)(void))
{
	uint64_t before;

	spare = open(path, O_RDONLY);
	reset();
	make();
	check();
	before = stats_of(loop).mode_switches;
	report(what, at_offset ? "read" : "pread", COUNT(make(), check()));
	printf("\t%.1f mode switches\n",
	       (double)(stats_of(loop).mode_switches - before) / ROUNDS);
}

TEST_LIMIT(chain, 600)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	calibrate();
	CHECK_EQ(write(fd, buffer, sizeof(buffer)), sizeof(buffer));
	raw_open(&raw, 8, 0);
	raw.shared->timeout = UINT64_MAX;
	plainly();
	report("open-read-close", "plain", COUNT(plainly(), ));
	report("three waits", "inline", COUNT(in_three_waits(), ));
	raw_close(&raw);
	loop = NEW_LOOP(.engine = "kmod");
	for (int i = 0; i < 2; i++) {
		at_offset = i;
		count_chain("chain", by_chain);
		count_chain("one turn", in_one_turn);
	}
	test_end_loop();
}

/* Two classes of calls: kmod-order classes. */

static struct raw second;

static const struct division {
	const char *name;
	bool apart;		/* the second class has a loop of its own */
	uint32_t cores;		/* of each loop */
} divisions[] = {
	{ "one core", false, 1 },
	{ "two cores", false, 2 },
	{ "a loop each", true, 1 },
};

#define DIVISIONS	(sizeof(divisions) / sizeof(*divisions))

/* Every second call is long. */
static void make_classes(void)
{
	make_kinds();
	kinds[0] = kinds[1];
	kinds[1] = (struct what){ SYS_newfstatat, 4, { (uint64_t)AT_FDCWD, (uint64_t)path,
						       (uint64_t)&status, 0 } };
}

static void post_classes(const struct division *division)
{
	for (uint32_t i = 0; i < BATCH; i++)
		post(division->apart && i % 2 ? &second : &raw, i, i % 2, 0);
	if (raw_needs_kick(&raw))
		raw_kick(&raw);
	if (division->apart && raw_needs_kick(&second))
		raw_kick(&second);
}

static bool any_complete(const struct raw *in)
{
	return __atomic_load_n(&in->shared->completions.head, __ATOMIC_RELAXED) !=
	       FLEXSC_NO_ENTRY;
}

/* The owner's instructions, without the time that it waits. The kernel cores poll. */
static double owners(const struct division *division)
{
	uint64_t counts[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t begin = instructions();
		uint32_t completed = 0;

		post_classes(division);
		counts[r] = since(begin);
		while (completed < BATCH) {
			while (!any_complete(&raw) &&
			       !(division->apart && any_complete(&second)))
				cpu_relax();
			begin = instructions();
			completed += raw_reap(&raw);
			if (division->apart)
				completed += raw_reap(&second);
			counts[r] += since(begin);
		}
	}
	return median(counts, ROUNDS) / BATCH;
}

static void await_all(const struct division *division)
{
	uint32_t of_first = division->apart ? BATCH / 2 : BATCH;

	raw_collect(&raw, of_first);
	if (division->apart)
		raw_collect(&second, BATCH - of_first);
}

/* The instructions of all processors. The kernel cores sleep between the batches. */
static double everyones(const struct division *division)
{
	return COUNT((post_classes(division), await_all(division)), ) / BATCH;
}

static void use_cores(struct raw *in, uint16_t first, uint32_t cores, uint32_t spin_us)
{
	struct flexsc_policy policy = {
		.cores = cores, .core = { first, cores > 1 ? first + 1 : 0 }, .backlog = 4,
		.spin = FLEXSC_SPIN_FIXED, .spin_us = spin_us,
	};

	CHECK_EQ(ioctl(in->fd, FLEXSC_IOC_SET_POLICY, &policy), 0);
}

static void use_division(const struct division *division, uint32_t spin_us)
{
	use_cores(&raw, 1, division->cores, spin_us);
	use_cores(&second, 2, 1, spin_us);
}

static void count_division(const struct division *division)
{
	uint64_t before[2], taken[2];
	struct raw *of_core[2] = { &raw, division->apart ? &second : &raw };
	double polled, all;

	use_division(division, 0);
	post_classes(division);
	await_all(division);
	for (int i = 0; i < 2; i++)
		before[i] = of_core[i]->shared->taken[division->apart ? 0 : i];
	all = everyones(division);
	for (int i = 0; i < 2; i++)
		taken[i] = of_core[i]->shared->taken[division->apart ? 0 : i] - before[i];
	CHECK_EQ(taken[0] + taken[1], (uint64_t)ROUNDS * BATCH);
	use_division(division, 10000);
	polled = owners(division);
	printf("%-16s %8.0f %8.0f  %lu %lu\n", division->name, polled, all, taken[0],
	       taken[1]);
	fflush(stdout);
}

TEST_LIMIT(classes, 600)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (sysconf(_SC_NPROCESSORS_ONLN) < 3)
		SKIP("needs three processors");
	CHECK(fd >= 0 && raw_move(0));
	calibrate();
	make_classes();
	for (int i = 0; i < 2; i++) {
		struct raw *one = i ? &second : &raw;

		raw_open(one, 8, 0);
		raw_thread(one);
	}
	raw_await_sleepers();
	printf("%-16s %8s %8s  by core\n", "a call", "owner", "all");
	for (unsigned int i = 0; i < DIVISIONS; i++)
		count_division(&divisions[i]);
	raw_close(&second);
	raw_close(&raw);
}
