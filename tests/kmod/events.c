// SPDX-License-Identifier: MIT
/*
 * SEND in the kernel module, used by its own interface: event control blocks. Runs
 * in a guest, as root.
 */
#include "ecb.h"

#include <linux/sockios.h>
#include <linux/vm_sockets.h>
#include <sys/signalfd.h>

#include "chance.h"

#define BIT(n)	(1U << (n))

static struct flexsc_event_slot event;

static bool next(void)
{
	return ecb_next(&ecb, ALL_GROUPS, &event);
}

static atomic_int notified;
static atomic_bool over;

static void on_urgent(int signal)
{
	atomic_fetch_add(&notified, 1);
}

/* Computes until there is an event. */
static void spin(void)
{
	while (!next())
		;
}

/*
 * The event is there, without a wait or call of this thread. The kernel may leave
 * the kind of event open (FLEXSC_EVENT_CHECK).
 */
static void expect(uint32_t index, uint32_t bits)
{
	CHECK(next());
	CHECK_EQ(event.fd, event.data);
	CHECK_EQ(ecb.slots[index].fd, event.fd);
	if (!(event.state & FLEXSC_EVENT_CHECK))
		CHECK_EQ(event.state & bits, bits);
}

/* Creation. */

static void refuse(struct flexsc_ecb_create args, int error)
{
	int device = open("/dev/flexsc", O_RDWR | O_CLOEXEC);

	CHECK_EQ(ioctl(device, FLEXSC_IOC_ECB, &args), -1);
	CHECK_EQ(errno, error);
	close(device);
}

#define CREATE(...)							\
	((struct flexsc_ecb_create){ .size = sizeof(struct flexsc_ecb_create), \
				     .abi = FLEXSC_ECB_ABI_VERSION, __VA_ARGS__ })

TEST(bad_blocks_are_refused)
{
	struct flexsc_ecb_create small = CREATE(.events = 8), other = small;

	small.size = 8;
	refuse(small, EINVAL);
	other.abi = 99;
	refuse(other, EPROTONOSUPPORT);
	refuse(CREATE(.events = 0), EINVAL);
	refuse(CREATE(.events = FLEXSC_ECB_EVENTS_MAX + 1), EINVAL);
	refuse(CREATE(.events = 8, .flags = 0x80), EINVAL);
	refuse(CREATE(.events = 8, .reserved[4] = 1), EINVAL);
}

TEST(memory_is_limited)
{
	const struct rlimit none = { 65536, 65536 };

	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	/* Root may lock any amount of memory. */
	CHECK(ecb_try_open(&ecb, 4096, 0) >= 0);
	close(ecb.fd);
	CHECK_EQ(chmod("/dev/flexsc", 0666), 0);
	CHECK_EQ(syscall(SYS_setresuid, 1000, 1000, 1000), 0);
	CHECK_EQ(ecb_try_open(&ecb, 4096, 0), -ENOMEM);
	CHECK(ecb_try_open(&ecb, 64, 0) >= 0);
}

ECB_TEST(bad_watches_are_refused, 2, 0)
{
	struct flexsc_ecb_watch good = { .fd = 0, .want = POLLIN }, bad;
	int file = open("/tmp/plain", O_RDWR | O_CREAT, 0600);

	good.fd = fds[0];
	for (int i = 0; i < 9; i++) {
		bad = good;
		bad.flags = i == 0 ? 0x80 : i == 8 ? FLEXSC_WATCH_CHECKED : 0;
		bad.type = i == 1 ? FLEXSC_EVT_TYPES : 0;
		bad.group = i == 2 ? FLEXSC_ECB_GROUPS : 0;
		bad.want = i == 3 ? 0x10000 : POLLIN;
		bad.reserved3[1] = i == 4;
		bad.reserved1 = i == 5;
		bad.accept_want = i == 6;
		if (i == 7)
			bad.fd = -1;
		CHECK(ioctl(ecb.fd, FLEXSC_ECB_WATCH, &bad) == -1 && errno == EINVAL);
	}
	CHECK(ioctl(ecb.fd, FLEXSC_ECB_WATCH, NULL) == -1 && errno == EFAULT);
	CHECK_EQ(ecb_try_watch(&ecb, 999, POLLIN, 0), -EBADF);
	CHECK_EQ(ecb_try_watch(&ecb, file, POLLIN, 0), -EPERM);
	CHECK_EQ(ecb_try_watch(&ecb, ecb.fd, POLLIN, 0), -ELOOP);
	CHECK_EQ(ecb_try_watch(&ecb, epoll_create1(0), POLLIN, 0), -ELOOP);
	CHECK_EQ(ecb_try_watch(&ecb, open("/dev/flexsc", O_RDWR), POLLIN, 0),
		 -ELOOP);
	CHECK_EQ(ecb_try_accept(&ecb, file, 0, POLLIN, 0), -EPERM);
	CHECK_EQ(ecb_try_accept(&ecb, eventfd(0, 0), 0, POLLIN, 0), -EOPNOTSUPP);
	CHECK_EQ(ecb_try_accept(&ecb, socket(AF_INET, SOCK_STREAM, 0), 0,
				POLLIN, 0), -EOPNOTSUPP);
	ecb_watch(&ecb, fds[0], POLLIN, 0);
	ecb_watch(&ecb, fds[1], POLLIN, 0);
	CHECK_EQ(ecb_try_watch(&ecb, fds[0], POLLIN, 0), -ENOSPC);
	CHECK_EQ(ecb_forget(&ecb, 2), -ENOENT);
	CHECK_EQ(ecb_forget(&ecb, 1), 0);
	CHECK_EQ(ecb_forget(&ecb, 1), -ENOENT);
	CHECK_EQ(ecb_watch(&ecb, fds[1], POLLIN, 0), 1);
}

static void *a_stranger(void *arg)
{
	int fds[2];

	pair(fds);
	CHECK_EQ(ecb_try_watch(&ecb, fds[0], POLLIN, 0), -EPERM);
	CHECK_EQ(ecb_forget(&ecb, 0), -EPERM);
	CHECK_EQ(ecb_wait(&ecb, 1, 0), -EPERM);
	CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_KICK, 1), 0);
	return NULL;
}

static void in_thread(void *(*function)(void *), void *arg)
{
	pthread_t thread = test_thread(function, arg);

	CHECK_EQ(pthread_join(thread, NULL), 0);
}

static int status_of(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

ECB_TEST(only_the_owner_commands, 8, 0)
{
	in_thread(a_stranger, NULL);
	IN_CHILD {
		unsigned char here;

		CHECK_EQ(ecb_try_watch(&ecb, 0, POLLIN, 0), -EPERM);
		CHECK(ioctl(ecb.fd, FLEXSC_ECB_KICK, 1) && errno == EPERM);
		CHECK(mmap(NULL, ecb.args.area, PROT_READ, MAP_SHARED, ecb.fd,
			   0) == MAP_FAILED);
		CHECK(mincore(ecb.control, 4096, &here) && errno == ENOMEM);
	}
}

/* Delivery. */

ECB_TEST(an_event_is_delivered, 8, 0)
{
	uint32_t index;

	ecb_deliver(&ecb, BIT(3));
	index = ecb_watch(&ecb, fds[0], POLLIN, 3);
	CHECK(!next());
	send_byte(fds[1]);
	CHECK_EQ(ecb.control->pending, BIT(3));
	expect(index, POLLIN);
	CHECK_EQ(event.type, FLEXSC_EVT_IOREADY);
	CHECK_EQ(event.group, 3);
	CHECK_EQ(event.time, 0);
	CHECK(!next());
	/* Events are coalesced, and delivered again once the event was taken. */
	for (int i = 0; i < 10; i++)
		send_byte(fds[1]);
	expect(index, POLLIN);
	CHECK(!next());
	send_byte(fds[1]);
	expect(index, POLLIN);
	/* The first event reports the present state. */
	CHECK_EQ(ecb_forget(&ecb, index), 0);
	index = ecb_watch(&ecb, fds[0], POLLIN | POLLOUT, 3);
	expect(index, POLLIN | POLLOUT);
	CHECK_EQ(event.gen, ecb.slots[index].gen);
	CHECK_EQ(close(fds[1]), 0);
	expect(index, POLLHUP);
}

ECB_TEST_WITH(times_are_reported_on_request, 20, 8, FLEXSC_ECB_TIMES, ALL_GROUPS)
{
	struct timespec time;

	ecb_watch(&ecb, fds[0], POLLIN, 0);
	send_byte(fds[1]);
	CHECK(next());
	clock_gettime(CLOCK_MONOTONIC, &time);
	CHECK((uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec -
	      event.time < 10 * SECOND);
}

static void *say_later(void *arg)
{
	usleep(50000);
	send_byte(*(int *)arg);
	return NULL;
}

static pthread_t later(int *fd)
{
	return test_thread(say_later, fd);
}

ECB_TEST(waiting_ends_with_an_event_or_the_deadline_or_a_signal, 8, 0)
{
	pthread_t thread;

	/* Neither delivered nor notified: the owner waits for it. */
	ecb_watch(&ecb, fds[0], POLLIN, 5);
	CHECK_EQ(ecb_wait(&ecb, BIT(5), 0), 0);
	CHECK_EQ(ecb_wait(&ecb, BIT(5), 20 * MS), 0);
	CHECK(!next());
	for (int i = 0; i < 20; i++) {
		thread = later(&fds[1]);
		CHECK_EQ(ecb_wait(&ecb, BIT(5), UINT64_MAX), 0);
		CHECK(next());
		CHECK_EQ(event.group, 5);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		receive_byte(fds[0]);
		CHECK(!next());
	}
	CHECK_EQ(ecb.control->waiting, 0);
	/* A wait delivers a held event to the owner. */
	send_byte(fds[1]);
	CHECK_EQ(ecb.control->held, 1);
	CHECK_EQ(ecb_wait(&ecb, BIT(4), 0), 0);
	CHECK(!next());
	CHECK_EQ(ecb_wait(&ecb, BIT(5), UINT64_MAX), 0);
	CHECK(next());
	CHECK_EQ(ecb.control->held, 0);
	CHECK(!next());
	signal(SIGALRM, on_urgent);
	/* Signals repeatedly: the first signal may arrive before the wait. */
	ualarm(20000, 20000);
	CHECK_EQ(ecb_wait(&ecb, BIT(5), UINT64_MAX), -EINTR);
	ualarm(0, 0);
}

ECB_TEST(a_held_event_is_delivered_when_allowed, 8, 0)
{
	uint32_t index;

	index = ecb_watch(&ecb, fds[0], POLLIN, 1);
	CHECK_EQ(ecb.control->held, 0);
	for (int i = 0; i < 3; i++)
		send_byte(fds[1]);
	CHECK(!next());
	CHECK_EQ(ecb.control->held, 1);
	CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_FLUSH), 0);
	CHECK_EQ(ecb.control->held, 1);
	ecb_deliver(&ecb, BIT(1));
	CHECK_EQ(ecb.control->held, 0);
	expect(index, POLLIN);
	CHECK(!next());
	/* Held, but not ready any more when it may be delivered. */
	ecb_deliver(&ecb, 0);
	send_byte(fds[1]);
	CHECK_EQ(ecb.control->held, 1);
	for (int i = 0; i < 4; i++)
		receive_byte(fds[0]);
	ecb_deliver(&ecb, BIT(1));
	CHECK_EQ(ecb.control->held, 0);
	CHECK(!next());
	/* A held event of a watch that ends. */
	ecb_deliver(&ecb, 0);
	send_byte(fds[1]);
	CHECK_EQ(ecb_forget(&ecb, index), 0);
	ecb_deliver(&ecb, BIT(1));
	CHECK(!next());
	CHECK_EQ(ecb.control->held, 0);
}

/* Notifications, in each way. */

static void *kick_in_vain(void *arg)
{
	while (!over) {
		CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_KICK, BIT(1)), 0);
		usleep(1000);
	}
	return arg;
}

ECB_TEST_WITH(a_wait_continues_if_there_is_nothing_to_notify, 20, 8, FLEXSC_ECB_INTERRUPTS_CALLS, 0)
{
	pthread_t thread;

	ecb_store(&ecb.control->notify, BIT(1));
	thread = test_thread(kick_in_vain, NULL);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(ecb_wait(&ecb, BIT(2), 20 * MS), 0);
	over = true;
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Revocation. */

TEST(a_pipe_breaks_although_watched)
{
	uint32_t in, out;
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	ecb_open(&ecb, 8, 0);
	ecb_deliver(&ecb, ALL_GROUPS);
	CHECK_EQ(pipe2(fds, O_NONBLOCK), 0);
	in = ecb_watch(&ecb, fds[0], POLLIN, 0);
	out = ecb_watch(&ecb, fds[1], POLLOUT, 0);
	expect(out, POLLOUT);
	send_byte(fds[1]);
	expect(in, POLLIN);
	/* Both ends of a pipe have the same inode. */
	CHECK_EQ(close(fds[0]), 0);
	CHECK(write(fds[1], "x", 1) == -1 && errno == EPIPE);
	CHECK_EQ(ecb_forget(&ecb, in), -ENOENT);
	expect(out, POLLERR);
	CHECK_EQ(ecb_forget(&ecb, out), 0);
	CHECK_EQ(close(fds[1]), 0);
	ecb_close(&ecb);
}

ECB_TEST(the_same_inode_is_watched_many_times, 32, ALL_GROUPS)
{
	int fds[2], copies[16];

	CHECK_EQ(mkfifo("/tmp/fifo", 0600), 0);
	fds[0] = open("/tmp/fifo", O_RDWR | O_NONBLOCK);
	for (int i = 0; i < 16; i++) {
		copies[i] = dup(fds[0]);
		ecb_watch(&ecb, copies[i], POLLIN, 0);
	}
	for (int left = 16; left; left--) {
		int count = 0;

		send_byte(fds[0]);
		while (next())
			count++;
		CHECK_EQ(count, left);
		receive_byte(fds[0]);
		while (next())
			;
		CHECK_EQ(close(copies[left - 1]), 0);
	}
}

ECB_TEST(an_open_file_has_a_limit_of_watches, FLEXSC_ECB_FILE_WATCHES + 8, ALL_GROUPS)
{
	int counter = eventfd(0, EFD_NONBLOCK), copy = dup(counter);
	const uint64_t one = 1;

	for (int i = 0; i < FLEXSC_ECB_FILE_WATCHES; i++)
		ecb_watch(&ecb, i % 2 ? copy : counter, POLLIN, 0);
	for (int i = 0; i < 16; i++)
		CHECK_EQ(ecb_try_watch(&ecb, counter, POLLIN, 0), -ENOSPC);
	/* Another open file has its own limit. */
	ecb_watch(&ecb, eventfd(0, EFD_NONBLOCK), POLLIN, 0);
	/* The watches of the closed descriptor end. */
	CHECK_EQ(close(counter), 0);
	CHECK_EQ(write(copy, &one, 8), 8);
	for (int i = 0; i < FLEXSC_ECB_FILE_WATCHES / 2; i++)
		CHECK(next());
	CHECK(!next());
	ecb_watch(&ecb, copy, POLLIN, 0);
}

/* Another thread constantly reuses the number of a descriptor. */

static void *reuse(void *arg)
{
	int *fds = arg;

	while (!over) {
		CHECK_EQ(dup2(fds[2], fds[0]), fds[0]);
		CHECK_EQ(dup2(fds[3], fds[0]), fds[0]);
	}
	return NULL;
}

ECB_TEST_LIMIT(a_number_is_used_again_at_once, 60, 8, ALL_GROUPS)
{
	int one[2], two[2], fds[4];
	pthread_t thread;
	int watched = 0;

	pair(one);
	pair(two);
	fds[0] = dup(one[0]);
	fds[2] = one[0];
	fds[3] = two[0];
	send_byte(one[1]);
	chance_seed(1);
	thread = test_thread(reuse, fds);
	for (int i = 0; i < 10000; i++) {
		int index = ecb_try_watch(&ecb, fds[0], POLLIN, 0);

		while (next())
			CHECK_EQ(event.data, fds[0]);
		CHECK(index >= 0 || index == -EBADF);
		if (index < 0)
			continue;
		watched++;
		/* Sometimes the other thread closes the descriptor meanwhile. */
		for (uint64_t n = below(300); n; n--)
			__asm__ volatile("");
		ecb_forget(&ecb, (uint32_t)index);
		CHECK(!next());
	}
	over = true;
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(watched > 100);
	/* No watch holds a file any more, so the peers see a hang-up. */
	close(fds[0]);
	close(one[0]);
	close(two[0]);
	CHECK(hung_up(one[1]));
	CHECK(hung_up(two[1]));
}

/* Sources. */

/* The notification is pending when the watch ends, with siglock held. */
ECB_TEST(a_signal_notifies_by_a_signalfd, 16, 0)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGURG, on_urgent);
	ecb_watch(&ecb, signalfd(-1, &set, SFD_NONBLOCK), POLLIN, 0);
	ecb_store(&ecb.control->notify, 1);
	for (int i = 1; i <= 100; i++) {
		raise(SIGUSR1);
		CHECK_EQ(notified, i);
		CHECK(next());
		CHECK_EQ(sigwaitinfo(&set, NULL), SIGUSR1);
	}
	/* The queue of signals is freed while it is watched: POLLFREE. */
	for (int i = 0; i < 20; i++) {
		pid_t pid = test_fork();

		if (!pid) {
			ecb_open(&ecb, 16, 0);
			ecb_watch(&ecb, signalfd(-1, &set, SFD_NONBLOCK), POLLIN, 0);
			if (i % 2)
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		status_of(pid);
	}
}

/* Auto-accept. */

static int listener_of(uint16_t *port)
{
	struct sockaddr_in address;
	int fd = listening_socket(&address, SOCK_NONBLOCK, 128);

	*port = address.sin_port;
	return fd;
}

static int caller_of(uint16_t port, struct sockaddr_in *own)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = port,
	};
	socklen_t size = sizeof(*own);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_EQ(connect(fd, (void *)&address, sizeof(address)), 0);
	if (own)
		CHECK_EQ(getsockname(fd, (void *)own, &size), 0);
	return fd;
}

ECB_TEST(connections_are_accepted_when_delivered, 8, ALL_GROUPS)
{
	struct flexsc_event_peer peer;
	struct sockaddr_in own;
	int listener, caller, accepted, index, unsent;
	uint16_t port;

	listener = listener_of(&port);
	index = ecb_try_accept(&ecb, listener, 1, POLLIN, 2);
	CHECK_EQ(index, 0);
	caller = caller_of(port, &own);
	spin();
	CHECK_EQ(event.type, FLEXSC_EVT_IPACCEPT);
	CHECK_EQ(event.group, 1);
	CHECK_EQ(event.data, 77);
	memcpy(&peer, event.payload, sizeof(peer));
	CHECK_EQ(peer.family, AF_INET);
	CHECK_EQ(peer.port, own.sin_port);
	CHECK_EQ(memcmp(peer.address, &own.sin_addr, 4), 0);
	accepted = event.fd;
	CHECK(fcntl(accepted, F_GETFL) & O_NONBLOCK);
	CHECK_EQ(fcntl(accepted, F_GETFD), 0);
	CHECK(!next());
	send_byte(caller);
	spin();
	CHECK_EQ(event.type, FLEXSC_EVT_IOREADY);
	CHECK_EQ(event.group, 2);
	CHECK_EQ(event.fd, accepted);
	/* When it is closed, its event is revoked like others. */
	receive_byte(accepted);
	CHECK_EQ(close(accepted), 0);
	CHECK(hung_up(caller));
	CHECK_EQ(close(caller), 0);
	CHECK(!next());
	/* A held connection isn't accepted. A waiting owner accepts it. */
	ecb_deliver(&ecb, 0);
	caller = caller_of(port, NULL);
	send_byte(caller);
	while (!__atomic_load_n(&ecb.control->held, __ATOMIC_RELAXED))
		;
	CHECK(!next());
	CHECK_EQ(accept4(listener, NULL, NULL, 0), accepted);
	CHECK_EQ(close(accepted), 0);
	CHECK_EQ(close(caller), 0);
	caller = caller_of(port, NULL);
	send_byte(caller);
	/*
	 * Without the acknowledgement of the byte, the connection might be accepted
	 * before the byte arrives.
	 */
	do
		CHECK_EQ(ioctl(caller, SIOCOUTQ, &unsent), 0);
	while (unsent);
	CHECK_EQ(ecb_wait(&ecb, BIT(1), SECOND), 0);
	CHECK(next());
	CHECK_EQ(event.type, FLEXSC_EVT_IPACCEPT);
	CHECK(event.state & POLLIN);
	CHECK_EQ(ecb.control->waiting, 0);
	/*
	 * An owner that was about to wait, and found an event, accepts connections,
	 * too.
	 */
	ecb_deliver(&ecb, BIT(1));
	ecb_store(&ecb.control->waiting, BIT(5));
	CHECK_EQ(close(caller), 0);
	caller = caller_of(port, NULL);
	ecb_store(&ecb.control->waiting, 0);
	spin();
	CHECK_EQ(event.type, FLEXSC_EVT_IPACCEPT);
	/* The listener is closed. */
	CHECK_EQ(close(listener), 0);
	CHECK_EQ(ecb_forget(&ecb, 0), -ENOENT);
}

/* Files that the owner releases at the end of a wait. */

/* Waits until "ending" is posted. Meanwhile connections are accepted in group 1. */
static void wait_for_ending(void *(*function)(void *), void *arg)
{
	pthread_t thread = test_thread(function, arg);

	CHECK_EQ(ecb_wait(&ecb, BIT(0), UINT64_MAX), 0);
	CHECK(ecb.control->pending & BIT(0));
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

static uint32_t ending;

static long open_files(void)
{
	FILE *file = fopen("/proc/sys/fs/file-nr", "r");
	long count;

	CHECK(file);
	CHECK_EQ(fscanf(file, "%ld", &count), 1);
	CHECK_EQ(fclose(file), 0);
	return count;
}

/* The kernel's count of open files may be inaccurate by a hundred. */
static void *call_and_close(void *arg)
{
	long before = open_files();

	for (int i = 0; i < 1000; i++) {
		int caller = caller_of(*(uint16_t *)arg, NULL);

		while (!ecb_next(&ecb, BIT(1), &event))
			usleep(100);
		CHECK_EQ(event.type, FLEXSC_EVT_IPACCEPT);
		CHECK_EQ(close(event.fd), 0);
		CHECK(hung_up(caller));
		CHECK_EQ(close(caller), 0);
	}
	CHECK(open_files() - before < 500);
	ecb_post(&ecb, ending, 0, 0);
	return NULL;
}

ECB_TEST(a_wait_that_accepts_keeps_no_files, 8, BIT(1))
{
	uint16_t port;

	ending = ecb_watch_user(&ecb, 0);
	CHECK_EQ(ecb_try_accept(&ecb, listener_of(&port), 1, POLLIN, 1), 1);
	wait_for_ending(call_and_close, &port);
}

enum { TURN = 64 };	/* connections of a listener */

static struct {
	int listener, callers[TURN];
} turn;

/* During its turn, the owner holds a reference to the listener. */
static void *close_in_the_turn(void *arg)
{
	while (!(__atomic_load_n(&ecb.control->pending, __ATOMIC_RELAXED) & BIT(1)))
		;
	CHECK_EQ(close(turn.listener), 0);
	/* This connection wasn't accepted. */
	CHECK(hung_up(turn.callers[TURN - 1]));
	ecb_post(&ecb, ending, 0, 0);
	return NULL;
}

ECB_TEST(a_wait_releases_a_listener_that_was_closed, 2 * TURN, 0)
{
	uint16_t port;

	ending = ecb_watch_user(&ecb, 0);
	turn.listener = listener_of(&port);
	CHECK_EQ(ecb_try_accept(&ecb, turn.listener, 1, POLLIN, 1), 1);
	for (int i = 0; i < TURN; i++)
		turn.callers[i] = caller_of(port, NULL);
	CHECK_EQ(ecb.control->held, 1);
	/* The wait delivers the held events. */
	ecb_store(&ecb.control->deliver, BIT(1));
	wait_for_ending(close_in_the_turn, NULL);
}

/* On older kernels accept4() then fails with EINTR, as after a signal. */
ECB_TEST(a_wait_ends_though_a_vsock_listener_is_empty, 8, BIT(1))
{
	struct sockaddr_vm address = {
		.svm_family = AF_VSOCK,
		.svm_cid = VMADDR_CID_LOCAL,
		.svm_port = 1234,
	};
	int listener = socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK, 0), caller;

	if (listener < 0 && errno == EAFNOSUPPORT)
		test_skip("the kernel has no vsock");
	CHECK_EQ(bind(listener, (void *)&address, sizeof(address)), 0);
	CHECK_EQ(listen(listener, 8), 0);
	CHECK_EQ(ecb_try_accept(&ecb, listener, 1, POLLIN, 1), 0);
	caller = socket(AF_VSOCK, SOCK_STREAM, 0);
	CHECK_EQ(connect(caller, (void *)&address, sizeof(address)), 0);
	CHECK_EQ(ecb_wait(&ecb, BIT(0), 100 * MS), 0);
	CHECK(next());
	CHECK_EQ(event.type, FLEXSC_EVT_IPACCEPT);
	CHECK_EQ(close(event.fd), 0);
	CHECK(hung_up(caller));
	CHECK_EQ(close(caller), 0);
}

/* Limits descriptors so that all numbers are in use, or lifts the limit. */
static void limit_descriptors(bool few)
{
	const struct rlimit limit = { few ? 48 : 1024, 1024 };

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Waiting connections are delivered, but there is no descriptor for them. */
static void overflow(void)
{
	limit_descriptors(true);
	ecb_deliver(&ecb, ALL_GROUPS);
	/* connect() may return before the listener has queued the connection. */
	CHECK_EQ(ecb_wait(&ecb, ALL_GROUPS, SECOND), 0);
	CHECK(next());
	CHECK_EQ(event.type, FLEXSC_EVT_OVERFLOW);
	CHECK_EQ(event.error, -EMFILE);
	CHECK(!next());
	CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_FLUSH), 1);
	CHECK(!next());
	limit_descriptors(false);
}

/* The overflow is reported again, although the program has accepted the connections. */
static void overflow_twice(int listener, uint16_t port)
{
	for (int i = 0; i < 2; i++) {
		int caller;

		ecb_deliver(&ecb, 0);
		caller = caller_of(port, NULL);
		overflow();
		CHECK_EQ(close(accept4(listener, NULL, NULL, 0)), 0);
		CHECK_EQ(close(caller), 0);
		CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_FLUSH), 0);
	}
}

ECB_TEST_LIMIT(connections_wait_for_descriptors, 60, 256, 0)
{
	int callers[128], many = 0;
	int accepted[128], count = 0, listener;
	uint16_t port;

	listener = listener_of(&port);
	CHECK_EQ(ecb_try_accept(&ecb, listener, 0, POLLIN, 1), 0);
	/* More connections than one turn of a listener accepts. */
	while (many < 100)
		callers[many++] = caller_of(port, NULL);
	overflow();
	/* Descriptors are available, but no event may be delivered. */
	ecb_deliver(&ecb, 0);
	CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_FLUSH), 0);
	CHECK_EQ(ecb.control->held, 1);
	ecb_deliver(&ecb, ALL_GROUPS);
	while (count < many) {
		CHECK_EQ(ecb_wait(&ecb, ALL_GROUPS, SECOND), 0);
		while (next())
			accepted[count++] = event.fd;
	}
	CHECK_EQ(ecb.control->overflows, 1);
	overflow_twice(listener, port);
	CHECK_EQ(ecb.control->overflows, 3);
	/* The listener is closed while a connection waits for a descriptor. */
	ecb_deliver(&ecb, 0);
	callers[many] = caller_of(port, NULL);
	overflow();
	CHECK_EQ(close(listener), 0);
	CHECK(!next());
	CHECK_EQ(close(callers[many]), 0);
	for (int i = 0; i < many; i++) {
		CHECK_EQ(close(callers[i]), 0);
		CHECK_EQ(close(accepted[i]), 0);
	}
}

static void *make_block(void *arg)
{
	const int listener = *(int *)arg;

	while (!over) {
		fcntl(listener, F_SETFL, 0);
		fcntl(listener, F_SETFL, O_NONBLOCK);
	}
	return NULL;
}

/*
 * A connection that isn't accepted now is accepted with the next one. The owner
 * makes the connections itself, so it would wait forever in an accept4() that
 * blocks.
 */
ECB_TEST_LIMIT(a_listener_that_blocks_does_not_block_its_owner, 30, 256, ALL_GROUPS)
{
	int listener, accepted = 0;
	pthread_t thread;
	uint16_t port;

	listener = listener_of(&port);
	/*
	 * Room for all connections. While the other thread has no processor, the
	 * listener may stay in blocking mode for so long that no connection is
	 * accepted.
	 */
	CHECK_EQ(listen(listener, 4096), 0);
	CHECK_EQ(ecb_try_accept(&ecb, listener, 0, POLLIN, 1), 0);
	thread = test_thread(make_block, &listener);
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(close(caller_of(port, NULL)), 0);
		while (next()) {
			if (event.type != FLEXSC_EVT_IPACCEPT ||
			    event.fd == listener)
				continue;
			CHECK_EQ(close(event.fd), 0);
			accepted++;
		}
	}
	over = true;
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(accepted > 10);
}

/* The end of a block. */

static void *wait_until_over(void *arg)
{
	while (!over)
		usleep(1000);
	return arg;
}

/*
 * The owner gets its own descriptor table. The last thread that uses the first table
 * ends.
 */
ECB_TEST(a_block_outlives_its_first_descriptors, 8, ALL_GROUPS)
{
	pthread_t thread;

	thread = test_thread(wait_until_over, NULL);
	CHECK_EQ(unshare(CLONE_FILES), 0);
	over = true;
	CHECK_EQ(pthread_join(thread, NULL), 0);
	/* The thread closes the table after pthread_join() has returned. */
	usleep(20000);
	ecb_watch(&ecb, fds[0], POLLIN, 0);
	send_byte(fds[1]);
	expect(0, POLLIN);
}

TEST(a_block_ends_with_its_descriptor_and_memory)
{
	int fds[2];

	pair(fds);
	for (int i = 0; i < 2; i++) {
		ecb_open(&ecb, 8, 0);
		ecb_deliver(&ecb, ALL_GROUPS);
		ecb_watch(&ecb, fds[0], POLLIN, 0);
		if (i) {
			CHECK_EQ(munmap(ecb.control, ecb.args.area), 0);
			send_byte(fds[1]);
			CHECK_EQ(close(ecb.fd), 0);
		} else {
			CHECK_EQ(close(ecb.fd), 0);
			send_byte(fds[1]);
			CHECK(next());
			CHECK_EQ(munmap(ecb.control, ecb.args.area), 0);
		}
		send_byte(fds[1]);
	}
	CHECK_EQ(close(fds[0]), 0);
	CHECK(hung_up(fds[1]));
}

/* Watches in a child, and notifies the parent by the pipe. */
static pid_t watching(int fd, int ready, bool notifies)
{
	pid_t pid = test_fork();

	if (pid)
		return pid;
	ecb_open(&ecb, 8, 0);
	ecb_deliver(&ecb, ALL_GROUPS);
	signal(SIGURG, SIG_IGN);
	if (notifies)
		ecb_store(&ecb.control->notify, ALL_GROUPS);
	ecb_watch(&ecb, fd, POLLIN, 0);
	send_byte(ready);
	for (;;)
		while (next())
			;
}

TEST(a_process_is_killed_while_events_come)
{
	int fds[2], ready[2], status;
	pid_t pid;

	signal(SIGPIPE, SIG_IGN);
	CHECK_EQ(pipe(ready), 0);
	for (int i = 0; i < 50; i++) {
		pair(fds);
		pid = watching(fds[0], ready[1], i % 2);
		CHECK_EQ(close(fds[0]), 0);
		receive_byte(ready[0]);
		for (int n = 0; n < 20; n++)
			send_byte(fds[1]);
		kill(pid, SIGKILL);
		while (write(fds[1], "x", 1) == 1)
			;
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		/* ECONNRESET: the process ended with unread bytes. */
		CHECK(errno == EPIPE || errno == EAGAIN ||
		      errno == ECONNRESET);
		CHECK(hung_up(fds[1]));
		CHECK_EQ(close(fds[1]), 0);
	}
}

TEST(exec_ends_a_block)
{
	char *arguments[] = { "busybox", "sleep", "10", NULL };
	int fds[2];
	pid_t pid;

	signal(SIGPIPE, SIG_IGN);
	pair(fds);
	pid = test_fork();
	if (!pid) {
		ecb_open(&ecb, 8, 0);
		fcntl(fds[0], F_SETFD, FD_CLOEXEC);
		close(fds[1]);
		ecb_deliver(&ecb, ALL_GROUPS);
		ecb_watch(&ecb, fds[0], POLLIN, 0);
		send_byte(fds[0]);
		execv("/bin/busybox", arguments);
		_exit(1);
	}
	close(fds[0]);
	while (read(fds[1], arguments, 1) != 0)
		usleep(1000);
	kill(pid, SIGKILL);
	status_of(pid);
}

/* The child has the descriptor, but not the events, and doesn't keep files open. */
TEST(a_child_does_not_keep_watched_files)
{
	int fds[2], gate[2];
	pid_t pid;

	CHECK_EQ(pipe(gate), 0);
	pair(fds);
	pid = test_fork();
	if (!pid) {
		close(fds[1]);
		ecb_open(&ecb, 8, 0);
		ecb_watch(&ecb, fds[0], POLLIN, 0);
		if (!test_fork()) {
			close(fds[0]);
			close(gate[1]);
			receive_byte(gate[0]);
		}
		_exit(0);
	}
	close(fds[0]);
	CHECK_EQ(status_of(pid), 0);
	while (!hung_up(fds[1]))
		usleep(1000);
	send_byte(gate[1]);
}

static void *an_owner(void *arg)
{
	ecb_open(&ecb, 8, 0);
	ecb_deliver(&ecb, 1);
	ecb_store(&ecb.control->notify, 1);
	ecb_watch(&ecb, *(int *)arg, POLLIN, 0);
	return NULL;
}

TEST(the_owner_ends_before_its_process)
{
	int fds[2];

	pair(fds);
	in_thread(an_owner, &fds[0]);
	for (int i = 0; i < 10; i++) {
		send_byte(fds[1]);
		ecb.slots[0].state = 0;
	}
	CHECK_EQ(ioctl(ecb.fd, FLEXSC_ECB_KICK, 1), 0);
	CHECK_EQ(ecb_forget(&ecb, 0), -EPERM);
	CHECK_EQ(close(fds[0]), 0);
	CHECK(hung_up(fds[1]));
	ecb_close(&ecb);
}

TEST(the_module_stays_while_a_block_lives)
{
	ecb_open(&ecb, 8, 0);
	CHECK(syscall(SYS_delete_module, "flexsc", O_NONBLOCK) == -1 &&
	      errno == EWOULDBLOCK);
	CHECK_EQ(close(ecb.fd), 0);
	CHECK(syscall(SYS_delete_module, "flexsc", O_NONBLOCK) == -1 &&
	      errno == EWOULDBLOCK);
}
