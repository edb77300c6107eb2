// SPDX-License-Identifier: MIT
/*
 * A watched descriptor is closed, in each possible way, and while other threads do
 * the same. The watch ends inside the close, no watch of an open descriptor ends,
 * and no file is leaked. Runs in a guest, as root.
 */
#include "ecb.h"

#include <liburing.h>

#include "chance.h"
#include "system.h"

#define MODULE	"/modules/flexsc.ko"
#define KPROBES	"/sys/kernel/debug/kprobes/enabled"
#define CPU	"/sys/devices/system/cpu/cpu1/online"

static char stack[65536] __attribute__((aligned(16)));

/* Ways to close. */

static void by_close(int fd)
{
	CHECK_EQ(close(fd), 0);
}

static void by_dup2(int fd)
{
	CHECK_EQ(dup2(STDIN_FILENO, fd), fd);
}

static void by_dup3(int fd)
{
	CHECK_EQ(dup3(STDIN_FILENO, fd, O_CLOEXEC), fd);
}

static void by_close_range(int fd)
{
	CHECK_EQ(close_range((unsigned int)fd, (unsigned int)fd, 0), 0);
}

static int close_it(void *arg)
{
	_exit(close(*(int *)arg) ? 1 : 0);
}

/* A process with separate memory and the same descriptors. */
static void by_another_process(int fd)
{
	pid_t pid = clone(close_it, stack + sizeof(stack),
			  CLONE_FILES | SIGCHLD, &fd);

	CHECK(pid > 0);
	test_reap(pid);
}

static void *close_as_thread(void *arg)
{
	CHECK_EQ(close(*(int *)arg), 0);
	return NULL;
}

static void by_thread(int fd)
{
	pthread_t thread = test_thread(close_as_thread, &fd);

	CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void by_uring(int fd)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;

	CHECK_EQ(io_uring_queue_init(4, &ring, 0), 0);
	io_uring_prep_close(io_uring_get_sqe(&ring), fd);
	CHECK_EQ(io_uring_submit_and_wait(&ring, 1), 1);
	CHECK_EQ(io_uring_peek_cqe(&ring, &cqe), 0);
	CHECK_EQ(cqe->res, 0);
	io_uring_queue_exit(&ring);
}

static void by_entry(int fd)
{
	struct raw raw;

	raw_open(&raw, 1, 0);
	raw_post(&raw, 0, 0, SYS_close, fd);
	CHECK_EQ(raw_wait(&raw, 0), FLEXSC_WAIT_LOOK);
	CHECK_EQ(raw.entries[0].ret, 0);
	raw_close(&raw);
}

/*
 * A pending event is revoked. The close also removes POSIX locks, which must not
 * matter.
 */
ECB_TEST_LIMIT(each_way_to_close_ends_a_watch, 60, 8, ALL_GROUPS)
{
	void (*const ways[])(int fd) = {
		by_close, by_dup2, by_dup3, by_close_range, by_another_process,
		by_thread, by_uring, by_entry,
	};
	const struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const size_t count = sizeof(ways) / sizeof(*ways);
	struct flexsc_event_slot event;

	for (size_t i = 0; i < 3 * count; i++) {
		uint32_t index;
		int fds[2];

		pair(fds);
		index = ecb_watch(&ecb, fds[0], POLLIN, 0);
		if (i / count == 1)
			send_byte(fds[1]);
		if (i / count == 2)
			CHECK_EQ(fcntl(fds[0], F_SETLK, &lock), 0);
		test_note("way %zu", i % count);
		ways[i % count](fds[0]);
		CHECK(!ecb_next(&ecb, ALL_GROUPS, &event));
		CHECK_EQ(ecb_forget(&ecb, index), -ENOENT);
		/* io_uring's worker releases the file later. */
		while (!hung_up(fds[1]))
			CHECK(ways[i % count] == by_uring);
		close(fds[1]);
	}
}

/* Closes that don't end the watch. */
ECB_TEST(a_watch_outlives_other_descriptors_of_its_file, 8, ALL_GROUPS)
{
	struct flexsc_event_slot event;
	int copy;
	pid_t pid;

	ecb_watch(&ecb, fds[0], POLLIN, 0);
	copy = dup(fds[0]);
	CHECK_EQ(close(copy), 0);
	/* A descriptor of a process with its own table, and one in a message. */
	pid = test_fork();
	if (!pid)
		_exit(close(fds[0]));
	test_reap(pid);
	CHECK_EQ(pass_file(fds[0], fds[0]), 0);
	CHECK_EQ(close(take_file(fds[1])), 0);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK(ecb_next(&ecb, ALL_GROUPS, &event));
	CHECK_EQ(ecb_forget(&ecb, 0), 0);
}

static int execute_it(void *arg)
{
	CHECK_EQ(fcntl(*(int *)arg, F_SETFD, FD_CLOEXEC), 0);
	execl("/bin/busybox", "true", NULL);
	_exit(127);
}

/* A program that is executed gets its own table, and closes descriptors there. */
ECB_TEST(a_watch_outlives_exec_and_exit_of_processes_that_share_the_table, 8, 0)
{
	pid_t pid;

	ecb_watch(&ecb, fds[0], POLLIN, 0);
	pid = clone(execute_it, stack + sizeof(stack), CLONE_FILES | SIGCHLD,
		    &fds[0]);
	CHECK(pid > 0);
	test_reap(pid);
	CHECK_EQ(ecb_forget(&ecb, 0), 0);
}

struct closing {
	atomic_int fd;		/* -1: closed, or not created yet */
	atomic_bool over;
};

static void *close_again_and_again(void *arg)
{
	struct closing *closing = arg;
	int fd;

	chance_seed(1);
	while (!atomic_load(&closing->over)) {
		fd = atomic_load(&closing->fd);
		if (fd < 0)
			continue;
		for (uint64_t i = below(20000); i; i--)
			__asm__ volatile("");
		close(fd);
		atomic_store(&closing->fd, -1);
	}
	return NULL;
}

/* Watches a listener with a connection while another thread closes it. */
static void watch_as_it_is_closed(struct closing *closing)
{
	int client = socket(AF_UNIX, SOCK_STREAM, 0);
	struct flexsc_event_slot event;
	struct sockaddr_un address;
	socklen_t size;
	int fd = listen_anywhere(&address, &size, 8);

	CHECK_EQ(connect(client, (struct sockaddr *)&address, size), 0);
	atomic_store(&closing->fd, fd);
	ecb_try_accept(&ecb, fd, 0, POLLIN, 0);
	while (atomic_load(&closing->fd) != -1)
		;
	while (ecb_next(&ecb, ALL_GROUPS, &event)) {
		/* An event of the accepted connection: the listener has no data. */
		CHECK_EQ(event.data, 77);
		close((int)event.fd);
	}
	close(client);
}

ECB_TEST_LIMIT(a_listener_that_is_closed_meanwhile_reports_nothing, 60, 8, ALL_GROUPS)
{
	struct closing closing = { .fd = -1 };
	pthread_t thread = test_thread(close_again_and_again, &closing);

	for (int i = 0; i < 3000; i++)
		watch_as_it_is_closed(&closing);
	atomic_store(&closing.over, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* A file in a message remains open, but its descriptor is closed. */
ECB_TEST(a_watch_ends_though_its_file_is_passed_on, 8, ALL_GROUPS)
{
	struct flexsc_event_slot event;
	int way[2], taken;

	pair(way);
	ecb_watch(&ecb, fds[0], POLLIN, 0);
	CHECK_EQ(pass_file(way[0], fds[0]), 0);
	CHECK_EQ(close(fds[0]), 0);
	CHECK_EQ(ecb_forget(&ecb, 0), -ENOENT);
	CHECK(!hung_up(fds[1]));
	send_byte(fds[1]);
	CHECK(!ecb_next(&ecb, ALL_GROUPS, &event));
	taken = take_file(way[1]);
	CHECK(taken >= 0);
	CHECK(ecb_watch(&ecb, taken, POLLIN, 0) < 8);
	CHECK_EQ(close(taken), 0);
	CHECK(hung_up(fds[1]));
}

/* A storm: all threads and processes use the same few numbers. */

#define FIRST	100
#define NUMBERS	12

static atomic_bool over;

static int any_file(void)
{
	int fds[2];

	switch (below(4)) {
	case 0:
		return eventfd(0, EFD_NONBLOCK);
	case 1:
		return dup(FIRST + (int)below(NUMBERS));
	case 2:
		if (pipe(fds))
			return -1;
		break;
	default:
		pair(fds);
	}
	close(fds[1]);
	return fds[0];
}

static void storm_once(void)
{
	const int number = FIRST + (int)below(NUMBERS);
	int fd;

	switch (below(4)) {
	case 0:
		close(number);
		break;
	case 1:
		close_range((unsigned int)number, (unsigned int)number + 2, 0);
		break;
	default:
		fd = any_file();
		dup2(fd, number);
		/*
		 * This number is outside the range: dup() or the kernel has chosen
		 * it.
		 */
		if (fd >= 0)
			close(fd);
	}
}

static void *storm_as_thread(void *arg)
{
	chance_seed((uint64_t)(uintptr_t)arg);
	while (!atomic_load(&over))
		storm_once();
	return NULL;
}

static int storm_as_process(void *arg)
{
	storm_as_thread(arg);
	_exit(0);
}

static unsigned int live_watches(void)
{
	unsigned int live = 0;

	for (uint32_t i = 0; i < ecb.args.events; i++)
		live += ecb_forget(&ecb, i) == 0;
	return live;
}

static void watch_in_storm(uint64_t span)
{
	const uint64_t end = now_ns() + span;
	struct flexsc_event_slot event;
	unsigned int watches = 0;

	while (now_ns() < end) {
		watches += ecb_try_watch(&ecb, FIRST + (int)below(NUMBERS),
					 POLLIN | POLLOUT, 0) >= 0;
		if (one_in(8))
			ecb_forget(&ecb, (uint32_t)below(ecb.args.events));
		while (now_ns() < end && ecb_next(&ecb, ALL_GROUPS, &event))
			;
	}
	test_note("%u watches", watches);
	CHECK(watches > 100);
}

/*
 * When all of the descriptors are closed, no watch remains, while the block still
 * exists.
 */
TEST_LIMIT(no_close_is_missed_under_load, 60)
{
	static char stacks[2][65536] __attribute__((aligned(16)));
	pthread_t threads[3];
	pid_t pids[2];

	become_nobody();
	chance_seed(1);
	ecb_open(&ecb, 64, 0);
	ecb_deliver(&ecb, ALL_GROUPS);
	for (uintptr_t i = 0; i < 3; i++)
		threads[i] = test_thread(storm_as_thread, (void *)(i + 2));
	for (uintptr_t i = 0; i < 2; i++) {
		pids[i] = clone(storm_as_process, stacks[i] + sizeof(stacks[i]),
				CLONE_VM | CLONE_FILES | SIGCHLD,
				(void *)(i + 9));
		CHECK(pids[i] > 0);
	}
	watch_in_storm(4 * SECOND);
	atomic_store(&over, true);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(waitpid(pids[i], NULL, 0), pids[i]);
	CHECK_EQ(close_range(FIRST, FIRST + NUMBERS, 0), 0);
	CHECK_EQ(live_watches(), 0);
	ecb_close(&ecb);
	CHECK(falls_to(system_module_references, 0));
}

/* As another user: closes descriptors, watched or not. */
static void storm_as_bystander(void)
{
	become_nobody();
	for (;;) {
		int fd = eventfd(0, 0);

		dup2(fd, 200);
		close(fd);
	}
}

static void use_module(void)
{
	int fds[2];

	become_nobody();
	ecb_open(&ecb, 64, 0);
	for (int i = 0; i < 60; i++) {
		pair(fds);
		ecb_watch(&ecb, fds[0], POLLIN, 0);
		if (i % 2)
			close(fds[0]);
	}
}

/* The module is loaded and unloaded with one processor online: see guest.py. */
TEST_LIMIT(the_module_is_unloaded_while_descriptors_are_closed, 60)
{
	int module = open(MODULE, O_RDONLY | O_CLOEXEC);
	pid_t pids[2];

	CHECK(module >= 0);
	CHECK_EQ(system_set(CPU, "0"), 0);
	for (int i = 0; i < 2; i++) {
		pids[i] = test_fork();
		if (!pids[i])
			storm_as_bystander();
	}
	for (int i = 0; i < 5; i++) {
		IN_CHILD {
			use_module();
		}
		CHECK(falls_to(system_module_references, 0));
		CHECK_EQ(syscall(SYS_delete_module, "flexsc", O_NONBLOCK), 0);
		CHECK_EQ(syscall(SYS_finit_module, module, "", 0), 0);
		CHECK_EQ(chmod("/dev/flexsc", 0666), 0);
	}
	for (int i = 0; i < 2; i++)
		kill(pids[i], SIGKILL);
	system_set(CPU, "1");
}

/* Root can turn probes off. Then a watch ends late, with its block. */
ECB_TEST(watches_end_with_their_block_while_probes_are_off, 8, 0)
{
	ecb_watch(&ecb, fds[0], POLLIN, 0);
	if (system_set(KPROBES, "0"))
		SKIP("this kernel's probes can't be turned off");
	CHECK_EQ(close(fds[0]), 0);
	IN_CHILD {
		use_module();
	}
	ecb_close(&ecb);
	CHECK(hung_up(fds[1]));
	CHECK(falls_to(system_module_references, 0));
	CHECK_EQ(system_set(KPROBES, "1"), 0);
	/* The probes are on again. */
	ecb_begin(8, 0, 0);
	ecb_watch(&ecb, fds[0], POLLIN, 0);
	CHECK_EQ(close(fds[0]), 0);
	CHECK(hung_up(fds[1]));
}
