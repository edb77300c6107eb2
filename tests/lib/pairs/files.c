/* SPDX-License-Identifier: MIT */
/* Creates the files that calls wait for, and lets the calls continue. */
#define _GNU_SOURCE
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "quiet.h"

/* time without data after which no more is expected */
#define QUIET_MS	30

char pair_bytes[MANY_BYTES];

static void fresh_name(struct pair *pair, const char *what)
{
	/* In the working directory, which belongs to the test. */
	snprintf(pair->path, sizeof(pair->path), "pair-%d-%s", getpid(), what);
}

/* Create files. */

static void make_pipe(struct file *file, bool writes)
{
	int p[2];

	MUST(!pipe2(p, O_CLOEXEC));
	file->writes = writes;
	file->fd = p[writes];
	file->peer = p[!writes];
}

static void make_pair(struct file *file, int type, bool writes)
{
	int p[2];

	MUST(!socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, p));
	file->writes = writes;
	file->fd = p[0];
	file->peer = p[1];
}

static int tcp_listener(struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	MUST(!bind(fd, (struct sockaddr *)address, size));
	MUST(!listen(fd, 8));
	MUST(!getsockname(fd, (struct sockaddr *)address, &size));
	return fd;
}

static void make_tcp(struct file *file, bool writes)
{
	struct sockaddr_in address;
	int listener = tcp_listener(&address), small = 1 << 14;

	file->writes = writes;
	file->peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(file->peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	MUST(!connect(file->peer, (struct sockaddr *)&address,
		      sizeof(address)));
	file->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	setsockopt(file->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	close(listener);
}

static void unix_listener(struct pair *pair, int *fd, int backlog)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	fresh_name(pair, "s");
	strcpy(address.sun_path, pair->path);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(!bind(*fd, (struct sockaddr *)&address, sizeof(address)));
	MUST(!listen(*fd, backlog));
}

static int unix_connect(struct pair *pair, int flags)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	strcpy(address.sun_path, pair->path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
	    flags) {
		close(fd);
		return -1;
	}
	return fd;
}

static void make_event(struct file *file, bool writes)
{
	const uint64_t most = UINT64_MAX - 1;

	file->writes = writes;
	file->fd = eventfd(0, EFD_CLOEXEC);
	if (writes)
		MUST(write(file->fd, &most, sizeof(most)) == sizeof(most));
	file->peer = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
}

static void make_polled(struct file *file)
{
	struct epoll_event event = { .events = EPOLLIN };
	int p[2];

	MUST(!pipe2(p, O_CLOEXEC));
	file->fd = epoll_create1(EPOLL_CLOEXEC);
	MUST(!epoll_ctl(file->fd, EPOLL_CTL_ADD, p[0], &event));
	file->peer = p[1];
}

static void make_terminal(struct file *file, bool master)
{
	struct termios raw;
	int a, b;

	MUST(!openpty(&a, &b, NULL, NULL, NULL));
	MUST(!tcgetattr(b, &raw));
	cfmakeraw(&raw);
	MUST(!tcsetattr(b, TCSANOW, &raw));
	fcntl(a, F_SETFD, FD_CLOEXEC);
	fcntl(b, F_SETFD, FD_CLOEXEC);
	file->fd = master ? a : b;
	file->peer = master ? b : a;
}

static void make_locked(struct pair *pair, struct file *file)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	fresh_name(pair, "f");
	file->fd = open(pair->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	file->peer = open(pair->path, O_RDWR | O_CLOEXEC);
	unlink(pair->path);
	MUST(!flock(file->peer, LOCK_EX));
	MUST(!fcntl(file->peer, F_OFD_SETLK, &all));
}

static void make_content(struct file *file)
{
	file->fd = memfd_create("pair", MFD_CLOEXEC);
	MUST(write(file->fd, pair_bytes, MANY_BYTES) == MANY_BYTES);
	MUST(!lseek(file->fd, 0, SEEK_SET));
}

static void make_queue(struct pair *pair, struct file *file, bool writes)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = FEW };
	char name[32];

	(void)pair;
	snprintf(name, sizeof(name), "/flexsc-pair-%d", getpid());
	file->writes = writes;
	file->fd = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600, &attr);
	MUST(file->fd >= 0);
	file->peer = mq_open(name, O_RDWR | O_CLOEXEC);
	mq_unlink(name);
	if (writes)
		MUST(!mq_send(file->peer, pair_bytes, FEW, 0));
}

static void make_backlog(struct pair *pair, struct file *file)
{
	unix_listener(pair, &file->peer, 0);
	while (unix_connect(pair, SOCK_NONBLOCK) >= 0)
		;
	file->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static pid_t make_child(void)
{
	pid_t pid = fork();

	/* kill(-1) would signal all processes. */
	MUST(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	return pid;
}

static int make_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void make_changes(struct pair *pair, struct file *file)
{
	fresh_name(pair, "d");
	MUST(!mkdir(pair->path, 0700));
	file->fd = inotify_init1(IN_CLOEXEC);
	MUST(inotify_add_watch(file->fd, pair->path, IN_CREATE) >= 0);
}

void file_make(struct pair *pair, struct file *file, enum kind kind)
{
	*file = (struct file){ .kind = kind, .fd = -1, .peer = -1 };
	switch (kind) {
	case NOTHING:
		break;
	case PIPE_IN:
	case PIPE_OUT:
		make_pipe(file, kind == PIPE_OUT);
		break;
	case UNIX_IN:
	case UNIX_OUT:
		make_pair(file, SOCK_STREAM, kind == UNIX_OUT);
		break;
	case TCP_IN:
	case TCP_OUT:
		make_tcp(file, kind == TCP_OUT);
		break;
	case DATAGRAM_IN:
		make_pair(file, SOCK_DGRAM, false);
		break;
	case LISTENER:
		unix_listener(pair, &file->fd, 8);
		break;
	case EVENT_IN:
	case EVENT_OUT:
		make_event(file, kind == EVENT_OUT);
		break;
	case TIMER:
		file->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		file->peer = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
		break;
	case SIGNALS:
		file->fd = make_signals();
		break;
	case CHANGES:
		make_changes(pair, file);
		break;
	case TERMINAL:
	case MASTER:
		make_terminal(file, kind == MASTER);
		break;
	case POLLED:
		make_polled(file);
		break;
	case CONTENT:
		make_content(file);
		break;
	case LOCKED:
		make_locked(pair, file);
		break;
	case NAMED_IN:
		fresh_name(pair, "p");
		MUST(!mkfifo(pair->path, 0600));
		break;
	case BACKLOG:
		make_backlog(pair, file);
		break;
	case QUEUE_IN:
	case QUEUE_OUT:
		make_queue(pair, file, kind == QUEUE_OUT);
		break;
	case MESSAGES:
		pair->id = msgget(IPC_PRIVATE, 0600);
		break;
	case SEMAPHORE:
		pair->id = semget(IPC_PRIVATE, 1, 0600);
		break;
	case CHILD:
		pair->pid = make_child();
		break;
	case WORD:
		break;
	}
}

/* Let calls continue. */

/* Reads until no data has arrived for this time, or until the end. */
static void drain(struct file *file, unsigned int ms)
{
	static char buf[1 << 16];
	struct pollfd set = { .fd = file->peer, .events = POLLIN };

	while (!file->ended && poll(&set, 1, (int)(ms * pair_slower)) > 0) {
		ssize_t n = read(file->peer, buf, sizeof(buf));

		if (n <= 0) {
			file->ended = true;
			break;
		}
		if (file->sent + (size_t)n > MANY_BYTES ||
		    memcmp(buf, pair_bytes + file->sent, (size_t)n))
			file->wrong = true;
		file->sent += (size_t)n;
	}
}

/*
 * Reads until the call is over. If no data has arrived for some time while all
 * threads sleep, the call waits for something else.
 */
static void drain_all(struct pair *pair, struct file *file)
{
	size_t before;

	do {
		before = file->sent;
		quiet_await(AWAKE_MS);
		drain(file, QUIET_MS);
	} while (!pair->done && !file->ended && file->sent != before);
}

/* The program has closed the file by now, so this must not be its last descriptor. */
static void give(struct file *file, size_t n)
{
	ssize_t ret = write(file->peer, pair_bytes, n);

	(void)ret;
}

static void satisfy_by_id(struct pair *pair)
{
	struct msgbuf_few { long type; char text[FEW]; } message = { .type = 1 };
	struct sembuf up = { .sem_op = 1 };

	if (pair->file.kind == SEMAPHORE) {
		semop(pair->id, &up, 1);
		return;
	}
	memcpy(message.text, pair_bytes, FEW);
	msgsnd(pair->id, &message, FEW, IPC_NOWAIT);
}

static void satisfy_path(struct pair *pair, enum kind kind)
{
	char path[96];

	snprintf(path, sizeof(path), "%s%s", pair->path,
		 kind == CHANGES ? "/x" : "");
	if (kind == CHANGES)
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	else
		/* The writer stays open. Otherwise the reader's open may miss it. */
		pair->file.peer = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

void file_satisfy(struct pair *pair, struct file *file)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1 };
	struct flock all = { .l_type = F_UNLCK, .l_whence = SEEK_SET };
	uint64_t one = 1;
	char buf[FEW];

	switch (file->kind) {
	case PIPE_IN:
	case UNIX_IN:
	case TCP_IN:
	case DATAGRAM_IN:
	case TERMINAL:
	case MASTER:
		give(file, FEW);
		break;
	case POLLED:
		give(file, 1);
		break;
	case PIPE_OUT:
	case UNIX_OUT:
	case TCP_OUT:
		drain_all(pair, file);
		break;
	case LISTENER:
		file->peer = unix_connect(pair, SOCK_NONBLOCK);
		break;
	case EVENT_IN:
		MUST(write(file->peer, &one, sizeof(one)) == sizeof(one));
		break;
	case EVENT_OUT:
		MUST(read(file->peer, &one, sizeof(one)) == sizeof(one));
		break;
	case TIMER:
		timerfd_settime(file->peer, 0, &soon, NULL);
		break;
	case SIGNALS:
		kill(getpid(), SIGUSR2);
		break;
	case CHANGES:
	case NAMED_IN:
		satisfy_path(pair, file->kind);
		break;
	case LOCKED:
		flock(file->peer, LOCK_UN);
		fcntl(file->peer, F_OFD_SETLK, &all);
		break;
	case BACKLOG:
		for (int i = 0; i < 2; i++)
			close(accept(file->peer, NULL, NULL));
		break;
	case QUEUE_IN:
		mq_send(file->peer, pair_bytes, FEW, 0);
		break;
	case QUEUE_OUT:
		mq_receive(file->peer, buf, FEW, NULL);
		break;
	case MESSAGES:
	case SEMAPHORE:
		satisfy_by_id(pair);
		break;
	case CHILD:
		kill(pair->pid, SIGKILL);
		break;
	case WORD:
		__atomic_store_n(&pair->word, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &pair->word, FUTEX_WAKE, 1);
		syscall(SYS_futex, &pair->word, FUTEX_WAKE_PRIVATE, 1);
		break;
	case CONTENT:
	case NOTHING:
		break;
	}
}

bool file_has_end(const struct file *file)
{
	switch (file->kind) {
	case PIPE_IN:
	case PIPE_OUT:
	case UNIX_IN:
	case UNIX_OUT:
	case TCP_IN:
	case TCP_OUT:
	case MASTER:
	case TERMINAL:
		return file->peer >= 0;
	default:
		return false;
	}
}

void file_end(struct file *file)
{
	struct pollfd set = { .fd = file->peer };

	if (!file_has_end(file))
		return;
	if (file->writes)
		drain(file, 2000);
	else if (file->kind == TCP_IN)
		set.events = POLLIN;
	if (!file->ended && poll(&set, 1, (int)(2000 * pair_slower)) > 0)
		file->ended = true;
}
