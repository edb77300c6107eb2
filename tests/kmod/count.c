// SPDX-License-Identifier: MIT
/*
 * Guest instructions per call: if QEMU runs with -icount shift=0, the time-stamp
 * counter counts them. Prints one line for each measurement:
 *
 *	plain		one system call each
 *	uring		io_uring's NOP, which makes no call
 *	inline		by the module, on the thread that waits
 *	library		the same by libflexsc, with callbacks
 *	remote		by a syscall thread that polls on another core: the
 *			instructions of this core, without the wait. A system
 *			call by this thread meanwhile would end the process
 *	lib-remote	the same by libflexsc
 *	bounced		by a syscall thread that makes it in user mode, because
 *			a tracepoint traces all calls, also those of "plain"
 *			and "library". The library has stopped bouncing by then
 *
 * Both user and kernel mode count. The last two need a second processor.
 */
#include "ecb.h"
#include "icount.h"
#include "system.h"

#include <liburing.h>

#include "lib/base/futex.h"
#include "lib/base/syscall.h"

#define MOST	512

/* Declared in lib/loop/loop.h, whose names collide with those of the harness. */
bool flexsc__loop_stirs(const struct flexsc_loop *loop);

static unsigned int done;

static void report(const char *call, const char *way, unsigned int batch,
		   double count)
{
	printf("%-10s %-10s %4u %8.1f\n", call, way, batch, count / batch);
	fflush(stdout);
}

/* A call, perhaps with a second call that takes the first one's result. */
struct what {
	const char *name;
	unsigned int nr;
	uint8_t nargs;
	uint64_t args[4];
	long expected;
	unsigned int then;
};

static inline long make_plainly(const struct what *what, unsigned int batch)
{
	long ret = 0;

	for (unsigned int i = 0; i < batch; i++) {
		ret = raw_syscall(what->nr, what->args[0], what->args[1],
				  what->args[2], what->args[3], 0, 0);
		if (what->then)
			raw_syscall(what->then, (uint64_t)ret, 0, 0, 0, 0, 0);
	}
	return ret;
}

static void plain(const struct what *what, unsigned int batch)
{
	long ret;

	report(what->name, "plain", batch,
	       COUNT(ret = make_plainly(what, batch),
		     CHECK(what->then || ret == what->expected)));
}

/* io_uring. */

static inline void make_nops(struct io_uring *ring, unsigned int batch)
{
	for (unsigned int i = 0; i < batch; i++)
		io_uring_prep_nop(io_uring_get_sqe(ring));
	io_uring_submit_and_wait(ring, batch);
	io_uring_cq_advance(ring, batch);
}

static void nop(unsigned int batch)
{
	struct io_uring ring;

	if (io_uring_queue_init(1024, &ring, IORING_SETUP_SINGLE_ISSUER |
				IORING_SETUP_DEFER_TASKRUN))
		return;
	report("nop", "uring", batch, COUNT(make_nops(&ring, batch), ));
	io_uring_queue_exit(&ring);
}

/* The module. */

/* Passes only as many arguments as the call has. */
static inline void post(uint32_t index, const struct what *what)
{
	struct flexsc_entry *entry = &raw.entries[index];

	entry->nr = (uint16_t)what->nr;
	entry->nargs = what->nargs;
	for (unsigned int i = 0; i < what->nargs; i++)
		entry->args[i] = what->args[i];
	raw_push(&raw, index);
}

static inline void post_second(uint32_t index, unsigned int nr)
{
	struct flexsc_entry *entry = &raw.entries[index];

	entry->nr = (uint16_t)nr;
	entry->nargs = 3;
	entry->args[0] = (uint64_t)entry->ret;
	entry->args[1] = 0;
	entry->args[2] = 0;
	raw_push(&raw, index);
}

static inline void wait_for(uint32_t n)
{
	uint32_t completed = 0;

	while (completed < n) {
		if (raw_enter(&raw))
			abort();
		completed += raw_reap(&raw);
	}
}

static inline void in_module(const struct what *what, uint32_t batch)
{
	for (uint32_t i = 0; i < batch; i++)
		post(i, what);
	wait_for(batch);
	if (!what->then)
		return;
	for (uint32_t i = 0; i < batch; i++)
		post_second(i, what->then);
	wait_for(batch);
}

static void inlined(const struct what *what, unsigned int batch)
{
	report(what->name, "inline", batch,
	       COUNT(in_module(what, batch),
		     CHECK_EQ(raw.entries[0].ret, what->expected)));
}

/* libflexsc. */

static const struct what *posted;
static void second_done(struct flexsc_cb *cb)
{
	(void)cb;
	done++;
}

static void first_done(struct flexsc_cb *cb)
{
	if (posted->then) {
		cb->callback = second_done;
		flexsc_loop_call(loop, cb, posted->then, (uint64_t)cb->ret, 0,
				 0, 0, 0, 0);
	} else {
		done++;
	}
}

static void post_all(const struct what *what, struct flexsc_cb *cbs,
		     unsigned int batch)
{
	const uint64_t *args = what->args;

	done = 0;
	posted = what;
	for (unsigned int i = 0; i < batch; i++) {
		cbs[i].callback = first_done;
		flexsc_loop_call(loop, &cbs[i], what->nr, args[0], args[1],
				 args[2], args[3], 0, 0);
	}
}

static void by_library(const struct what *what, unsigned int batch)
{
	static struct flexsc_cb cbs[MOST];

	report(what->name, "library", batch,
	       COUNT((post_all(what, cbs, batch), flexsc_loop_run(loop)),
		     (CHECK_EQ(done, batch), CHECK_EQ(cbs[0].ret, what->expected))));
}

/* Another core. */

static char may_call = SYSCALL_DISPATCH_FILTER_ALLOW;

/* From now on, a system call of this thread ends the process. */
static void calls_are_deadly(bool deadly)
{
	may_call = deadly ? SYSCALL_DISPATCH_FILTER_BLOCK :
			    SYSCALL_DISPATCH_FILTER_ALLOW;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Makes a syscall thread poll for work. */
static void warm_up(const struct what *what)
{
	post(0, what);
	while (!raw_reap(&raw))
		raw_kick(&raw);
}

static uint64_t reap_some(uint32_t *completed)
{
	uint64_t begin;

	while (__atomic_load_n(&raw.shared->completions.head,
			       __ATOMIC_RELAXED) == FLEXSC_NO_ENTRY)
		cpu_relax();
	begin = instructions();
	*completed += raw_reap(&raw);
	return since(begin);
}

static void remote(const struct what *what, unsigned int batch)
{
	uint64_t counts[ROUNDS];

	warm_up(what);
	calls_are_deadly(true);
	for (int r = 0; r < ROUNDS; r++) {
		uint64_t begin = instructions();
		uint32_t completed = 0;

		for (uint32_t i = 0; i < batch; i++)
			post(i, what);
		if (raw_needs_kick(&raw))
			raw_kick(&raw);
		counts[r] = since(begin);
		while (completed < batch)
			counts[r] += reap_some(&completed);
	}
	calls_are_deadly(false);
	CHECK_EQ(raw.entries[0].ret, what->expected);
	report(what->name, "remote", batch, median(counts, ROUNDS));
}

/* The owner's own work: posting, and handling the results. */
static uint64_t library_round(const struct what *what, struct flexsc_cb *cbs,
			      unsigned int batch)
{
	uint64_t begin = instructions(), count;

	post_all(what, cbs, batch);
	flexsc_loop_submit(loop);
	count = since(begin);
	while (done < batch) {
		while (!flexsc__loop_stirs(loop))
			cpu_relax();
		begin = instructions();
		flexsc_loop_dispatch(loop);
		count += since(begin);
	}
	return count;
}

static void remote_by_library(const struct what *what, unsigned int batch)
{
	static struct flexsc_cb cbs[MOST];
	uint64_t counts[ROUNDS];

	/* Makes the loop allocate, and a syscall thread poll for work. */
	library_round(what, cbs, batch);
	calls_are_deadly(true);
	for (int r = 0; r < ROUNDS; r++)
		counts[r] = library_round(what, cbs, batch);
	calls_are_deadly(false);
	CHECK_EQ(cbs[0].ret, what->expected);
	report(what->name, "lib-remote", batch, median(counts, ROUNDS));
}

static struct flexsc_loop *new_loop(bool specialised)
{
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;
	struct flexsc_loop *made = NULL;

	options.engine = "kmod";
	if (specialised) {
		options.kernel_cores = "1";
		options.poll_us = 10000;
	}
	CHECK_EQ(flexsc_loop_create(&made, &options), 0);
	return made;
}

/* Syscall threads poll on processor 1. This thread runs on the other processor. */
static bool specialise(void)
{
	struct flexsc_policy policy = {
		.cores = 1,
		.core = { 1 },
		.spin = FLEXSC_SPIN_FIXED,
		.spin_us = 10000,
	};
	cpu_set_t first;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return false;
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	CHECK_EQ(sched_setaffinity(0, sizeof(first), &first), 0);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_SET_POLICY, &policy), 0);
	/*
	 * The loop registers before syscall user dispatch is enabled. The module
	 * reports a thread with dispatch as traced, and the library then makes plain
	 * calls itself.
	 */
	loop = new_loop(true);
	CHECK_EQ(prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0,
		       &may_call),
		 0);
	return true;
}

/* All measurements. */

static const unsigned int batches[] = { 1, 8, 64, MOST };

#define BATCHES	(sizeof(batches) / sizeof(batches[0]))

static void each_batch(void (*count)(const struct what *what,
				     unsigned int batch),
		       const struct what *what)
{
	for (unsigned int b = 0; b < BATCHES; b++)
		count(what, batches[b]);
}

TEST_LIMIT(count, 600)
{
	static char buffer[64];
	int file = open("/tmp/file", O_RDWR | O_CREAT, 0600);
	int both[2];

	calibrate();
	CHECK_EQ(write(file, buffer, sizeof(buffer)), sizeof(buffer));
	pair(both);
	const struct what whats[] = {
		{ "getppid", SYS_getppid, 0, { 0 }, getppid(), 0 },
		{ "pread", SYS_pread64, 4,
		  { (uint64_t)file, (uint64_t)buffer, sizeof(buffer) }, 64, 0 },
		{ "recv", SYS_recvfrom, 4,
		  { (uint64_t)both[0], (uint64_t)buffer, sizeof(buffer),
		    MSG_DONTWAIT }, -EAGAIN, 0 },
		{ "open+close", SYS_openat, 3,
		  { (uint64_t)AT_FDCWD, (uint64_t)"/tmp/file", O_RDONLY }, 0,
		  SYS_close },
	};

	raw_open(&raw, 8, 0);
	raw.shared->timeout = UINT64_MAX;
	for (unsigned int b = 0; b < BATCHES; b++)
		nop(batches[b]);
	for (unsigned int w = 0; w < 4; w++) {
		plain(&whats[w], 64);
		each_batch(inlined, &whats[w]);
	}
	loop = new_loop(false);
	for (unsigned int w = 0; w < 4; w++)
		each_batch(by_library, &whats[w]);
	test_end_loop();
	if (specialise()) {
		for (unsigned int w = 0; w < 3; w++)
			each_batch(remote, &whats[w]);
		for (unsigned int w = 0; w < 3; w++)
			each_batch(remote_by_library, &whats[w]);
		test_end_loop();
	}
	raw_close(&raw);
}

/* Calls that bounce: kmod-count bounced. */

static inline void finish(const struct what *what, unsigned int batch)
{
	for (uint32_t i = 0; i < batch; i++)
		post(i, what);
	raw_finish(&raw, batch);
}

static void bouncing(const struct what *what, unsigned int batch)
{
	report(what->name, "bounced", batch,
	       COUNT(finish(what, batch),
		     CHECK_EQ(raw.entries[0].ret, what->expected)));
}

TEST_LIMIT(bounced, 600)
{
	static const char on[] = "/sys/kernel/tracing/events/raw_syscalls/"
				 "sys_enter/enable";
	static char buffer[64];
	int file = open("/dev/zero", O_RDONLY);
	const struct what whats[] = {
		{ "getppid", SYS_getppid, 0, { 0 }, getppid(), 0 },
		{ "pread", SYS_pread64, 4,
		  { (uint64_t)file, (uint64_t)buffer, sizeof(buffer) }, 64, 0 },
	};

	calibrate();
	raw_open(&raw, 8, 0);
	raw_thread(&raw);
	CHECK_EQ(system_set(on, "1"), 0);
	loop = new_loop(false);
	for (unsigned int w = 0; w < 2; w++) {
		plain(&whats[w], 64);
		each_batch(bouncing, &whats[w]);
		each_batch(by_library, &whats[w]);
	}
	CHECK(raw_shown(NULL, " bounced ") > 0);
	CHECK_EQ(system_set(on, "0"), 0);
	test_end_loop();
	raw_close(&raw);
}
