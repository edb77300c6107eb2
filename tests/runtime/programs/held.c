/* SPDX-License-Identifier: MIT */
/* libc's own locks, held by a thread that waits; and resource limits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "threads.h"

#define THREADS	8

static int loading[2];

static void *load_waiting(void *arg)
{
	void *library = dlopen("$ORIGIN/libslow.so", RTLD_NOW);
	int *value;

	CHECK(library);
	value = dlsym(library, "slow_value");
	CHECK(value && *value == 'v');
	return arg;
}

static void *live_long(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *cancel_it(void *arg)
{
	pthread_t *thread = arg;

	CHECK_EQ(pthread_cancel(*thread), 0);
	return arg;
}

static void *read_byte(void *arg)
{
	int *fds = arg;
	char byte;

	CHECK_EQ(read(fds[0], &byte, 1), 1);
	return arg;
}

static void *let_load(void *arg)
{
	CHECK_EQ(write(loading[1], "v", 1), 1);
	return arg;
}

static void ignore(int signo)
{
	(void)signo;
}

static void use_signals(pthread_t other)
{
	const union sigval value = { 0 };
	struct timespec moment = { 0, 1 };
	stack_t stack;
	sigset_t set;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
	CHECK_EQ(sigaltstack(NULL, &stack), 0);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(pthread_kill(other, SIGUSR1), 0);
	CHECK_EQ(pthread_sigqueue(other, SIGUSR1, value), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(sigqueue(getpid(), SIGUSR1, value), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(sigtimedwait(&set, NULL, &moment), -1);
}

static void use_processes(void)
{
	int pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(system("true"), 0);
	CHECK_EQ(seteuid(geteuid()), 0);
	CHECK_EQ(pthread_setname_np(pthread_self(), "loads"), 0);
}

/* The dynamic loader's lock is held while the constructor waits. */
TEST(a_library_may_wait_for_others_while_it_is_loaded)
{
	pthread_t loader, other, canceller;
	char fd[16], byte;
	int fds[2];

	signal(SIGUSR1, ignore);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, loading), 0);
	snprintf(fd, sizeof(fd), "%d", loading[0]);
	setenv("SLOW_SOCKET", fd, 1);
	other = start(live_long, NULL);
	loader = start(load_waiting, NULL);
	CHECK_EQ(read(loading[1], &byte, 1), 1);
	use_signals(other);
	use_processes();
	canceller = start(cancel_it, &other);
	settle();
	CHECK_EQ(write(fds[1], "x", 1), 1);
	join(start(read_byte, fds));
	join(start(let_load, NULL));
	join(loader);
	join(canceller);
	join(other);
}

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
	usleep(20000);
	CHECK_EQ(pthread_key_create(&key, NULL), 0);
}

static void *cancelled_once(void *arg)
{
	pthread_once(arg, make_key);
	return arg;
}

TEST(once_begins_again_after_a_cancellation)
{
	pthread_t first = start(cancelled_once, &once), second;

	usleep(5000);
	second = start(cancelled_once, &once);
	CHECK_EQ(pthread_cancel(first), 0);
	CHECK(join(second) == &once);
	join(first);
	CHECK_EQ(pthread_setspecific(key, &key), 0);
}

static FILE *out;

static void *hold_stream(void *arg)
{
	for (int i = 0; i < 20; i++) {
		flockfile(out);
		fputs("a", out);
		usleep(100);
		fputs("b", out);
		funlockfile(out);
	}
	return arg;
}

TEST(a_stream_can_be_held_over_a_wait)
{
	int c;

	out = tmpfile();
	CHECK(out);
	run_numbered(THREADS, hold_stream);
	rewind(out);
	for (int i = 0; i < THREADS * 20; i++) {
		CHECK_EQ(getc(out), 'a');
		CHECK_EQ(getc(out), 'b');
	}
	c = getc(out);
	CHECK_EQ(c, EOF);
}

/* Resource limits. */

static void *end_at_once(void *arg)
{
	usleep(100);
	return arg;
}

static atomic_bool all_made;

static void *live(void *arg)
{
	while (!all_made)
		usleep(5000);
	return arg;
}

static void limit(int what, rlim_t most)
{
	struct rlimit both = { most, most };

	CHECK_EQ(setrlimit(what, &both), 0);
}

/* Creates up to n threads, and joins them. Returns how many could be created. */
static int make_many(int n)
{
	pthread_t *threads = calloc((size_t)n, sizeof(*threads));
	int made = 0, err = 0;

	all_made = false;
	while (made < n && !err) {
		err = pthread_create(&threads[made], NULL, live, NULL);
		made += !err;
	}
	all_made = true;
	CHECK(!err || err == EAGAIN || err == ENOMEM);
	join_all(threads, made);
	free(threads);
	return made;
}

/* Limits the address space to this many MB more than the process uses. */
static void address_space_left(rlim_t mb)
{
	char line[256];
	FILE *file = fopen("/proc/self/statm", "r");

	CHECK(file && fgets(line, sizeof(line), file));
	fclose(file);
	limit(RLIMIT_AS, (strtoul(line, NULL, 10) << 12) + (mb << 20));
}

static void address_space(void)
{
	address_space_left(200);
}

TEST(threads_need_address_space)
{
	CHECK_EQ(make_many(10), 10);
	address_space();
	for (int i = 0; i < 5; i++)
		CHECK(make_many(200) < 200);
	CHECK(make_many(3) > 0);
}

/* Two stacks of 8 MB, and little memory beside them for the runtime's start. */
TEST(two_threads_need_little_address_space)
{
	static const rlim_t rooms[] = { 32, 50, 64, 90, 128, 140, 256, 700 };

	for (unsigned int i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		int pid = test_fork();

		if (!pid) {
			address_space_left(rooms[i]);
			CHECK_EQ(make_many(2), 2);
			test_leave();
		}
		test_reap(pid);
	}
}

/*
 * The address space that the runtime reserves must not count against a limit that
 * the program sets later.
 */
TEST(a_later_limit_leaves_address_space)
{
	const rlim_t most = 2UL << 30;

	CHECK_EQ(make_many(2), 2);
	limit(RLIMIT_AS, most);
	CHECK_EQ(make_many(10), 10);
}

/* Becomes a user without processes, so the limit applies to this process alone. */
static void limit_threads(uid_t user, rlim_t most)
{
	if (geteuid())
		SKIP("needs root, to become a user without other processes");
	CHECK_EQ(setresgid(user, user, user), 0);
	CHECK_EQ(setresuid(user, user, user), 0);
	limit(RLIMIT_NPROC, most);
}

TEST(there_may_be_few_threads)
{
	limit_threads(64321, 40);
	for (int i = 0; i < 5; i++)
		CHECK(make_many(60) < 60);
}

TEST(there_may_be_no_thread)
{
	limit_threads(64322, 1);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(make_many(3), 0);
}

/* Waits for other things than descriptors may need a kernel thread elsewhere. */
static void *make_calls(void *arg)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int pid = test_fork(), fd = fileno(arg);

	if (!pid) {
		usleep(50000);
		test_leave();
	}
	CHECK_EQ(setresgid(64325, 64325, 64325), 0);
	CHECK_EQ(setresuid(64325, 64325, 64325), 0);
	limit(RLIMIT_NPROC, 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(flock(fd, i % 2 ? LOCK_UN : LOCK_EX), 0);
		CHECK_EQ(fcntl(fd, F_SETLKW, &whole), 0);
		CHECK_EQ(write(fd, "x", 1), 1);
		CHECK_EQ(fsync(fd), 0);
	}
	test_reap(pid);
	return arg;
}

TEST(calls_need_no_more_threads)
{
	FILE *file = tmpfile();

	if (geteuid())
		SKIP("needs root, to become a user without other processes");
	CHECK(file);
	CHECK(join(start(make_calls, file)) == file);
	fclose(file);
}

TEST(there_may_be_few_descriptors)
{
	for (rlim_t most = 4; most < 40; most += 3) {
		int pid = test_fork();

		if (!pid) {
			limit(RLIMIT_NOFILE, most);
			CHECK_EQ(make_many(20), 20);
			test_leave();
		}
		test_reap(pid);
	}
}

/*
 * When such a descriptor is closed, the runtime looks at all carriers, because a
 * call has waited for it.
 */
static void *close_often(void *arg)
{
	struct epoll_event event;

	while (!all_made) {
		int fd = epoll_create1(0);

		epoll_wait(fd, &event, 1, 1);
		close(fd);
	}
	return arg;
}

/*
 * A process whose threads have ended, and that has forked, starts threads again:
 * first one that uses descriptors, then others, some of which can't be created.
 */
static void begin_again(rlim_t most)
{
	pthread_t closers[8];
	int pid, made = 0;

	CHECK_EQ(make_many(1), 1);
	pid = test_fork();
	if (!pid)
		test_leave();
	test_reap(pid);
	CHECK_EQ(setresgid(64326, 64326, 64326), 0);
	CHECK_EQ(setresuid(64326, 64326, 64326), 0);
	limit(RLIMIT_NPROC, most);
	all_made = false;
	while (made < 8 && !pthread_create(&closers[made], NULL, close_often, NULL))
		made++;
	for (int i = 0; i < 20; i++) {
		pthread_t other;

		if (!pthread_create(&other, NULL, end_at_once, NULL))
			join(other);
	}
	all_made = true;
	join_all(closers, made);
}

TEST(a_process_begins_again_near_its_limit)
{
	if (geteuid())
		SKIP("needs root, to become a user without other processes");
	for (rlim_t most = 2; most < 16; most++) {
		int pid = test_fork();

		if (!pid) {
			begin_again(most);
			test_leave();
		}
		test_reap(pid);
	}
}

TEST(there_may_be_no_locked_memory)
{
	limit(RLIMIT_MEMLOCK, 0);
	CHECK_EQ(make_many(20), 20);
}

/* Any thread changes its user while others start, wait and end. */

static atomic_bool stop;

static atomic_int calls_home;

static void count_call(int signo)
{
	(void)signo;
	calls_home++;
}

/* The thread leaves its host, and computes until the runtime moves it back. */
static void *compute_until_called(void *arg)
{
	while (!stop) {
		int seen = calls_home;

		usleep(1);
		while (calls_home == seen && !stop)
			;
	}
	return arg;
}

static void *be_called(void *arg)
{
	pthread_t thread = start(compute_until_called, NULL);

	while (!stop) {
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		usleep(50);
	}
	join(thread);
	return arg;
}

TEST(identity_changes_while_threads_are_called_home)
{
	struct sigaction action = { .sa_handler = count_call,
				    .sa_flags = SA_RESTART };
	uint64_t end = now_ns() + 2 * SECOND;
	pthread_t thread;

	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	thread = start(be_called, NULL);
	for (int i = 1; now_ns() < end; i++) {
		CHECK_EQ(setresuid((uid_t)-1, geteuid(), (uid_t)-1), 0);
		/* Creating a thread needs this libc lock, which isn't fair. */
		if (i % 20 == 0)
			usleep(100);
	}
	stop = true;
	join(thread);
}
