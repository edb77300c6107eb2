/* SPDX-License-Identifier: MIT */
/*
 * Filters of system calls (seccomp) that end the process at calls which carriers make,
 * and that are installed while calls hang, or before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "waiters.h"

/*
 * While calls hang, a filter is installed that ends the process at system calls
 * which carriers make.
 */

static void *echo_byte(void *arg)
{
	const int fd = *(int *)arg;
	char byte;

	while (recv(fd, &byte, 1, 0) == 1)
		CHECK_EQ(send(fd, &byte, 1, 0), 1);
	return NULL;
}

/*
 * Installs a filter for all threads: an action for the calls that are listed, and
 * another one for all others.
 */
static void filter(const int *list, unsigned int n, uint32_t listed,
		   uint32_t other)
{
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(filter_install(list, n, listed, other, SECCOMP_FILTER_FLAG_TSYNC),
		 0);
}

#define FORBID(...)							\
	filter((const int[]){ __VA_ARGS__ },				\
	       sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int),	\
	       SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW)

static void exchange_byte(int fd)
{
	char byte = 'b';

	CHECK_EQ(send(fd, &byte, 1, 0), 1);
	CHECK_EQ(recv(fd, &byte, 1, 0), 1);
	CHECK_EQ(byte, 'b');
}

static void filter_while_calls_hang(unsigned int n)
{
	enum { ECHOES = 8 };
	pthread_t echoing[ECHOES], *threads = calloc(n, sizeof(*threads));
	int p[ECHOES][2];

	for (int i = 0; i < ECHOES; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, p[i]), 0);
		echoing[i] = start(echo_byte, &p[i][1]);
		exchange_byte(p[i][0]);
	}
	begin_to_hang(threads, n);
	FORBID(SYS_io_uring_enter, SYS_io_uring_register, SYS_epoll_pwait);
	for (int i = 0; i < ECHOES; i++)
		exchange_byte(p[i][0]);
	let_go(threads, n);
	/* By now the kernel threads that hung have continued. */
	settle();
	for (int i = 0; i < ECHOES; i++) {
		exchange_byte(p[i][0]);
		CHECK_EQ(close(p[i][0]), 0);
		join(echoing[i]);
	}
	free(threads);
}

TEST_LIMIT(a_filter_comes_while_a_call_hangs, 40)
{
	filter_while_calls_hang(1);
}

TEST_LIMIT(a_filter_comes_while_calls_hang_on_all_carriers, 40)
{
	filter_while_calls_hang(carriers() ?: 2);
}

/*
 * A filter that ends the process at all calls except those that the runtime tries
 * before it accepts a filter, and those of this test. Carriers continue, and make no
 * other calls.
 */

static const int permitted[] = {
#define OWN_CALL(name, ...)	SYS_##name,
#define NEW_CALL		OWN_CALL
#define CALL_OF(group, name, ...) IN_##group(SYS_##name)
#define IN_OWN_RINGS(nr)	nr,
#define IN_OWN_MODULE(nr)	nr,
#define IN_OWN_CORES(nr)	nr,
#define IN_OWN_COMMAND(nr)
#include "runtime/calls/own_calls.def"
	/* Calls of this program, and of libc on its behalf. */
	SYS_read, SYS_write, SYS_recvfrom, SYS_accept, SYS_ppoll,
	SYS_clock_nanosleep, SYS_shutdown, SYS_exit, SYS_exit_group,
	SYS_rt_sigreturn, SYS_rseq, SYS_seccomp,
	/* Calls of the harness. */
#ifdef SYS_readlink
	SYS_readlink,
#endif
	SYS_getdents64, SYS_lseek, SYS_fstat, SYS_kill,
};

static void *be_carried(void *arg)
{
	*(bool *)arg = becomes_carried();
	return NULL;
}

static void *compute(void *arg)
{
	const uint64_t end = now_ns() + 50 * MS;

	usleep(100);
	while (now_ns() < end)
		;
	return arg;
}

static void compute_and_hang_under_a_filter(void)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		join(start(compute, NULL));
		begin_to_hang(threads, 2);
		all_go_on(5, hangs, 2);
		let_go(threads, 2);
		all_go_on(2, NULL, 0);
	}
}

TEST_LIMIT(the_runtime_makes_the_calls_that_a_filter_was_tried_with, 60)
{
	bool carried = false;
	int pid = begin_waiting();

	filter(permitted, sizeof(permitted) / sizeof(*permitted),
	       SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
	compute_and_hang_under_a_filter();
	join(start(be_carried, &carried));
	CHECK_EQ(carried, preloaded());
	end_waiting(pid);
	/* Carriers end, and start again. */
	pid = test_fork();
	if (!pid)
		test_leave();
	test_reap(pid);
	join(start(be_carried, &carried));
	CHECK_EQ(carried, preloaded());
}

/* The filter forbids calls that the runtime seldom makes, and this test never. */
TEST_LIMIT(a_filter_forbids_the_calls_that_create_a_carrier, 60)
{
	int pid = begin_waiting();

	FORBID(SYS_memfd_create, SYS_timer_create, SYS_ftruncate);
	compute_and_hang_under_a_filter();
	end_waiting(pid);
}

/* The filter forbids a call by which the monitor reads whether a carrier is stuck. */
TEST_LIMIT(a_filter_forbids_the_monitor_s_calls, 60)
{
	int pid = begin_waiting();

	FORBID(SYS_pread64);
	compute_and_hang_under_a_filter();
	end_waiting(pid);
}

static atomic_bool may_compute;

static void *compute_later(void *arg)
{
	while (!may_compute)
		usleep(1000);
	return compute(arg);
}

static void forbid_to_return(uint32_t action)
{
	static const int call = SYS_rt_sigreturn;
	pthread_t thread = start(compute_later, NULL);

	settle();
	filter(&call, 1, action, SECCOMP_RET_ALLOW);
	may_compute = true;
	join(thread);
	join(start(compute, NULL));
}

TEST(a_filter_kills_at_the_return_from_a_handler)
{
	forbid_to_return(SECCOMP_RET_KILL_PROCESS);
}

TEST(a_filter_fails_the_return_from_a_handler)
{
	forbid_to_return(SECCOMP_RET_ERRNO | EPERM);
}

/*
 * Posted calls hang when they are interrupted: writes to a full pipe, whose lock another
 * process holds. That process reads from the pipe into memory that it doesn't get.
 */

static _Noreturn void hold_lock(int fd)
{
	const int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register missing = {
		.range = { (uintptr_t)page, 4096 },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	CHECK(page != MAP_FAILED && faults >= 0);
	CHECK_EQ(ioctl(faults, UFFDIO_API, &api), 0);
	CHECK_EQ(ioctl(faults, UFFDIO_REGISTER, &missing), 0);
	_exit(read(fd, page, 1) != 1);
}

static bool sleeps_in_read(pid_t pid)
{
	char path[64], line[128] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	file = fopen(path, "re");
	CHECK(file);
	fgets(line, sizeof(line), file);
	fclose(file);
	return line[0] != 'r' && atoi(line) == SYS_read;
}

static void fill(int fd)
{
	static const char page[4096];

	CHECK_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (write(fd, page, sizeof(page)) > 0)
		;
	CHECK_EQ(fcntl(fd, F_SETFL, 0), 0);
}

static atomic_int handled;

static void note_signal(int signo)
{
	(void)signo;
	handled++;
}

/* So many that the module executes some of the calls, although a pool makes the first. */
enum { WRITERS = 16 };
static int full[2];

static void *write_byte(void *arg)
{
	CHECK(becomes_carried() == preloaded());
	return (void *)(intptr_t)(write(full[1], arg, 1) < 0 ? -errno : 0);
}

TEST_LIMIT(a_filter_comes_while_interrupted_calls_hang, 60)
{
	const struct sigaction action = { .sa_handler = note_signal };
	pthread_t writers[WRITERS];
	int pid;

	if (syscall(SYS_userfaultfd, O_CLOEXEC) < 0)
		SKIP("userfaultfd: %s", strerror(errno));
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	CHECK_EQ(pipe(full), 0);
	fill(full[1]);
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = start(write_byte, "x");
		await_quiet();
	}
	pid = fork();
	if (!pid)
		hold_lock(full[0]);
	while (!sleeps_in_read(pid))
		usleep(1000);
	FORBID(SYS_io_uring_enter, SYS_io_uring_register, SYS_epoll_pwait, SYS_ioctl,
	       SYS_lseek);
	for (int i = 0; i < WRITERS; i++)
		CHECK_EQ(pthread_kill(writers[i], SIGUSR1), 0);
	/* Until the lock is free, the signals don't end the writes. */
	CHECK_EQ(kill(pid, SIGKILL), 0);
	for (int i = 0; i < WRITERS; i++)
		CHECK_EQ((intptr_t)join(writers[i]), -EINTR);
	CHECK_EQ(handled, WRITERS);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}
