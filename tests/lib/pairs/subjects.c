/* SPDX-License-Identifier: MIT */
/* Files of each kind, in the states in which a call does or doesn't wait. */
#define _GNU_SOURCE
#include "waits.h"

#include <errno.h>
#include <fcntl.h>
#include <flexsc/syscalls.h>
#include <linux/bpf.h>
#include <linux/if_alg.h>
#include <linux/if_packet.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Needs sys/socket.h before it. */
#include <linux/vm_sockets.h>

#define TEXT	"twelve bytes"

/* Adds a descriptor. False: it is invalid. */
static bool add(struct files *f, long fd)
{
	if (fd < 0)
		return false;
	f->fds[f->count++] = (int)fd;
	return true;
}

static bool add_two(struct files *f, const int fds[2], unsigned int first)
{
	return add(f, fds[first]) && add(f, fds[!first]);
}

static void drop_other(struct files *f)
{
	close(f->fds[--f->count]);
}

static int subject_of(const struct files *f)
{
	return f->fds[0];
}

/* Fills the file to which the subject writes. Returns the number of bytes. */
static size_t fill_up(const struct files *f)
{
	static const char bytes[4096];
	int fd = subject_of(f), flags = fcntl(fd, F_GETFL);
	size_t sum = 0;
	ssize_t wrote;

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	for (size_t n = sizeof(bytes); n; n /= 2)
		while ((wrote = write(fd, bytes, n)) > 0)
			sum += (size_t)wrote;
	fcntl(fd, F_SETFL, flags);
	return sum;
}

static bool fill(const struct files *f)
{
	return fill_up(f) > 0;
}

/* After that, poll(2) doesn't report most kinds of full sockets, but no send waits. */
static bool shut(const struct files *f)
{
	return !shutdown(subject_of(f), SHUT_WR);
}

/* The other end sends, and the subject becomes readable. */
static bool give(const struct files *f)
{
	struct pollfd ready = { subject_of(f), POLLIN, 0 };

	return write(f->fds[1], TEXT, sizeof(TEXT)) == sizeof(TEXT) &&
	       poll(&ready, 1, -1) == 1;
}

#define MADE(name, ...)							\
static bool make_##name(struct files *f)				\
{									\
	return __VA_ARGS__;						\
}

/* Files with positions. */

MADE(regular, add(f, open(".", O_TMPFILE | O_RDWR, 0600)) &&
     pwrite(subject_of(f), TEXT, sizeof(TEXT), 0) == sizeof(TEXT))
MADE(written_only, add(f, open(".", O_TMPFILE | O_WRONLY, 0600)))
MADE(directory, add(f, open("/", O_RDONLY | O_DIRECTORY)))
MADE(path, add(f, open("/proc/version", O_PATH)))
MADE(memfd, add(f, memfd_create("subject", 0)) &&
     pwrite(subject_of(f), TEXT, sizeof(TEXT), 0) == sizeof(TEXT))
MADE(secret, add(f, syscall(FLEXSC_NR_memfd_secret, 0)))

#define OPENED(name, path, flags)	MADE(name, add(f, open(path, flags)))

OPENED(proc, "/proc/version", O_RDONLY)
OPENED(mounts, "/proc/self/mounts", O_RDONLY)
OPENED(hostname, "/proc/sys/kernel/hostname", O_RDONLY)
OPENED(pressure, "/proc/pressure/cpu", O_RDONLY)
OPENED(comm, "/proc/self/comm", O_RDWR)
OPENED(sysfs, "/sys/kernel/uevent_seqnum", O_RDONLY)
OPENED(operstate, "/sys/class/net/lo/operstate", O_RDONLY)
OPENED(block, "/dev/loop0", O_RDONLY)
OPENED(namespace, "/proc/self/ns/net", O_RDONLY)

/* Devices. */

OPENED(null, "/dev/null", O_RDWR)
OPENED(zero, "/dev/zero", O_RDWR)
OPENED(full, "/dev/full", O_RDWR)
OPENED(random, "/dev/random", O_RDWR)
OPENED(urandom, "/dev/urandom", O_RDWR)
OPENED(log_in, "/dev/kmsg", O_RDONLY)
OPENED(log_out, "/dev/kmsg", O_WRONLY)
OPENED(fuse, "/dev/fuse", O_RDWR)
OPENED(tun, "/dev/net/tun", O_RDWR)
OPENED(kvm, "/dev/kvm", O_RDWR)
OPENED(loops, "/dev/loop-control", O_RDWR)

static bool make_pty(struct files *f, unsigned int first)
{
	int fds[2];

	return !openpty(&fds[0], &fds[1], NULL, NULL, NULL) &&
	       add_two(f, fds, first);
}

MADE(master, make_pty(f, 0))
MADE(terminal, make_pty(f, 1))

static bool make_raw_terminal(struct files *f)
{
	struct termios mode;

	if (!make_pty(f, 1) || tcgetattr(subject_of(f), &mode))
		return false;
	cfmakeraw(&mode);
	mode.c_cc[VMIN] = 0;
	mode.c_cc[VTIME] = 0;
	return !tcsetattr(subject_of(f), TCSANOW, &mode);
}

/* Pipes. */

static bool make_pipe(struct files *f, unsigned int first)
{
	int fds[2];

	return !pipe(fds) && add_two(f, fds, first);
}

MADE(pipe_empty, make_pipe(f, 0))
MADE(pipe_given, make_pipe(f, 0) && give(f))

static bool make_pipe_ended(struct files *f)
{
	if (!make_pipe(f, 0))
		return false;
	drop_other(f);
	return true;
}

MADE(pipe_room, make_pipe(f, 1))
MADE(pipe_full, make_pipe(f, 1) && fill(f))

static bool make_pipe_broken(struct files *f)
{
	if (!make_pipe(f, 1))
		return false;
	drop_other(f);
	return true;
}

static bool make_fifo(struct files *f)
{
	char name[32];

	/* Two processes may run in the same directory. */
	snprintf(name, sizeof(name), "fifo.%d", (int)getpid());
	unlink(name);
	return !mkfifo(name, 0600) && add(f, open(name, O_RDWR));
}

/* Sockets. */

static bool make_pair(struct files *f, int type)
{
	int fds[2], small = 4096;

	if (socketpair(AF_UNIX, type, 0, fds))
		return false;
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	return add_two(f, fds, 0);
}

#define PAIR(name, type, state)	MADE(name, make_pair(f, type) && (state))

PAIR(stream, SOCK_STREAM, true)
PAIR(stream_given, SOCK_STREAM, give(f))
PAIR(stream_full, SOCK_STREAM, fill(f))
PAIR(stream_shut, SOCK_STREAM, shut(f))
PAIR(stream_full_shut, SOCK_STREAM, fill(f) && shut(f))
PAIR(stream_ended, SOCK_STREAM, (drop_other(f), true))
PAIR(stream_urgent, SOCK_STREAM, send(f->fds[1], "ab", 2, MSG_OOB) == 2)
PAIR(datagrams, SOCK_DGRAM, true)
PAIR(datagrams_given, SOCK_DGRAM, give(f))
PAIR(datagrams_full, SOCK_DGRAM, fill(f))
PAIR(datagrams_full_shut, SOCK_DGRAM, fill(f) && shut(f))
PAIR(packets, SOCK_SEQPACKET, true)
PAIR(packets_given, SOCK_SEQPACKET, give(f))
PAIR(packets_full_shut, SOCK_SEQPACKET, fill(f) && shut(f))

static bool listens(struct files *f)
{
	struct sockaddr_un_short {
		sa_family_t family;
	} local = { AF_UNIX };

	/* The kernel chooses the address. */
	return add(f, socket(AF_UNIX, SOCK_STREAM, 0)) &&
	       !bind(subject_of(f), (struct sockaddr *)&local, sizeof(local)) &&
	       !listen(subject_of(f), 1);
}

#define SOCKET(name, ...)	MADE(name, add(f, socket(__VA_ARGS__)))

SOCKET(stream_alone, AF_UNIX, SOCK_STREAM, 0)
SOCKET(datagrams_alone, AF_UNIX, SOCK_DGRAM, 0)
SOCKET(tcp_alone, AF_INET, SOCK_STREAM, 0)
SOCKET(udp, AF_INET, SOCK_DGRAM, 0)
SOCKET(udp6, AF_INET6, SOCK_DGRAM, 0)
SOCKET(raw, AF_INET, SOCK_RAW, 253)
SOCKET(raw6, AF_INET6, SOCK_RAW, 253)
SOCKET(route, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)
SOCKET(uevents, AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT)
SOCKET(packet, AF_PACKET, SOCK_RAW, 0)
SOCKET(vsock, AF_VSOCK, SOCK_STREAM, 0)
SOCKET(vsock_datagrams, AF_VSOCK, SOCK_DGRAM, 0)

static bool make_alg(struct files *f, const char *type, const char *name)
{
	struct sockaddr_alg to = { .salg_family = AF_ALG };
	int fd = socket(AF_ALG, SOCK_SEQPACKET, 0);

	strcpy((char *)to.salg_type, type);
	strcpy((char *)to.salg_name, name);
	if (fd < 0)
		return false;
	if (bind(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return false;
	}
	return add(f, accept(fd, NULL, NULL)) && add(f, fd);
}

MADE(hash, make_alg(f, "hash", "sha256"))

/* An address on the loopback device, bound or connected to. */
static bool tcp_listener(int *listener, struct sockaddr_in *to)
{
	socklen_t size = sizeof(*to);

	*to = (struct sockaddr_in){ .sin_family = AF_INET };
	to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*listener = socket(AF_INET, SOCK_STREAM, 0);
	return *listener >= 0 &&
	       !bind(*listener, (struct sockaddr *)to, size) &&
	       !listen(*listener, 1) &&
	       !getsockname(*listener, (struct sockaddr *)to, &size);
}

static bool make_tcp_listener(struct files *f)
{
	struct sockaddr_in to;
	int fd;

	return tcp_listener(&fd, &to) && add(f, fd);
}

static bool make_tcp_pair(struct files *f)
{
	int listener, small = 4096, fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in to;
	bool made;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	made = tcp_listener(&listener, &to) &&
	       !setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small,
			   sizeof(small)) &&
	       !connect(fd, (struct sockaddr *)&to, sizeof(to)) &&
	       add(f, fd) && add(f, accept(listener, NULL, NULL));
	close(listener);
	return made;
}

#define TCP(name, state)						\
static bool make_##name(struct files *f)				\
{									\
	return make_tcp_pair(f) && (state);				\
}

static bool shut_peer(struct files *f)
{
	struct pollfd ended = { subject_of(f), POLLIN, 0 };

	return !shutdown(f->fds[1], SHUT_WR) && poll(&ended, 1, -1) == 1;
}

static bool send_urgent(struct files *f)
{
	struct pollfd urgent = { subject_of(f), POLLPRI, 0 };

	return send(f->fds[1], "ab", 2, MSG_OOB) == 2 &&
	       poll(&urgent, 1, -1) == 1;
}

static bool set_option(struct files *f, int option, const void *value,
		       socklen_t size)
{
	return !setsockopt(subject_of(f), SOL_SOCKET, option, value, size);
}

static const struct timeval soon = { 0, 20000 };
static const int many = 100;

TCP(tcp, true)
TCP(tcp_given, give(f))
TCP(tcp_full, fill(f))
TCP(tcp_full_shut, fill(f) && shut(f))
TCP(tcp_ended, shut_peer(f))
TCP(tcp_urgent, send_urgent(f))
TCP(tcp_limit_in, set_option(f, SO_RCVTIMEO, &soon, sizeof(soon)))
TCP(tcp_limit_out, set_option(f, SO_SNDTIMEO, &soon, sizeof(soon)) && fill(f))
TCP(tcp_lowat, set_option(f, SO_RCVLOWAT, &many, sizeof(many)) &&
	       write(f->fds[1], "x", 1) == 1)
PAIR(stream_limit_in, SOCK_STREAM,
     set_option(f, SO_RCVTIMEO, &soon, sizeof(soon)))
PAIR(stream_limit_out, SOCK_STREAM,
     set_option(f, SO_SNDTIMEO, &soon, sizeof(soon)) && fill(f))
PAIR(stream_lowat, SOCK_STREAM,
     set_option(f, SO_RCVLOWAT, &many, sizeof(many)) && give(f))

static bool make_udp_pair(struct files *f)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	socklen_t size = sizeof(to);
	int fds[2];

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (unsigned int i = 0; i < 2; i++)
		if (!add(f, fds[i] = socket(AF_INET, SOCK_DGRAM, 0)) ||
		    bind(fds[i], (struct sockaddr *)&to, sizeof(to)))
			return false;
	for (unsigned int i = 0; i < 2; i++)
		if (getsockname(fds[i], (struct sockaddr *)&to, &size) ||
		    connect(fds[!i], (struct sockaddr *)&to, sizeof(to)))
			return false;
	return true;
}

MADE(udp_given, make_udp_pair(f) && give(f))

/* No socket receives the datagram, so an error is queued. */
static bool make_udp_error(struct files *f)
{
	struct pollfd failed;
	int on = 1;

	if (!make_udp_pair(f) ||
	    setsockopt(subject_of(f), IPPROTO_IP, IP_RECVERR, &on, sizeof(on)))
		return false;
	drop_other(f);
	failed = (struct pollfd){ subject_of(f), 0, 0 };
	return send(subject_of(f), TEXT, 1, 0) == 1 &&
	       poll(&failed, 1, -1) == 1;
}

/* Files without names. */

#define EVENTS(name, value, flags)					\
static bool make_##name(struct files *f)				\
{									\
	return add(f, eventfd(value, flags));				\
}

EVENTS(eventfd_zero, 0, 0)
EVENTS(eventfd_one, 1, 0)
EVENTS(semaphore, 3, EFD_SEMAPHORE)

static bool make_eventfd_full(struct files *f)
{
	const uint64_t most = UINT64_MAX - 1;

	return add(f, eventfd(0, 0)) && write(subject_of(f), &most, 8) == 8;
}

MADE(timer, add(f, timerfd_create(CLOCK_MONOTONIC, 0)))

static bool make_timer_over(struct files *f)
{
	const struct itimerspec at_once = { .it_value = { 0, 1 } };
	struct pollfd over = { -1, POLLIN, 0 };

	if (!make_timer(f) || timerfd_settime(subject_of(f), 0, &at_once, NULL))
		return false;
	over.fd = subject_of(f);
	return poll(&over, 1, -1) == 1;
}

static bool make_signals(struct files *f)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return add(f, signalfd(-1, &set, 0));
}

MADE(changes, add(f, inotify_init()) &&
     inotify_add_watch(subject_of(f), ".", IN_DELETE_SELF) >= 0)

static bool make_changes_given(struct files *f)
{
	struct pollfd ready = { -1, POLLIN, 0 };
	char name[32];

	snprintf(name, sizeof(name), "watched.%d", (int)gettid());
	mkdir(name, 0700);
	if (!add(f, inotify_init()) ||
	    inotify_add_watch(subject_of(f), name, IN_DELETE_SELF) < 0)
		return false;
	ready.fd = subject_of(f);
	return !rmdir(name) && poll(&ready, 1, -1) == 1;
}

MADE(notices,
     add(f, fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY)))
MADE(permissions, add(f, fanotify_init(FAN_CLASS_CONTENT, O_RDONLY)))
MADE(set, add(f, epoll_create1(0)))

static bool make_set_ready(struct files *f)
{
	struct epoll_event event = { .events = EPOLLIN };

	return make_set(f) && add(f, eventfd(1, 0)) &&
	       !epoll_ctl(subject_of(f), EPOLL_CTL_ADD, f->fds[1], &event);
}

MADE(process, add(f, syscall(SYS_pidfd_open, getpid(), 0)))
MADE(faults, add(f, syscall(SYS_userfaultfd, 0)))

static bool make_faults_ready(struct files *f)
{
	struct uffdio_api api = { .api = UFFD_API };

	return make_faults(f) && !ioctl(subject_of(f), UFFDIO_API, &api);
}

static bool make_ring(struct files *f)
{
	struct io_uring_params params = { 0 };

	return add(f, syscall(SYS_io_uring_setup, 4, &params));
}

static bool make_perf(struct files *f)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
	};

	return add(f, syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

/* With a ring. poll() waits for it, but read() doesn't use it. */
static bool make_perf_ring(struct files *f)
{
	size_t page = (size_t)getpagesize();

	return make_perf(f) &&
	       mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED,
		    subject_of(f), 0) != MAP_FAILED;
}

static bool make_map(struct files *f, unsigned int type, unsigned int key,
		     unsigned int value, unsigned int entries)
{
	union bpf_attr attr = {
		.map_type = type,
		.key_size = key,
		.value_size = value,
		.max_entries = entries,
	};

	return add(f, syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

MADE(array, make_map(f, BPF_MAP_TYPE_ARRAY, 4, 8, 1))
MADE(ringbuf,
     make_map(f, BPF_MAP_TYPE_RINGBUF, 0, 0, (unsigned int)getpagesize()))

static bool make_rules(struct files *f)
{
	uint64_t attr = 1;

	return add(f, syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr),
			      0));
}

MADE(filesystem, add(f, syscall(SYS_fsopen, "tmpfs", 0)))

static bool make_queue(struct files *f)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 16 };
	char name[32];
	mqd_t queue;

	snprintf(name, sizeof(name), "/flexsc-waits.%d", (int)getpid());
	queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	mq_unlink(name);
	return add(f, queue);
}

MADE(queue_full, make_queue(f) && !mq_send(subject_of(f), "x", 1, 0))

static bool make_none(struct files *f)
{
	f->fds[f->count++] = -1;
	return true;
}

/* Data that TCP has sent moves on to the receiver, and leaves room. */
static bool is_full(const struct files *f)
{
	return !fill_up(f);
}

#define FILE_OF(name)		{ #name, make_##name, NULL, false, false, false }
#define VARIES(name)		{ #name, make_##name, NULL, false, true, false }
#define RACES(name)		{ #name, make_##name, NULL, false, true, true }
#define SOCKET_OF(name)		{ #name, make_##name, NULL, true, false, false }
#define FILLED(name)		{ #name, make_##name, is_full, true, false, false }

const struct subject subjects[] = {
	FILE_OF(regular), FILE_OF(written_only), FILE_OF(directory),
	FILE_OF(path), FILE_OF(memfd), FILE_OF(secret),
	FILE_OF(proc), VARIES(mounts), FILE_OF(hostname), VARIES(pressure),
	VARIES(comm), VARIES(sysfs), FILE_OF(operstate), VARIES(block),
	FILE_OF(namespace),
	FILE_OF(null), FILE_OF(zero), FILE_OF(full), VARIES(random),
	VARIES(urandom), RACES(log_in), VARIES(log_out),
	FILE_OF(fuse), FILE_OF(tun), FILE_OF(kvm), FILE_OF(loops),
	FILE_OF(master), FILE_OF(terminal), FILE_OF(raw_terminal),
	FILE_OF(pipe_empty), FILE_OF(pipe_given), FILE_OF(pipe_ended),
	FILE_OF(pipe_room), FILE_OF(pipe_full), FILE_OF(pipe_broken),
	FILE_OF(fifo),
	SOCKET_OF(stream), SOCKET_OF(stream_given), SOCKET_OF(stream_full),
	SOCKET_OF(stream_shut), SOCKET_OF(stream_full_shut),
	SOCKET_OF(stream_ended), SOCKET_OF(stream_urgent),
	SOCKET_OF(stream_alone), SOCKET_OF(stream_limit_in),
	SOCKET_OF(stream_limit_out), SOCKET_OF(stream_lowat),
	{ "stream_listener", listens, NULL, true, false, false },
	SOCKET_OF(datagrams), SOCKET_OF(datagrams_given),
	SOCKET_OF(datagrams_full), SOCKET_OF(datagrams_full_shut),
	SOCKET_OF(datagrams_alone),
	SOCKET_OF(packets), SOCKET_OF(packets_given),
	SOCKET_OF(packets_full_shut),
	SOCKET_OF(tcp), SOCKET_OF(tcp_given), FILLED(tcp_full),
	SOCKET_OF(tcp_full_shut),
	SOCKET_OF(tcp_ended), SOCKET_OF(tcp_urgent), SOCKET_OF(tcp_alone),
	SOCKET_OF(tcp_listener), SOCKET_OF(tcp_limit_in),
	FILLED(tcp_limit_out), SOCKET_OF(tcp_lowat),
	SOCKET_OF(udp), SOCKET_OF(udp6), SOCKET_OF(udp_given),
	SOCKET_OF(udp_error),
	SOCKET_OF(raw), SOCKET_OF(raw6), SOCKET_OF(route),
	SOCKET_OF(uevents), SOCKET_OF(packet), SOCKET_OF(vsock),
	SOCKET_OF(vsock_datagrams), SOCKET_OF(hash),
	FILE_OF(eventfd_zero), FILE_OF(eventfd_one), FILE_OF(eventfd_full),
	FILE_OF(semaphore), FILE_OF(timer), FILE_OF(timer_over),
	FILE_OF(signals), FILE_OF(changes), FILE_OF(changes_given),
	FILE_OF(notices), FILE_OF(permissions), FILE_OF(set),
	FILE_OF(set_ready), FILE_OF(process), FILE_OF(faults),
	FILE_OF(faults_ready), FILE_OF(ring), FILE_OF(perf),
	FILE_OF(perf_ring), FILE_OF(array), FILE_OF(ringbuf),
	FILE_OF(rules), FILE_OF(filesystem), FILE_OF(queue),
	FILE_OF(queue_full), FILE_OF(none),
	{ 0 },
};
