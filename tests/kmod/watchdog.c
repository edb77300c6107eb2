// SPDX-License-Identifier: MIT
/*
 * No call blocks a processor: whatever is in a process's memory, and whichever of
 * the module's calls it makes, a real-time task on the same processor runs soon.
 * Runs in a guest with one processor whose clock counts instructions, so the host's
 * load doesn't matter; as root.
 *
 *	kmod-watchdog [seed=N] [rounds=N]
 */
#include "ecb.h"

#include "chance.h"

#define LATE	(50 * MS)
#define BRIEF	(5 * MS)
#define TICK	MS
#define SPAN	(100 * MS)	/* duration of a process */
#define LONG	(60 * SECOND)	/* limit for a process that ends by itself */
#define NOBODY	65534

/* Malicious processes of user nobody, each alone on the processor. */

static void be_nobody(void)
{
	const struct sched_param none = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK_EQ(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	CHECK_EQ(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY), 0);
}

static void wait_again(uint32_t flags)
{
	raw.shared->wait_flags = flags;
	raw.shared->timeout = 0;
	ioctl(raw.fd, FLEXSC_IOC_WAIT, 0);
}

/* The owner puts the entry aside, and no thread takes it. */
static void aside(uint8_t flags)
{
	raw_post(&raw, 0, flags, SYS_getppid, fds[0]);
	wait_again(FLEXSC_WAIT_NO_MORE);
	wait_again(FLEXSC_WAIT_NO_MORE);
	CHECK_EQ(raw_reap(&raw), 1);
	CHECK_EQ(raw.entries[0].ret, -EAGAIN);
}

static void one_aside(void)
{
	aside(FLEXSC_DEFER);
}

static void never_readable(void)
{
	aside(FLEXSC_IF_READABLE);
}

/* The tail claims two billion entries, of which none is submitted. */
static void a_lying_tail(void)
{
	raw.shared->tail += 1U << 31;
	wait_again(0);
}

/* Random actions of this kind, with calls that end soon. */

static void *serve(void *arg)
{
	struct flexsc_serve args = { .index = FLEXSC_NO_ENTRY, .core = -1 };

	for (;;) {
		int result = ioctl(raw.fd, FLEXSC_IOC_SERVE, &args);

		args.flags = (uint32_t)below(16);
		if (result == FLEXSC_SERVE_END)
			return NULL;
	}
}

static void post_any(void)
{
	static const struct timespec brief = { 0, 1000 };
	const uint32_t index = (uint32_t)below(4);

	if (one_in(3))
		raw_post(&raw, index, (uint8_t)(below(16) << 3), SYS_nanosleep, &brief);
	else
		raw_post(&raw, index, (uint8_t)(below(16) << 3), SYS_getppid, below(4));
	if (one_in(4))
		raw.shared->tail += (uint32_t)below(1000);
}

static void set_any_policy(void)
{
	struct flexsc_policy policy = {
		.cores = (uint32_t)below(2),
		.spin = (uint32_t)below(3),
		.spin_us = (uint32_t)below(FLEXSC_SPIN_US_MAX),
		.idle_ms = (uint32_t)below(3),
		.backlog = (uint32_t)below(3),
	};

	ioctl(raw.fd, FLEXSC_IOC_SET_POLICY, &policy);
}

static void anything(void)
{
	set_any_policy();
	for (uint64_t n = below(4); n; n--)
		test_thread(serve, NULL);
	for (;;) {
		switch (below(6)) {
		case 0:
			raw.shared->seen = below(3);
			raw_enter(&raw);
			break;
		case 1:
			ioctl(raw.fd, FLEXSC_IOC_KICK);
			break;
		case 2:
			ioctl(raw.fd, FLEXSC_IOC_WAKE);
			break;
		case 3:
			ioctl(raw.fd, FLEXSC_IOC_CANCEL, below(4));
			raw_reap(&raw);
			break;
		default:
			post_any();
			wait_again((uint32_t)below(4));
		}
	}
}

/* Event control blocks, with as many watches as a user may have by default. */

static void open_most_events(void)
{
	const struct rlimit limit = { 8 << 20, 8 << 20 };
	uint32_t events = (8 << 20) / sizeof(struct flexsc_event_slot);

	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	while (ecb_try_open(&ecb, events, 0) == -ENOMEM)
		events -= events / 32;
	CHECK(ecb.fd >= 0);
	CHECK_EQ(close(ecb.fd), 0);
	ecb_open(&ecb, events, 0);
}

static void take_all(void)
{
	for (uint32_t i = 0; i < ecb.args.events; i++)
		ecb.slots[i].state = 0;
	memset(ecb.control->head, 0, sizeof(ecb.control->head));
	ecb.control->pending = 0;
}

static void watch_often(int fd, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		ecb_watch(&ecb, fd, POLLIN, 0);
}

/* More than necessary, unless a file can't have many watches. */
#define FILES	160
static int files[FILES], writers[FILES];
static uint32_t writer_count;

static void watch_all(void)
{
	for (uint32_t i = 0; i < FILES; i++)
		watch_often(files[i], ecb.args.events / FILES);
}

/* Each eventfd has its own wait queue. */
static void watch_eventfds(void)
{
	for (uint32_t i = 0; i < FILES; i++)
		writers[i] = files[i] = eventfd(0, EFD_NONBLOCK);
	writer_count = FILES;
	watch_all();
}

/* Repeatedly opened read ends of one pipe share one wait queue. */
static void watch_one_pipe(void)
{
	char path[32];
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	for (uint32_t i = 0; i < FILES; i++)
		files[i] = open(path, O_RDONLY | O_NONBLOCK);
	writers[0] = fds[1];
	writer_count = 1;
	watch_all();
}

static void write_all(void)
{
	const uint64_t one = 1;

	for (uint32_t i = 0; i < writer_count; i++)
		CHECK_EQ(write(writers[i], &one, 8), 8);
}

/* Each watch has events: one is held, the others are delivered. */
static void handle_events(void)
{
	write_all();
	ecb_deliver(&ecb, ALL_GROUPS);
	take_all();
	write_all();
	CHECK(ioctl(ecb.fd, FLEXSC_ECB_FLUSH) >= 0);
	take_all();
	write_all();
	for (uint32_t i = 0; i < FILES; i++)
		CHECK_EQ(close(files[i]), 0);
	CHECK(ioctl(ecb.fd, FLEXSC_ECB_FLUSH) >= 0);
	ecb_close(&ecb);
}

static void many_watches_of_a_queue(void)
{
	open_most_events();
	watch_one_pipe();
	handle_events();
}

static void many_watches_of_many_files(void)
{
	open_most_events();
	watch_eventfds();
	handle_events();
}

/* The watches end when their process is killed. */
static void many_watches_that_stay(void)
{
	open_most_events();
	watch_eventfds();
	raise(SIGKILL);
}

/* Returns how long it takes to close a pipe's end and its duplicate, with watches. */
static uint64_t time_of_closing(uint32_t watches)
{
	int fds[2], duplicate;
	uint64_t begin;

	CHECK_EQ(pipe(fds), 0);
	duplicate = dup(fds[0]);
	watch_often(fds[0], watches);
	begin = now_ns();
	CHECK_EQ(close(duplicate), 0);
	CHECK_EQ(close(fds[0]), 0);
	begin = now_ns() - begin;
	CHECK_EQ(write(fds[1], "x", 1), -1);
	close(fds[1]);
	return begin;
}

/* Four times as many watches take about four times as long, not sixteen times. */
static void many_watches_of_a_pipe(void)
{
	uint64_t few, many;

	signal(SIGPIPE, SIG_IGN);
	open_most_events();
	few = time_of_closing(250);
	many = time_of_closing(1000);
	test_note("250: %llu us, 1000: %llu us",
		  (unsigned long long)(few / 1000),
		  (unsigned long long)(many / 1000));
	CHECK(many < 6 * few);
	ecb_close(&ecb);
}

/* All connections are accepted in one go. */
static void many_connections(void)
{
	struct sockaddr_un name;
	socklen_t size;
	int listener = listen_anywhere(&name, &size, 10000);
	uint32_t count = 0;

	open_most_events();
	CHECK(ecb_try_accept(&ecb, listener, 0, POLLIN, 0) >= 0);
	for (;; count++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&name, size))
			break;
	}
	test_note("%u connections", count);
	ecb_deliver(&ecb, ALL_GROUPS);
	CHECK(ecb.control->pending);
	ecb_close(&ecb);
}

/*
 * All listeners have an event at the same time. None accepts, because their files
 * are in blocking mode by now.
 */
static void many_listeners(void)
{
	static int listeners[FILES];
	struct sockaddr_un names[FILES];
	socklen_t size = 0;

	open_most_events();
	for (uint32_t i = 0; i < FILES; i++) {
		listeners[i] = listen_anywhere(&names[i], &size, 8);
		for (uint32_t n = ecb.args.events / FILES; n; n--)
			CHECK(ecb_try_accept(&ecb, listeners[i], 0, 0, 0) >= 0);
	}
	for (uint32_t i = 0; i < FILES; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

		CHECK_EQ(fcntl(listeners[i], F_SETFL, 0), 0);
		CHECK_EQ(connect(fd, (struct sockaddr *)&names[i], size), 0);
	}
	ecb_deliver(&ecb, ALL_GROUPS);
	CHECK(ecb.control->pending);
	ecb_close(&ecb);
}

/* The watchdog. */

static void sleep_until(uint64_t ns)
{
	const struct timespec until = { (time_t)(ns / SECOND),
					(long)(ns % SECOND) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/*
 * Returns the maximum delay of this task while the process runs. The process may end
 * by itself, with a status; otherwise it is killed.
 */
static uint64_t lateness_beside(pid_t pid, uint64_t span, int *status)
{
	const uint64_t end = now_ns() + span;
	uint64_t most = 0, due = now_ns();

	while (due < end && waitpid(pid, status, WNOHANG) == 0) {
		due += TICK;
		sleep_until(due);
		if (now_ns() - due > most)
			most = now_ns() - due;
		if (now_ns() > due)
			due = now_ns();
	}
	return most;
}

/* Returns the status of the process; -1: it didn't end by itself. */
static int disturb_for(void (*run)(void), uint64_t seed, uint64_t span,
		       uint64_t most)
{
	const struct sched_param first = { .sched_priority = 50 };
	int status = -1;
	uint64_t late;
	pid_t pid;

	CHECK_EQ(sched_setscheduler(0, SCHED_FIFO, &first), 0);
	pid = test_fork();
	if (!pid) {
		be_nobody();
		chance_seed(seed);
		raw_begin(1, 0);
		run();
		test_leave();
	}
	late = lateness_beside(pid, span, &status);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	test_note("seed %llu: at most %llu us late", (unsigned long long)seed,
		  (unsigned long long)(late / 1000));
	CHECK(late < most);
	return status;
}

static void disturb(void (*run)(void), uint64_t seed)
{
	disturb_for(run, seed, SPAN, LATE);
}

/*
 * One test in which the process is killed in the end, and one in which it ends by
 * itself, successfully.
 */
#define DISTURB_TEST(id, run)						\
	TEST(id)							\
	{								\
		disturb(run, 0);					\
	}
#define PATIENT_TEST(id, run, most)					\
	TEST_LIMIT(id, 200)						\
	{								\
		CHECK_EQ(disturb_for(run, 0, LONG, most), 0);		\
	}

/*
 * The watchdog can preempt a process that computes; otherwise the tests would prove
 * nothing.
 */
static void burn(void)
{
	for (;;)
		;
}

DISTURB_TEST(a_computing_process_is_preempted, burn)
DISTURB_TEST(an_entry_that_is_put_aside_delays_no_task, one_aside)
DISTURB_TEST(an_entry_that_is_never_ready_delays_no_task, never_readable)
DISTURB_TEST(a_false_tail_delays_no_task, a_lying_tail)

/* The kernel calls all watches of a queue without a pause. */
PATIENT_TEST(an_event_of_many_watches_delays_no_task, many_watches_of_a_queue, LATE)
/* The module's own loops yield the processor, however long they are. */
PATIENT_TEST(events_of_many_files_delay_no_task, many_watches_of_many_files, BRIEF)
PATIENT_TEST(a_close_takes_time_in_proportion_to_watches, many_watches_of_a_pipe, LATE)
PATIENT_TEST(many_connections_delay_no_task, many_connections, LATE)
PATIENT_TEST(many_listeners_delay_no_task, many_listeners, 2 * BRIEF)

TEST_LIMIT(the_end_of_many_watches_delays_no_task, 200)
{
	int status = disturb_for(many_watches_that_stay, 0, LONG, LATE);

	CHECK(WIFSIGNALED(status));
}

TEST_LIMIT(no_process_keeps_a_processor, 600)
{
	const unsigned long seed = test_parameter("seed", (unsigned long)now_ns());
	const unsigned long rounds = test_parameter("rounds", 20);

	for (unsigned long i = 0; i < rounds; i++)
		disturb(anything, seed + i);
}
