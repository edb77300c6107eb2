/* SPDX-License-Identifier: MIT */
/*
 * A program with threads installs a seccomp filter that forbids the calls that the
 * program doesn't make itself. Most of its threads are waiting at that time. They
 * continue and lose nothing.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "threads.h"

/* The calls of this file, of libc on its behalf, and of the harness. */
static const int permitted[] = {
	SYS_read, SYS_write, SYS_close, SYS_recvfrom, SYS_sendto, SYS_accept,
#if defined(__x86_64__)
	SYS_poll, SYS_epoll_wait, SYS_readlink,
#else
	SYS_ppoll, SYS_epoll_pwait, SYS_readlinkat,
#endif
	SYS_accept4, SYS_clock_nanosleep,
	SYS_clock_gettime, SYS_futex, SYS_mmap, SYS_munmap, SYS_mprotect,
	SYS_madvise, SYS_brk, SYS_clone, SYS_clone3, SYS_set_robust_list,
	SYS_rseq, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_gettid, SYS_getpid,
	SYS_exit, SYS_exit_group, SYS_sched_yield, SYS_restart_syscall,
	SYS_openat, SYS_getdents64, SYS_newfstatat, SYS_nanosleep, SYS_lseek,
	SYS_fstat, SYS_kill, SYS_wait4, SYS_socket, SYS_connect, SYS_seccomp,
};

static const int forbidden[] = {
	SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
};

struct sandbox {
	bool lists_permitted;
	uint32_t action;
};

static long install(const struct sandbox *sandbox, unsigned int flags)
{
	const int *list = sandbox->lists_permitted ? permitted : forbidden;
	const unsigned int n = sandbox->lists_permitted ?
				       sizeof(permitted) / sizeof(*permitted) :
				       sizeof(forbidden) / sizeof(*forbidden);
	const uint32_t listed = sandbox->lists_permitted ? SECCOMP_RET_ALLOW :
							   sandbox->action;
	const uint32_t other = sandbox->lists_permitted ? sandbox->action :
							  SECCOMP_RET_ALLOW;

	return filter_install(list, n, listed, other, flags);
}

static void enter(const struct sandbox *sandbox, unsigned int flags)
{
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(install(sandbox, flags), 0);
}

/* Each thread waits in its own way, and answers what it receives. */

static atomic_bool over;
static atomic_int slept, signalled;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn;

static void *echo(void *arg)
{
	const int fd = *(int *)arg;
	char bytes[64];
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		CHECK_EQ(send(fd, bytes, (size_t)n, 0), n);
	CHECK_EQ(n, 0);
	return arg;
}

static void *echo_whole(void *arg)
{
	const int fd = *(int *)arg;
	char bytes[8];
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), MSG_WAITALL)) > 0)
		CHECK_EQ(write(fd, bytes, (size_t)n), n);
	CHECK_EQ(n, 0);
	return arg;
}

static void *echo_polled(void *arg)
{
	struct pollfd fd = { *(int *)arg, POLLIN, 0 };
	char bytes[64];
	ssize_t n;

	for (;;) {
		CHECK_EQ(poll(&fd, 1, -1), 1);
		n = read(fd.fd, bytes, sizeof(bytes));
		CHECK(n >= 0);
		if (!n)
			return arg;
		CHECK_EQ(write(fd.fd, bytes, (size_t)n), n);
	}
}

static void *echo_set(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN };
	const int fd = *(int *)arg, set = epoll_create1(EPOLL_CLOEXEC);
	char bytes[64];
	ssize_t n;

	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	for (;;) {
		CHECK_EQ(epoll_wait(set, &event, 1, -1), 1);
		n = read(fd, bytes, sizeof(bytes));
		CHECK(n >= 0);
		if (!n)
			break;
		CHECK_EQ(write(fd, bytes, (size_t)n), n);
	}
	close(set);
	return arg;
}

static void *sleep_often(void *arg)
{
	while (!over) {
		const uint64_t begin = now_ns();

		usleep(30000);
		CHECK(now_ns() - begin >= 30 * MS);
		slept++;
	}
	return arg;
}

static void *wait_in_turn(void *arg)
{
	const int number = *(int *)arg;
	struct timespec limit = in_ms(CLOCK_REALTIME, 3600000);

	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	while (turn != number)
		CHECK_EQ(number ? pthread_cond_timedwait(&cond, &mutex, &limit) :
				  pthread_cond_wait(&cond, &mutex),
			 0);
	signalled++;
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	return arg;
}

static void *compute(void *arg)
{
	while (!over)
		;
	return arg;
}

static void *(*const echoes[])(void *) = { echo, echo_whole, echo_polled,
					   echo_set };

#define ECHOES	16
#define WAITERS	2

static pthread_t echoing[ECHOES], sleeping, waiting[WAITERS], computing;
static int ends[ECHOES][2], numbers[WAITERS] = { 0, 1 };

static int listener, sent;
static pthread_t accepting;

static void *accept_each(void *arg)
{
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		char c;

		CHECK_EQ(recv(fd, &c, 1, 0), 1);
		close(fd);
		if (c == 'e')
			return arg;
	}
	CHECK(false);
	return arg;
}

static socklen_t address_of(struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
	       (socklen_t)snprintf(address->sun_path + 1, 100,
				   "flexsc-sandbox-%d", getpid());
}

static void connect_and_send(char c)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	socklen_t size = address_of(&address);

	CHECK_EQ(connect(fd, (struct sockaddr *)&address, size), 0);
	CHECK_EQ(send(fd, &c, 1, 0), 1);
	close(fd);
}

static void listen_here(void)
{
	struct sockaddr_un address;
	socklen_t size = address_of(&address);

	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&address, size), 0);
	CHECK_EQ(listen(listener, 8), 0);
}

static void begin(void)
{
	for (int i = 0; i < ECHOES; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    ends[i]),
			 0);
		echoing[i] = start(echoes[i % 4], &ends[i][1]);
	}
	turn = -1;
	for (int i = 0; i < WAITERS; i++)
		waiting[i] = start(wait_in_turn, &numbers[i]);
	listen_here();
	accepting = start(accept_each, NULL);
	sleeping = start(sleep_often, NULL);
	computing = start(compute, NULL);
}

/* Sends eight bytes to each thread, and receives the same back, in the same order. */
static void exchange(void)
{
	for (int i = 0; i < ECHOES; i++) {
		uint64_t number = (uint64_t)sent++, back = 0;

		CHECK_EQ(send(ends[i][0], &number, sizeof(number), 0),
			 sizeof(number));
		CHECK_EQ(recv(ends[i][0], &back, sizeof(back), MSG_WAITALL),
			 sizeof(back));
		CHECK_EQ(back, number);
	}
	connect_and_send('c');
}

/* Send parts of messages, which the threads have to receive whole. */
static void send_part(void)
{
	for (int i = 1; i < ECHOES; i += 4)
		CHECK_EQ(send(ends[i][0], "abc", 3, 0), 3);
	settle();
}

static void send_rest(void)
{
	for (int i = 1; i < ECHOES; i += 4) {
		char back[8];

		CHECK_EQ(send(ends[i][0], "defgh", 5, 0), 5);
		CHECK_EQ(recv(ends[i][0], back, 8, MSG_WAITALL), 8);
		CHECK(!memcmp(back, "abcdefgh", 8));
	}
}

static void end(void)
{
	int before = slept;

	while (slept == before)
		sched_yield();
	for (int i = 0; i < WAITERS; i++) {
		CHECK_EQ(pthread_mutex_lock(&mutex), 0);
		turn = i;
		CHECK_EQ(pthread_cond_broadcast(&cond), 0);
		CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
		join(waiting[i]);
	}
	CHECK_EQ(signalled, WAITERS);
	connect_and_send('e');
	join(accepting);
	over = true;
	join(sleeping);
	join(computing);
	for (int i = 0; i < ECHOES; i++) {
		close(ends[i][0]);
		join(echoing[i]);
	}
}

/* A continuous stream of bytes to a thread and back. */
struct stream {
	int fd;
	atomic_bool over;
	atomic_ulong bytes;
};

static void *stream(void *arg)
{
	struct stream *s = arg;

	for (s->bytes = 0; !s->over; s->bytes++) {
		char c = (char)s->bytes, back = 0;

		CHECK_EQ(send(s->fd, &c, 1, 0), 1);
		CHECK_EQ(recv(s->fd, &back, 1, 0), 1);
		CHECK_EQ(back, c);
	}
	return arg;
}

static const struct sandbox *chosen;

static void *enter_all(void *arg)
{
	enter(chosen, SECCOMP_FILTER_FLAG_TSYNC);
	return arg;
}

static void *sleep_thrice(void *arg)
{
	for (int i = 0; i < 3; i++)
		usleep(100);
	return arg;
}

/* The filter holds for this thread and the threads that it creates later. */
static void *enter_alone(void *arg)
{
	enter(chosen, 0);
	for (int i = 0; i < 3; i++)
		connect_and_send('c');
	join(start(sleep_thrice, NULL));
	return arg;
}

/* The filter first holds for this thread alone, then for all threads. */
static void *enter_alone_then_all(void *arg)
{
	enter(chosen, 0);
	connect_and_send('c');
	CHECK_EQ(install(chosen, SECCOMP_FILTER_FLAG_TSYNC), 0);
	return arg;
}

static void in_sandbox(const struct sandbox *sandbox, void *(*enters)(void *))
{
	struct stream s = { 0 };
	pthread_t streaming, answering;
	int p[2];

	chosen = sandbox;
	begin();
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	s.fd = p[0];
	answering = start(echo, &p[1]);
	streaming = start(stream, &s);
	exchange();
	send_part();
	while (s.bytes < 10)
		sched_yield();
	join(start(enters, NULL));
	send_rest();
	for (int i = 0; i < 3; i++)
		exchange();
	join(start(sleep_thrice, NULL));
	s.over = true;
	join(streaming);
	close(p[0]);
	join(answering);
	end();
}

static void enter_before_others(const struct sandbox *sandbox)
{
	join(start(sleep_thrice, NULL));
	enter(sandbox, 0);
	for (int i = 0; i < 3; i++)
		join(start(sleep_thrice, NULL));
}

#define SANDBOX(id, lists_permitted, action)				\
	static const struct sandbox sandbox_##id = { lists_permitted, action };\
	TEST(all_threads_enter_##id)					\
	{								\
		in_sandbox(&sandbox_##id, enter_all);			\
	}								\
	TEST(one_thread_enters_##id)					\
	{								\
		in_sandbox(&sandbox_##id, enter_alone);			\
	}								\
	TEST(one_thread_enters_and_then_all_##id)			\
	{								\
		in_sandbox(&sandbox_##id, enter_alone_then_all);	\
	}								\
	TEST(the_only_thread_enters_##id)				\
	{								\
		enter_before_others(&sandbox_##id);			\
	}

SANDBOX(where_io_uring_fails, false, SECCOMP_RET_ERRNO | EPERM)
SANDBOX(where_io_uring_kills, false, SECCOMP_RET_KILL_PROCESS)
SANDBOX(where_all_else_fails, true, SECCOMP_RET_ERRNO | EPERM)
SANDBOX(where_all_else_kills, true, SECCOMP_RET_KILL_PROCESS)

/*
 * In milliseconds: the limit of the first wait, the time when the filter is
 * installed, and the limit of a second wait that begins then. If the first wait
 * restarted with its whole limit, it would end after the second one.
 */
#define LIMIT	1000
#define ENTERED	800
#define SHORTER	500

static atomic_bool has_begun, has_ended;

static void *poll_in_vain(void *arg)
{
	struct pollfd fd = { *(int *)arg, POLLIN, 0 };
	const uint64_t begin = now_ns();

	has_begun = true;
	CHECK_EQ(poll(&fd, 1, LIMIT), 0);
	CHECK(now_ns() - begin >= LIMIT * MS);
	has_ended = true;
	return arg;
}

static void *end_later(void *arg)
{
	struct pollfd fd = { *(int *)arg, POLLIN, 0 };

	CHECK_EQ(poll(&fd, 1, SHORTER), 0);
	/* The first waiter may lack a processor. */
	await_quiet();
	CHECK(has_ended);
	return arg;
}

TEST(a_time_limit_does_not_restart)
{
	pthread_t thread;
	int p[2];

	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	thread = start(poll_in_vain, &p[0]);
	while (!has_begun)
		usleep(1000);
	usleep(ENTERED * 1000);
	chosen = &sandbox_where_all_else_kills;
	join(start(enter_all, NULL));
	join(start(end_later, &p[0]));
	join(thread);
}

/* The child creates its threads under the filter. */
TEST(a_child_begins_in_a_sandbox)
{
	pthread_t thread;
	int p[2], status;
	pid_t pid;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	thread = start(echo, &p[1]);
	chosen = &sandbox_where_all_else_kills;
	join(start(enter_all, NULL));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		join(start(sleep_thrice, NULL));
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	close(p[0]);
	join(thread);
}

/*
 * Several threads install filters at the same time. None waits for another one that
 * installs its filter.
 */

static pthread_barrier_t at_once;

static void *enter_all_at_once(void *arg)
{
	pthread_barrier_wait(&at_once);
	CHECK_EQ(install(&sandbox_where_all_else_kills,
			 SECCOMP_FILTER_FLAG_TSYNC), 0);
	return arg;
}

TEST(threads_enter_at_a_time)
{
	enum { ENTERING = 3 };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	pthread_barrier_init(&at_once, NULL, ENTERING);
	run_all(ENTERING, enter_all_at_once, NULL);
}

/* The kernel refuses a filter for all threads. No thread moves. */

static atomic_bool is_alone, may_end;

static void *stay_alone(void *arg)
{
	enter(&sandbox_where_io_uring_fails, 0);
	is_alone = true;
	while (!may_end)
		usleep(1000);
	return arg;
}

static void *be_carried(void *arg)
{
	CHECK_EQ(becomes_carried(), preloaded());
	return arg;
}

static void check_carriers(void)
{
	join(start(be_carried, NULL));
}

TEST(a_filter_that_is_refused_changes_nothing)
{
	const struct sandbox *sandbox = &sandbox_where_all_else_kills;
	pthread_t alone = start(stay_alone, NULL);

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	while (!is_alone)
		usleep(1000);
	check_carriers();
	/* libseccomp makes this call to detect which flags are supported. */
	CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL), -1);
	CHECK_EQ(errno, EFAULT);
	check_carriers();
	CHECK_EQ(install(sandbox, SECCOMP_FILTER_FLAG_TSYNC | 1U << 30), -1);
	CHECK_EQ(errno, EINVAL);
	check_carriers();
	CHECK(install(sandbox, SECCOMP_FILTER_FLAG_TSYNC) > 0);
	check_carriers();
	may_end = true;
	join(alone);
}

/* The last remaining thread has a filter, and creates a process. */

static void fork_at_last(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_nanosleep, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };
	pthread_t thread;
	int p[2], pid;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	thread = start(echo, &p[1]);
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), 0);
	close(p[0]);
	join(thread);
	pid = test_fork();
	if (!pid)
		test_leave();
	test_reap(pid);
}

TEST(the_last_thread_forks_in_a_sandbox)
{
	int pid = test_fork();

	if (!pid) {
		fork_at_last();
		test_leave();
	}
	test_reap(pid);
}

/*
 * After a thread has created a process, the runtime intercepts the thread's calls
 * again.
 */

TEST_BY_THREAD(a_thread_forks_before_it_installs_a_filter)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };
	int pid, status;

	/* The filter anchors the thread, so it stays on its host from here on. */
	enter(&sandbox_where_io_uring_fails, 0);
	pid = fork();
	if (!pid)
		_exit(0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), 0);
	for (int i = 0; i < 3; i++)
		usleep(100);
}

/*
 * The namespace ends with its first process. This has to be the program's child, not
 * a process of the runtime.
 */
TEST(a_filter_comes_between_a_namespace_and_its_first_process)
{
	int pid;

	join(start(sleep_thrice, NULL));
	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		SKIP("unshare(CLONE_NEWPID): %s", strerror(errno));
	enter(&sandbox_where_io_uring_fails, 0);
	pid = test_fork();
	if (!pid) {
		CHECK_EQ(getpid(), 1);
		join(start(sleep_thrice, NULL));
		test_leave();
	}
	test_reap(pid);
}

/* A filter that forbids sends, but not writes. */

static void *exchange_by_writing(void *arg)
{
	pthread_t echoes;
	char bytes[8];
	int fds[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	echoes = start(echo_whole, &fds[1]);
	for (int i = 0; i < 20; i++) {
		usleep(100);
		CHECK_EQ(write(fds[0], "12345678", 8), 8);
		CHECK_EQ(recv(fds[0], bytes, 8, MSG_WAITALL), 8);
	}
	close(fds[0]);
	join(echoes);
	return arg;
}

static void forbid_sends(unsigned int flags)
{
	static const int sends[] = { SYS_sendto };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(filter_install(sends, 1, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW,
				flags), 0);
}

TEST(threads_write_where_sends_are_forbidden)
{
	forbid_sends(0);
	join(start(exchange_by_writing, NULL));
}

TEST(threads_write_where_sends_become_forbidden)
{
	join(start(exchange_by_writing, NULL));
	forbid_sends(SECCOMP_FILTER_FLAG_TSYNC);
	join(start(exchange_by_writing, NULL));
}
