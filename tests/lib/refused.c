/* SPDX-License-Identifier: MIT */
/*
 * A seccomp filter that is installed after the loop's creation refuses one call. The
 * library may make this call on its own behalf: to decide how a posted call waits, to
 * sleep, or to wake a thread. All posted calls with other numbers complete as usual.
 */
#include "tests/harness/harness.h"

static const struct refused {
	int nr;
	const char *name;
} refused[] = {
#define REFUSED(name)	{ SYS_##name, #name }
	REFUSED(lseek), REFUSED(fstat), REFUSED(newfstatat), REFUSED(statx),
	REFUSED(ioctl), REFUSED(fcntl), REFUSED(getsockopt), REFUSED(ppoll),
	REFUSED(epoll_ctl), REFUSED(epoll_pwait), REFUSED(epoll_create1),
	REFUSED(eventfd2), REFUSED(readlinkat), REFUSED(mq_getsetattr),
	REFUSED(prlimit64), REFUSED(openat), REFUSED(read), REFUSED(write),
	REFUSED(close), REFUSED(sendto), REFUSED(recvfrom), REFUSED(sendfile),
	REFUSED(getpid), REFUSED(gettid), REFUSED(tgkill), REFUSED(nanosleep),
	REFUSED(clock_nanosleep), REFUSED(madvise), REFUSED(sched_setaffinity),
	REFUSED(sched_getaffinity), REFUSED(rt_sigprocmask), REFUSED(rt_sigaction),
	REFUSED(io_uring_enter), REFUSED(io_uring_register),
#ifdef SYS_poll
	REFUSED(poll), REFUSED(epoll_wait),
#endif
};

#define KINDS	(sizeof(refused) / sizeof(refused[0]))
#define POSTS	16U
#define ANY	INT64_MAX

/* The calls of one child, and the number that its filter refuses. */
static struct call calls[POSTS];
static int numbers[POSTS];
static int64_t expected[POSTS];		/* ANY: any but an error */
static unsigned int posts;
static int forbidden;

/* Post a call, unless the filter would refuse it. */
#define EXPECT(loop, result, nr, ...) do {				\
	if ((nr) != forbidden) {					\
		calls[posts] = (struct call)CALL_INIT;			\
		numbers[posts] = (nr);					\
		expected[posts] = (result);				\
		POST(loop, &calls[posts++], nr, __VA_ARGS__);		\
	}								\
} while (0)

struct files {
	int pipe[2], pair[2], file, listener, client;
	struct sockaddr_un address;
	socklen_t length;
	struct timespec moment, pause;
	struct pollfd poll;
	struct iovec vector;
	char bytes[4][8];
};

static void make_files(struct files *f)
{
	*f = (struct files){ .moment = { 0, 1000000 }, .pause = { 0, 20000000 },
			     .length = sizeof(f->address),
			     .address = { .sun_family = AF_UNIX } };
	CHECK_EQ(pipe(f->pipe), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, f->pair), 0);
	f->file = memfd_create("file", MFD_CLOEXEC);
	CHECK_EQ(pwrite(f->file, "12345678", 8, 0), 8);
	f->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	f->client = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_EQ(bind(f->listener, (struct sockaddr *)&f->address, sizeof(sa_family_t)), 0);
	CHECK_EQ(getsockname(f->listener, (struct sockaddr *)&f->address, &f->length), 0);
	CHECK_EQ(listen(f->listener, 5), 0);
	f->poll = (struct pollfd){ f->pipe[1], POLLOUT, 0 };
	f->vector = (struct iovec){ f->bytes[3], 8 };
}

static void post_waits(struct flexsc_loop *loop, struct files *f)
{
	if (forbidden != SYS_write)
		EXPECT(loop, 3, SYS_read, f->pipe[0], f->bytes[0], 8);
	if (forbidden != SYS_sendto)
		EXPECT(loop, 2, SYS_recvfrom, f->pair[0], f->bytes[1], 8, 0);
	EXPECT(loop, ANY, SYS_accept4, f->listener, NULL, NULL, 0);
}

static void post_others(struct flexsc_loop *loop, struct files *f)
{
	EXPECT(loop, 8, SYS_pread64, f->file, f->bytes[2], 8, 0);
	EXPECT(loop, 0, SYS_nanosleep, &f->moment, NULL);
	EXPECT(loop, 1, SYS_ppoll, &f->poll, 1, NULL, NULL, 8);
	EXPECT(loop, 4, SYS_lseek, f->file, 4, SEEK_SET);
	EXPECT(loop, FD_CLOEXEC, SYS_fcntl, f->file, F_GETFD);
	EXPECT(loop, -EBADF, SYS_close, -1);
	EXPECT(loop, 0, SYS_pselect6, 0, NULL, NULL, NULL, &f->pause, NULL);
	EXPECT(loop, 0, SYS_connect, f->client, &f->address, f->length);
	EXPECT(loop, 3, SYS_write, f->pipe[1], "abc", 3);
	EXPECT(loop, 2, SYS_sendto, f->pair[1], "de", 2, 0);
	EXPECT(loop, 8, SYS_pwritev, f->file, &f->vector, 1, 0);
}

static void try_refused(const struct refused *what, int error)
{
	struct files files;
	struct flexsc_loop *loop = NEW_LOOP();

	make_files(&files);
	if (DO(loop, SYS_getppid) != getppid())
		test_fail(__FILE__, __LINE__, "no loop");
	forbidden = what->nr;
	forbid(&what->nr, 1, error);
	/* The engine "sync" can't wait for a later call. */
	if (!strcmp(flexsc_loop_engine(loop), "sync")) {
		post_others(loop, &files);
		post_waits(loop, &files);
	} else {
		post_waits(loop, &files);
		post_others(loop, &files);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	for (unsigned int i = 0; i < posts; i++)
		if (calls[i].runs != 1 ||
		    (expected[i] == ANY ? calls[i].cb.ret < 0 :
					  calls[i].cb.ret != expected[i]))
			test_fail(__FILE__, __LINE__, "%s refused: call %d: %ld, not %ld",
				  what->name, numbers[i], (long)calls[i].cb.ret,
				  (long)expected[i]);
	CHECK_EQ(flexsc_loop_destroy(loop), 0);
}

static void refuse_each(int error)
{
	for (unsigned int i = 0; i < KINDS; i++) {
		/* A sanitizer makes these calls in each new thread. */
		if (SANITIZED && (refused[i].nr == SYS_sched_getaffinity ||
				  refused[i].nr == SYS_rt_sigprocmask))
			continue;
		IN_CHILD
			try_refused(&refused[i], error);
	}
}

TEST_LIMIT(each_refused_call_leaves_the_others_with_EPERM, 100)
{
	refuse_each(EPERM);
}

TEST_LIMIT(each_refused_call_leaves_the_others_with_ENOSYS, 100)
{
	refuse_each(ENOSYS);
}
