/* SPDX-License-Identifier: MIT */
/*
 * System calls of the owner: which functions make none, and how many the others
 * make.
 */
#include "events.h"

#include <sys/mman.h>

#include "tests/harness/traced.h"

struct bed {
	struct flexsc_ecb *ecb;
	int user, fd, pair[2];
	volatile unsigned int handled;
	char *memory;		/* FAULTS missing pages */
	int fault;
};

enum { FAULTS = 8 };

static void handle(struct flexsc_ecb *ecb, void *arg)
{
	struct bed *bed = arg;
	struct flexsc_ecb_event event;

	while (flexsc_ecb_next(ecb, ALL, &event))
		bed->handled++;
}

static bool has_stack;		/* the handler has a stack of its own */

static void make_bed(struct bed *bed)
{
	static char stack[1 << 16] __attribute__((aligned(64)));

	*bed = (struct bed){
		.ecb = has_stack ? NEW_ECB(.stack = stack,
					   .stack_size = sizeof(stack)) :
				   test_ecb(),
	};
	CHECK_EQ(flexsc_ecb_handler(bed->ecb, handle, bed), 0);
	bed->user = flexsc_ecb_user(bed->ecb, 1, NULL);
	bed->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(flexsc_ecb_watch(bed->ecb, bed->fd, POLLIN, 2, NULL) >= 0);
	test_pair(bed->pair);
}

/* Returns how many system calls an action takes. Its preparation doesn't count. */
static unsigned int calls_of(void (*prepare)(struct bed *bed),
			     void (*act)(struct bed *bed))
{
	struct bed bed;
	const int pid = traced_fork();

	if (pid)
		return traced_calls(pid, ALL_CALLS);
	make_bed(&bed);
	if (prepare)
		prepare(&bed);
	traced_begin();
	act(&bed);
	traced_end();
	test_leave();
}

static void notify_all(struct bed *bed)
{
	CHECK_EQ(flexsc_ecb_notify(bed->ecb, ALL), 0);
}

static void take_posts(struct bed *bed)
{
	struct flexsc_ecb_event event;

	for (int i = 0; i < 100; i++) {
		flexsc_ecb_post(bed->ecb, (unsigned int)bed->user, 1);
		CHECK_EQ(flexsc_ecb_next(bed->ecb, ALL, &event), 1);
		CHECK_EQ(flexsc_ecb_next(bed->ecb, ALL, &event), 0);
	}
}

static void nest_sections(struct bed *bed)
{
	for (int i = 0; i < 100; i++) {
		flexsc_ecb_critical_begin(bed->ecb);
		flexsc_ecb_critical_begin(bed->ecb);
		flexsc_ecb_critical_end(bed->ecb);
		flexsc_ecb_critical_end(bed->ecb);
	}
}

/*
 * Events posted in a critical section are handled at its end, by a plain function
 * call.
 */
static void post_in_sections(struct bed *bed)
{
	for (unsigned int i = 1; i <= 100; i++) {
		flexsc_ecb_critical_begin(bed->ecb);
		flexsc_ecb_post(bed->ecb, (unsigned int)bed->user, 1);
		flexsc_ecb_critical_end(bed->ecb);
		CHECK_EQ(bed->handled, i);
	}
}

static void store_words(struct bed *bed)
{
	struct flexsc_event_control *control = flexsc_ecb_control(bed->ecb);

	for (int i = 0; i < 100; i++) {
		__atomic_store_n(&control->notify, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&control->deliver, ALL, __ATOMIC_RELAXED);
	}
}

/* The events are delivered before, so the action only takes them. */
static void write_events(struct bed *bed)
{
	for (int i = 0; i < 100; i++)
		eventfd_write(bed->fd, 1);
}

static void take_events(struct bed *bed)
{
	struct flexsc_ecb_event event;

	CHECK_EQ(flexsc_ecb_next(bed->ecb, ALL, &event), 1);
	CHECK_EQ(flexsc_ecb_next(bed->ecb, ALL, &event), 0);
}

static void wait_for_event(struct bed *bed)
{
	CHECK_EQ(flexsc_ecb_wait(bed->ecb, ALL, FLEXSC_FOREVER), 1);
}

static void watch_one(struct bed *bed)
{
	CHECK(flexsc_ecb_watch(bed->ecb, bed->pair[0], POLLIN, 0, NULL) >= 0);
}

static void forget_one(struct bed *bed)
{
	/* The second source of make_bed(). */
	CHECK_EQ(flexsc_ecb_forget(bed->ecb, 1), 0);
}

static void close_one(struct bed *bed)
{
	CHECK_EQ(flexsc_ecb_close(bed->ecb, 1), 0);
}

/* The write() counts, too. */
static void preempt_by_write(struct bed *bed)
{
	eventfd_write(bed->fd, 1);
	while (!bed->handled)
		;
}

static void *touch(void *arg)
{
	*(volatile char *)arg = 1;
	return NULL;
}

/* Returns the number of the faults that are waiting. */
static unsigned int waiting_faults(int fd)
{
	char path[64], line[100];
	unsigned int pending = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	CHECK(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "pending: %u", &pending) == 1)
			break;
	fclose(file);
	return pending;
}

static void need_memory(unsigned int which)
{
	char why[192];

	if (flexsc_ecb_memory_probe(which, why, sizeof(why)))
		SKIP("%s", why);
}

/* FAULTS threads wait for pages. The memory has the lowest free descriptor. */
static void wait_for_pages(struct bed *bed)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = dup(bed->fd);

	close(fd);
	bed->memory = mmap(NULL, FAULTS * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bed->fault = flexsc_ecb_memory(bed->ecb, bed->memory, FAULTS * page,
				       FLEXSC_MEMORY_MISSING, 0, NULL);
	CHECK(bed->fault >= 0);
	for (size_t i = 0; i < FAULTS; i++)
		test_thread(touch, bed->memory + i * page);
	while (waiting_faults(fd) < FAULTS)
		sleep_ms(1);
}

static void complete_faults(struct bed *bed)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct flexsc_ecb_event event;

	for (int i = 0; i < FAULTS; i++) {
		CHECK_EQ(flexsc_ecb_next(bed->ecb, ALL, &event), 1);
		CHECK_EQ(flexsc_ecb_memory_fill(bed->ecb, event.event,
						(void *)(uintptr_t)event.payload[0],
						page, NULL), 0);
	}
	CHECK_EQ(flexsc_ecb_next(bed->ecb, ALL, &event), 0);
}

TEST(a_fault_takes_one_call_and_its_share_of_a_read)
{
	need_memory(FLEXSC_MEMORY_MISSING);
	CHECK_EQ(flexsc_ecb_destroy(test_ecb()), 0);
	CHECK_EQ(calls_of(wait_for_pages, complete_faults), FAULTS + 1);
}

static void write_to_pages(struct bed *bed)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	bed->memory = mmap(NULL, FAULTS * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bed->fault = flexsc_ecb_memory(bed->ecb, bed->memory, FAULTS * page,
				       FLEXSC_MEMORY_CHANGES, 0, NULL);
	CHECK(bed->fault >= 0);
	for (size_t i = 0; i < FAULTS; i += 2)
		bed->memory[i * page] = 'w';
}

static void take_changes(struct bed *bed)
{
	struct flexsc_ecb_range ranges[FAULTS];

	CHECK_EQ(flexsc_ecb_memory_changed(bed->ecb, (unsigned int)bed->fault,
					   ranges, FAULTS), FAULTS / 2);
}

TEST(changed_pages_take_one_call)
{
	need_memory(FLEXSC_MEMORY_CHANGES);
	CHECK_EQ(calls_of(write_to_pages, take_changes), 1);
}

TEST(stores_and_loads_are_no_calls)
{
	CHECK_EQ(calls_of(NULL, take_posts), 0);
	CHECK_EQ(calls_of(NULL, nest_sections), 0);
	CHECK_EQ(calls_of(notify_all, nest_sections), 0);
	CHECK_EQ(calls_of(notify_all, post_in_sections), 0);
	CHECK_EQ(calls_of(notify_all, store_words), 0);
	CHECK_EQ(calls_of(write_events, take_events), 0);
	CHECK_EQ(calls_of(write_events, wait_for_event), 0);
}

TEST(calls_of_the_other_functions)
{
	struct flexsc_ecb *ecb = test_ecb();
	bool kmod = test_is_kmod(ecb);

	CHECK_EQ(flexsc_ecb_destroy(ecb), 0);
	CHECK_EQ(calls_of(NULL, watch_one), 1);
	CHECK_EQ(calls_of(NULL, forget_one), 1);
	CHECK_EQ(calls_of(NULL, close_one), kmod ? 2 : 1);
	/*
	 * uring: write, io_uring_enter, preadv2 to be notified again, and the
	 * signal's return. The module's upcall makes no call, but under a tracer the
	 * module uses a signal.
	 */
	CHECK_EQ(calls_of(notify_all, preempt_by_write), kmod ? 2 : 4);
	has_stack = true;
	CHECK_EQ(calls_of(notify_all, preempt_by_write), kmod ? 2 : 4);
}
