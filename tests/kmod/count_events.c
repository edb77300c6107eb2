// SPDX-License-Identifier: MIT
/*
 * Guest instructions per event, as count.c counts them per call. "events" counts event
 * control blocks: the cost of an event of a socket, beyond the write() that causes it.
 * "upcalls" counts a write() to a socket that the writing thread watches:
 *
 *	delivered	beyond the write: the event is in memory
 *	upcall		beyond that: preempted, the event handled, resumed
 *
 * It also counts how events are taken from memory. "xsave" saves the extended state.
 */
#include "ecb.h"
#include "icount.h"
#include "system.h"

#include "lib/base/syscall.h"
#include "tests/events/upcall/leaf.h"

/* kmod-count-events events. */

static volatile uint64_t taken_word;

/* Step U1, on a list with one slot. */
static inline void take_event(void)
{
	struct flexsc_event_slot *slot;
	uint32_t event;

	if (!__atomic_load_n(&ecb.control->pending, __ATOMIC_ACQUIRE))
		abort();
	__atomic_fetch_and(&ecb.control->pending, ~1U, __ATOMIC_SEQ_CST);
	event = __atomic_exchange_n(&ecb.control->head[0], 0, __ATOMIC_ACQUIRE);
	slot = &ecb.slots[event - 1];
	taken_word = slot->data + slot->type + slot->next;
	taken_word = __atomic_exchange_n(&slot->state, 0, __ATOMIC_ACQ_REL);
}

static void write_byte(int fd)
{
	if (raw_syscall(SYS_write, (uint64_t)fd, (uint64_t)"x", 1, 0, 0, 0) != 1)
		abort();
}

static void read_bytes(int fd)
{
	char bytes[16];

	CHECK(read(fd, bytes, sizeof(bytes)) > 0);
}

/* The median count of writes, and of "taken" after each. */
static double writes(const int both[2], void (*taken)(void))
{
	return COUNT((write_byte(both[1]), taken ? taken() : (void)0),
		     read_bytes(both[0]));
}

/* Uses the system call with the fewest instructions. */
static inline int watch(const struct flexsc_ecb_watch *args)
{
	long event = raw_syscall(SYS_ioctl, (uint64_t)ecb.fd, FLEXSC_ECB_WATCH,
				 (uint64_t)args, 0, 0, 0);

	if (event < 0)
		abort();
	return (int)event;
}

/*
 * The median counts of a watch, and of the close() of a watched or unwatched
 * descriptor.
 */
static double closes(bool watched, double *watching)
{
	uint64_t counts[ROUNDS], watches[ROUNDS], begin;
	int both[2];

	for (int r = 0; r < ROUNDS; r++) {
		struct flexsc_ecb_watch args = { .want = POLLIN };

		pair(both);
		args.fd = both[0];
		begin = instructions();
		if (watched)
			watch(&args);
		watches[r] = since(begin);
		begin = instructions();
		raw_syscall(SYS_close, (uint64_t)both[0], 0, 0, 0, 0, 0);
		counts[r] = since(begin);
		CHECK_EQ(close(both[1]), 0);
	}
	*watching = median(watches, ROUNDS);
	return median(counts, ROUNDS);
}

/* An eventfd executes few instructions itself. */
static void count_eventfd(void)
{
	int fd = (int)syscall(SYS_eventfd2, 0, O_NONBLOCK);
	const struct flexsc_ecb_watch args = { .fd = fd, .want = POLLIN };
	const uint64_t one = 1, number = (uint64_t)fd;
	struct flexsc_event_slot revoked;
	double unwatched, watched;
	int event;

	unwatched = COUNT(raw_syscall(SYS_write, number, (uint64_t)&one, 8, 0, 0, 0), );
	ecb_watch(&ecb, fd, POLLIN, 0);
	watched = COUNT((raw_syscall(SYS_write, number, (uint64_t)&one, 8, 0, 0, 0),
			 take_event()), );
	printf("watch of an eventfd %.0f\n",
	       COUNT(event = watch(&args),
		     (CHECK_EQ(ecb_forget(&ecb, (uint32_t)event), 0),
		      CHECK(!ecb_next(&ecb, 1, &revoked)))));
	printf("event of an eventfd taken %.0f\n", watched - unwatched);
}

TEST_LIMIT(events, 600)
{
	double unwatched, watching, without, plain_close;
	int both[2];

	calibrate();
	/* Without event control blocks, no probe is armed. */
	without = closes(false, &watching);
	ecb_open(&ecb, 64, 0);
	ecb_deliver(&ecb, 1);
	pair(both);
	writes(both, NULL);
	unwatched = writes(both, NULL);
	ecb_watch(&ecb, both[0], POLLIN, 0);
	printf("event taken %.0f\n", writes(both, take_event) - unwatched);
	write_byte(both[1]);
	read_bytes(both[0]);
	printf("event again %.0f\n", writes(both, NULL) - unwatched);
	count_eventfd();
	plain_close = closes(false, &watching);
	printf("close of anything else %.0f more\n", plain_close - without);
	printf("close of what is watched %.0f more\n",
	       closes(true, &watching) - plain_close);
	printf("watch %.0f\n", watching);
	ecb_close(&ecb);
}

/* kmod-count-events upcalls. */

static struct flexsc__upcall upcall;
static uint32_t taken;

/* Steps U2 and U1, newest event first. */
static void take_events(struct flexsc__upcall *unused)
{
	struct flexsc_event_control *control = ecb.control;

	while (__atomic_load_n(&control->pending, __ATOMIC_RELAXED)) {
		uint32_t next;

		__atomic_fetch_and(&control->pending, 0, __ATOMIC_SEQ_CST);
		next = __atomic_exchange_n(&control->head[0], 0, __ATOMIC_ACQUIRE);
		while (next) {
			struct flexsc_event_slot *slot = &ecb.slots[next - 1];

			next = slot->next;
			__atomic_exchange_n(&slot->state, 0, __ATOMIC_ACQ_REL);
			taken++;
		}
	}
}

/* The median count of a write to a socket, on this thread. */
static uint64_t count_writes(int fds[2])
{
	return (uint64_t)COUNT(write_byte(fds[1]),
			       (read_bytes(fds[0]),
				ecb.control ? take_events(&upcall) : (void)0));
}

static void post_all_events(uint32_t events)
{
	for (uint32_t i = 0; i < events; i++)
		ecb_post(&ecb, i, 0, POLLIN);
}

static uint64_t count_dequeuing(uint32_t events)
{
	ecb.control->critical = 1;
	post_all_events(events);
	return (uint64_t)COUNT(take_events(&upcall), post_all_events(events));
}

static void count_upcalls(int fds[2], enum leaf_keep keep, const char *name)
{
	uint64_t plain = count_writes(fds), delivered, whole;

	ecb_open(&ecb, 8, 0);
	CHECK(leaf_upcall(&upcall, ecb.control, keep));
	upcall.run = take_events;
	ecb.control->notify = 0;
	ecb_watch(&ecb, fds[0], POLLIN, 0);
	ecb_deliver(&ecb, 1);
	delivered = count_writes(fds);
	taken = 0;
	ecb.control->notify = 1;
	whole = count_writes(fds);
	CHECK_EQ(taken, ROUNDS);
	printf("%s: write %lu, delivered +%lu, upcall +%lu, whole %lu\n", name,
	       plain, delivered - plain, whole - delivered, whole - plain);
	ecb_close(&ecb);
	ecb.control = NULL;
}

TEST_LIMIT(upcalls, 60)
{
	calibrate();
	pair(fds);
	count_upcalls(fds, KEEP_PLAIN, "xsave");
	count_upcalls(fds, KEEP_NOTHING, "integer");
	ecb_open(&ecb, 128, 0);
	for (uint32_t i = 0; i < 100; i++)
		ecb_watch_user(&ecb, 0);
	for (uint32_t events = 1; events <= 100; events *= 10)
		printf("taking %u: %lu\n", events, count_dequeuing(events));
	ecb_close(&ecb);
	fflush(stdout);
}
