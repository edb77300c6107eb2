/* SPDX-License-Identifier: MIT */
/*
 * Every kind of call that can wait is made to wait, and is cancelled; in a
 * second test it is ended by a deadline. One function per kind posts it.
 */
#include "tests/harness/harness.h"

#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>

static struct call call;
static char buf[65536];
static int p[2], pair[2], ipc_id = -1;

#define WAIT_IN(...)	POST(loop, &call, __VA_ARGS__)

static void read_pipe(void)
{
	WAIT_IN(SYS_read, p[0], buf, 1);
}

static void readv_pipe(void)
{
	static struct iovec { void *base; size_t size; } v = { buf, 8 };

	WAIT_IN(SYS_readv, p[0], &v, 1);
}

static void read_eventfd(void)
{
	WAIT_IN(SYS_read, eventfd(0, EFD_CLOEXEC), buf, 8);
}

static void read_timerfd(void)
{
	WAIT_IN(SYS_read, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), buf, 8);
}

static void read_signalfd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	WAIT_IN(SYS_read, signalfd(-1, &set, SFD_CLOEXEC), buf, 256);
}

static void write_pipe(void)
{
	CHECK_EQ(write(p[1], buf, sizeof(buf)), sizeof(buf));
	WAIT_IN(SYS_write, p[1], buf, 1);
}

static void splice_pipe(void)
{
	WAIT_IN(SYS_splice, p[0], NULL, pair[0], NULL, 1, 0);
}

static void tee_pipe(void)
{
	int q[2];

	CHECK_EQ(pipe2(q, O_CLOEXEC), 0);
	WAIT_IN(SYS_tee, p[0], q[1], 1, 0);
}

static void recvfrom_socket(void)
{
	WAIT_IN(SYS_recvfrom, pair[0], buf, 1, 0, NULL, NULL);
}

static void recvfrom_with_address(void)
{
	static struct sockaddr_storage from;
	static uint32_t size = sizeof(from);

	WAIT_IN(SYS_recvfrom, pair[0], buf, 1, 0, &from, &size);
}

static void recvmsg_socket(void)
{
	static struct { void *base; size_t size; } v = { buf, 8 };
	static struct msghdr msg;

	msg.msg_iov = (void *)&v;
	msg.msg_iovlen = 1;
	WAIT_IN(SYS_recvmsg, pair[0], &msg, 0);
}

static void fill_socket(void)
{
	while (send(pair[0], buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	while (send(pair[0], buf, 1, MSG_DONTWAIT) > 0)
		;
}

static void sendto_socket(void)
{
	fill_socket();
	WAIT_IN(SYS_sendto, pair[0], buf, 1, 0, NULL, 0);
}

static int listener(int domain)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)domain };
	unsigned int size = domain == AF_UNIX ? sizeof(sa_family_t) :
						sizeof(struct sockaddr_in);
	int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (domain == AF_INET)
		((struct sockaddr_in *)&any)->sin_addr.s_addr =
			htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(fd, (struct sockaddr *)&any, size), 0);
	CHECK_EQ(listen(fd, 0), 0);
	return fd;
}

static void accept4_tcp(void)
{
	WAIT_IN(SYS_accept4, listener(AF_INET), NULL, NULL, 0);
}

static void accept4_unix(void)
{
	WAIT_IN(SYS_accept4, listener(AF_UNIX), NULL, NULL, 0);
}

/* The listener's queue is full, so the last connection waits for a place. */
static void connect_unix(void)
{
	static struct sockaddr_un to;
	socklen_t size = sizeof(to);
	int fd = listener(AF_UNIX);

	CHECK_EQ(getsockname(fd, (struct sockaddr *)&to, &size), 0);
	for (;;) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(fd, (struct sockaddr *)&to, size))
			break;
	}
	CHECK_EQ(errno, EAGAIN);
	fcntl(fd, F_SETFL, 0);
	WAIT_IN(SYS_connect, fd, &to, size);
}

static void ppoll_pipe(void)
{
	static struct pollfd fds;

	fds = (struct pollfd){ .fd = p[0], .events = POLLIN };
	WAIT_IN(SYS_ppoll, &fds, 1, NULL, NULL, 8);
}

static void pselect6_pipe(void)
{
	static fd_set set;

	FD_SET(p[0], &set);
	WAIT_IN(SYS_pselect6, p[0] + 1, &set, NULL, NULL, NULL, NULL);
}

static void epoll_pwait_nothing(void)
{
	WAIT_IN(SYS_epoll_pwait, epoll_create1(EPOLL_CLOEXEC), buf, 8, -1, NULL,
		8);
}

static void nanosleep_long(void)
{
	static const struct timespec hour = { 3600, 0 };

	WAIT_IN(SYS_nanosleep, &hour, NULL);
}

static void clock_nanosleep_long(void)
{
	static const struct timespec hour = { 3600, 0 };

	WAIT_IN(SYS_clock_nanosleep, CLOCK_REALTIME, 0, &hour, buf);
}

static void futex_wait(void)
{
	static uint32_t word;

	WAIT_IN(SYS_futex, &word, FUTEX_WAIT, 0, NULL);
}

static void futex_wait_private(void)
{
	static uint32_t word;

	WAIT_IN(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL);
}

static int open_locked(void)
{
	int fd = open("locked", O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	return fd;
}

static void flock_locked(void)
{
	CHECK_EQ(flock(open_locked(), LOCK_EX), 0);
	WAIT_IN(SYS_flock, open_locked(), LOCK_EX);
}

static void fcntl_locked(void)
{
	static struct flock lock = { .l_type = F_WRLCK };

	CHECK_EQ(fcntl(open_locked(), F_OFD_SETLK, &lock), 0);
	WAIT_IN(SYS_fcntl, open_locked(), F_SETLKW, &lock);
}

static void open_fifo(void)
{
	CHECK_EQ(PLAIN(SYS_mknodat, AT_FDCWD, "fifo", 0010600, 0), 0);
	WAIT_IN(SYS_openat, AT_FDCWD, "fifo", O_RDONLY | O_CLOEXEC, 0);
}

static void lingering_child(void)
{
	if (test_fork() == 0)
		for (;;)
			pause();
}

static void wait4_child(void)
{
	lingering_child();
	WAIT_IN(SYS_wait4, -1, NULL, 0, NULL);
}

static void waitid_child(void)
{
	lingering_child();
	WAIT_IN(SYS_waitid, P_ALL, 0, buf, WEXITED, NULL);
}

static void msgrcv_empty(void)
{
	ipc_id = msgget(IPC_PRIVATE, 0600);
	CHECK(ipc_id >= 0);
	WAIT_IN(SYS_msgrcv, ipc_id, buf, 8, 0, 0);
}

static void remove_queue(void)
{
	msgctl(ipc_id, IPC_RMID, NULL);
}

static void semop_zero(void)
{
	static struct sembuf down = { .sem_op = -1 };

	ipc_id = semget(IPC_PRIVATE, 1, 0600);
	CHECK(ipc_id >= 0);
	WAIT_IN(SYS_semop, ipc_id, &down, 1);
}

static void remove_semaphore(void)
{
	semctl(ipc_id, 0, IPC_RMID);
}

static void mq_timedreceive_empty(void)
{
	mqd_t queue = mq_open("/flexsc-test", O_CREAT | O_RDONLY, 0600, NULL);

	CHECK(queue >= 0);
	mq_unlink("/flexsc-test");
	WAIT_IN(SYS_mq_timedreceive, queue, buf, sizeof(buf), NULL, NULL);
}

static const struct kind {
	const char *name;
	void (*post)(void);
	void (*clean)(void);
} kinds[] = {
#define KIND(name)	{ #name, name, NULL }
	KIND(read_pipe), KIND(readv_pipe), KIND(read_eventfd),
	KIND(read_timerfd), KIND(read_signalfd), KIND(write_pipe),
	KIND(splice_pipe), KIND(tee_pipe), KIND(recvfrom_socket),
	KIND(recvfrom_with_address), KIND(recvmsg_socket),
	KIND(sendto_socket), KIND(accept4_tcp), KIND(accept4_unix),
	KIND(connect_unix), KIND(ppoll_pipe), KIND(pselect6_pipe),
	KIND(epoll_pwait_nothing), KIND(nanosleep_long),
	KIND(clock_nanosleep_long), KIND(futex_wait),
	KIND(futex_wait_private), KIND(flock_locked), KIND(fcntl_locked),
	KIND(open_fifo), KIND(wait4_child), KIND(waitid_child),
	KIND(mq_timedreceive_empty),
	{ "msgrcv_empty", msgrcv_empty, remove_queue },
	{ "semop_zero", semop_zero, remove_semaphore },
};

#define KINDS	(sizeof(kinds) / sizeof(*kinds))

static void end_by_cancel(void)
{
	CHECK_EQ(flexsc_loop_cancel(loop, &call.cb), 0);
	run_until(loop, &call.runs, 1, 5000);
	CHECK_EQ(call.runs, 1);
	CHECK(is_cancelled(call.cb.ret));
}

static void end_by_deadline(void)
{
	CHECK_EQ(flexsc_loop_deadline(loop, &call.cb, 10 * MS), 0);
	run_until(loop, &call.runs, 1, 5000);
	CHECK_EQ(call.runs, 1);
	CHECK_EQ(call.cb.ret, -ETIME);
}

/* One kind, in a process of its own. */
static void try_kind(const struct kind *kind, void (*end)(void))
{
	loop = test_loop();
	call = (struct call)CALL_INIT;
	CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	kind->post();
	run_for(loop, 20);
	if (kind->post == open_fifo &&
	    test_known_difference("uring", "opening a FIFO doesn't wait")) {
		CHECK_EQ(call.runs, 1);
		CHECK(call.cb.ret >= 0);
		test_leave();
	}
	if (call.runs)
		test_fail(__FILE__, __LINE__, "it returned %lld",
			  (long long)call.cb.ret);
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
	end();
	CHECK_EQ(DO(loop, SYS_getppid), getppid());
	if (kind->clean)
		kind->clean();
	test_end_loop();
}

static void try_kinds(void (*end)(void))
{
	unsigned int failed = 0;
	int status;

	NEEDS_WAITING_ENGINE();
	enter_scratch();
	for (size_t i = 0; i < KINDS; i++) {
		int pid = test_fork();

		if (pid == 0) {
			try_kind(&kinds[i], end);
			test_leave();
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		if (status)
			test_note("%s: wait status %#x", kinds[i].name,
				  (unsigned int)status);
		failed += status != 0;
		unlink("fifo");
		unlink("locked");
	}
	leave_scratch();
	CHECK_EQ(failed, 0);
}

TEST_LIMIT(every_kind_of_waiting_call_can_be_cancelled, 40)
{
	try_kinds(end_by_cancel);
}

TEST_LIMIT(every_kind_of_waiting_call_can_have_a_deadline, 40)
{
	try_kinds(end_by_deadline);
}
