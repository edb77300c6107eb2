// SPDX-License-Identifier: MIT
/*
 * How far a program's calls can become faster with k kernel cores (OSDI 2010, section
 * 3.6 and figure 8), on more cores than the measuring machines have. Runs like
 * kmod-count, but in a guest with eight processors and with "turns=20": see
 * docs/explanation/results.md. The owner runs on processor 0. Prints for each call and
 * list of kernel cores:
 *
 *	plain	instructions of the plain call
 *	owner	the owner's instructions per call: posting, and handling the result
 *	busiest	the share of the calls that the busiest kernel core executed
 *	bound	plain / max(owner, plain * busiest): the limit of the speed-up if a
 *		kernel core needs as many instructions per call as the plain call
 *	even	the bound if each kernel core executes the same number of calls
 *
 * With -icount, QEMU executes one processor at a time, until the next timer is due, which
 * is up to 4,000,000 instructions away. "turns=20" ends each turn after 20,000
 * instructions while the shares are counted: otherwise few cores have a turn in a round.
 * The shares still depend on the turns, while "even" does not. The owner's instructions
 * are counted with long turns, because the clock also counts other processors' turns.
 */
#include "icount.h"
#include "raw.h"

#include <sys/stat.h>

#include "lib/base/futex.h"

#define MOST	256U	/* calls of a round */
#define PLAINLY	8U	/* plain calls that are counted together */
#define CORES	7U
#define WARM	2U	/* rounds */
#define COUNTED	20U
#define SHARED	20U
#define LONG	16384U	/* bytes of the long read */

/* Declared in lib/loop/loop.h, whose names collide with those of the harness. */
bool flexsc__loop_stirs(const struct flexsc_loop *loop);

struct what {
	const char *name;
	unsigned int nr;
	uint64_t args[4];
	long expected;
};

/* Turns of QEMU's processors. */

/* The last of the HPET's three comparators, which Linux uses only if a program asks. */
#define HPET		0xfed00000
#define HPET_COUNTER	0x0f0
#define HPET_CONFIG	0x140
#define HPET_COMPARATOR	0x148
#define HPET_PERIODIC	0x008
#define HPET_SET	0x040
#define HPET_32_BITS	0x100
#define TICKS_OF_US	100U

static volatile uint32_t *hpet;

static volatile uint32_t *hpet_register(unsigned int offset)
{
	return &hpet[offset / sizeof(*hpet)];
}

static void hpet_map(void)
{
	int fd = open("/dev/mem", O_RDWR | O_SYNC | O_CLOEXEC);
	void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, HPET);

	CHECK(mapped != MAP_FAILED);
	close(fd);
	hpet = mapped;
}

/*
 * End each turn after this time; 0: no more. The comparator's interrupt stays disabled,
 * so that the guest executes nothing, but QEMU has a timer.
 */
static void limit_turns(unsigned long us)
{
	uint32_t ticks = (uint32_t)us * TICKS_OF_US;

	if (!hpet)
		return;
	if (!us) {
		*hpet_register(HPET_CONFIG) = 0;
		return;
	}
	*hpet_register(HPET_CONFIG) = HPET_PERIODIC | HPET_SET | HPET_32_BITS;
	*hpet_register(HPET_COMPARATOR) = *hpet_register(HPET_COUNTER) + ticks;
	*hpet_register(HPET_COMPARATOR) = ticks;
}

/* Rounds of calls. */

static const struct what *posted;
static unsigned int done;
static uint64_t calls;		/* in this loop */

static void one_done(struct flexsc_cb *cb)
{
	(void)cb;
	done++;
}

/*
 * Returns the owner's instructions, without the time during which it waits. The owner
 * never waits in the kernel, where the module may execute entries on its thread.
 */
static uint64_t one_round(void)
{
	static struct flexsc_cb cbs[MOST];
	const uint64_t *args = posted->args;
	uint64_t begin = instructions(), count;

	done = 0;
	for (unsigned int i = 0; i < MOST; i++) {
		cbs[i].callback = one_done;
		flexsc_loop_call(loop, &cbs[i], posted->nr, args[0], args[1], args[2],
				 args[3], 0, 0);
	}
	flexsc_loop_submit(loop);
	count = since(begin);
	while (done < MOST) {
		while (!flexsc__loop_stirs(loop))
			cpu_relax();
		begin = instructions();
		flexsc_loop_dispatch(loop);
		flexsc_loop_submit(loop);
		count += since(begin);
	}
	for (unsigned int i = 0; i < MOST; i++)
		CHECK_EQ(cbs[i].ret, posted->expected);
	calls += MOST;
	return count;
}

static double owners_instructions(void)
{
	uint64_t counts[COUNTED];

	for (unsigned int r = 0; r < COUNTED; r++)
		counts[r] = one_round();
	return median(counts, COUNTED) / MOST;
}

static void make_plainly(void)
{
	const uint64_t *args = posted->args;

	for (unsigned int i = 0; i < PLAINLY; i++)
		if (raw_syscall(posted->nr, args[0], args[1], args[2], args[3], 0, 0) !=
		    posted->expected)
			abort();
}

/* Where calls execute. */

/* How many calls the syscall threads have executed on each core from 1 to k. */
struct cores {
	uint64_t by_core[CORES];
	uint64_t sum;
	unsigned int used;	/* number of cores that executed any */
	double busiest;		/* share of the sum */
};

static struct cores executed(unsigned int k, const struct cores *before)
{
	struct cores cores = { 0 };
	uint64_t most = 0;

	for (unsigned int i = 0; i < k; i++) {
		char core[16];

		snprintf(core, sizeof(core), " core %u ", i + 1);
		cores.by_core[i] = (uint64_t)raw_shown(core, " taken ") -
				   (before ? before->by_core[i] : 0);
		cores.sum += cores.by_core[i];
		cores.used += cores.by_core[i] > 0;
		most = cores.by_core[i] > most ? cores.by_core[i] : most;
	}
	cores.busiest = cores.sum ? (double)most / (double)cores.sum : 1;
	return cores;
}

/* Each call was executed on a listed core, and none by the owner. */
static void check_cores(unsigned int k)
{
	CHECK(executed(k, NULL).sum >= calls);
	CHECK_EQ(raw_shown(NULL, " inline "), 0);
	CHECK_EQ(stats_of(loop).by_kmod, calls);
	CHECK_EQ(stats_of(loop).by_inline, 0);
	CHECK_EQ(stats_of(loop).by_thread, 0);
}

static struct cores shares(unsigned int k)
{
	struct cores before = executed(k, NULL);

	limit_turns(test_parameter("turns", 0));
	for (unsigned int r = 0; r < SHARED; r++)
		one_round();
	limit_turns(0);
	return executed(k, &before);
}

static double bound(double plain, double owner, double busiest)
{
	return plain / (owner > plain * busiest ? owner : plain * busiest);
}

static void report(unsigned int k, double plain, double owner, const struct cores *cores)
{
	printf("%-8s %6.0f %5u %6.0f %8.3f %6.2f %6.2f ", posted->name, plain, k, owner,
	       cores->busiest, bound(plain, owner, cores->busiest),
	       bound(plain, owner, 1.0 / k));
	for (unsigned int i = 0; i < k; i++)
		printf(" %lu", (unsigned long)cores->by_core[i]);
	printf("\n");
	fflush(stdout);
}

static void spread(double plain, unsigned int k)
{
	static const char *const lists[] = { [1] = "1", [3] = "1-3", [7] = "1-7" };
	struct cores cores;
	double owner;

	calls = 0;
	/*
	 * If a call sleeps or is preempted, the module may request one more thread. At
	 * the limit, the owner would execute calls.
	 */
	loop = NEW_LOOP(.engine = "kmod", .kernel_cores = lists[k], .backlog = 4,
			.max_threads = 1024, .poll_us = 10000);
	for (unsigned int r = 0; r < WARM; r++)
		one_round();
	owner = owners_instructions();
	cores = shares(k);
	/* Other processors may have had no turn yet. */
	while (executed(k, NULL).used < 2 && k > 1)
		one_round();
	check_cores(k);
	report(k, plain, owner, &cores);
	test_end_loop();
}

TEST_LIMIT(spread, 400)
{
	static char buffer[LONG];
	static struct stat status;
	uint64_t file = (uint64_t)open("/tmp/file", O_RDWR | O_CREAT, 0600);
	const uint64_t bytes = (uint64_t)buffer;
	const struct what whats[] = {
		{ "getppid", SYS_getppid, { 0 }, getppid() },
		{ "pread", SYS_pread64, { file, bytes, 64 }, 64 },
		{ "stat", SYS_newfstatat,
		  { (uint64_t)AT_FDCWD, (uint64_t)"/tmp/file", (uint64_t)&status, 0 }, 0 },
		{ "16 KiB", SYS_pread64, { file, bytes, LONG }, LONG },
	};

	if (sysconf(_SC_NPROCESSORS_ONLN) <= CORES)
		SKIP("needs eight processors");
	CHECK(raw_move(0));
	calibrate();
	CHECK_EQ(write((int)file, buffer, LONG), LONG);
	if (test_parameter("turns", 0))
		hpet_map();
	printf("%-8s %6s %5s %6s %8s %6s %6s  by core\n", "call", "plain", "cores", "owner",
	       "busiest", "bound", "even");
	for (unsigned int w = 0; w < sizeof(whats) / sizeof(*whats); w++) {
		double plain;

		posted = &whats[w];
		plain = COUNT(make_plainly(), ) / PLAINLY;
		for (unsigned int k = 1; k <= CORES; k = 2 * k + 1)
			spread(plain, k);
	}
}
