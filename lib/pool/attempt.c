/* SPDX-License-Identifier: MIT */
#include "attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

#include "lib/files/fds.h"
#include "lib/files/plan.h"
#include "lib/files/probe.h"
#include "lib/calls/call_info.h"
#include "lib/base/ask.h"
#include "lib/loop/await.h"

/* Result of an attempt that failed because the call would have to wait. */
#define WOULD	(-EAGAIN)
/*
 * Result: no attempt is possible, because it might wait, or because the kernel or a
 * filter refuses it.
 */
#define NO_WAY	INT64_MIN
/* Result: the call's descriptor is ready, so the call may be made. */
#define RUNS	(INT64_MIN + 1)
/* Result: whether the call would wait is unknown, so a thread has to make it. */
#define BLOCKS	(INT64_MIN + 2)

/*
 * Assumed room of a socket that poll(2) reports ready. After a small SO_SNDBUF, a TCP
 * socket may have less.
 */
#define ROOM_MIN	4096U

/*
 * Make a socket's call without waiting (MSG_DONTWAIT). If a send is partial, its
 * remainder is sent later. A receive that waits for all bytes isn't attempted: it could
 * consume a part of them, which can't be put back.
 */
static int64_t try_socket(const struct flexsc_entry *entry,
			  const struct call_info *row)
{
	__u64 a[6];

	if (flexsc__plan_wants_all(row, entry->args))
		return NO_WAY;
	memcpy(a, entry->args, sizeof(a));
	a[row->flags_arg] |= row->attempt;
	return ask(entry->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/*
 * Does a message pass descriptors? Such a call isn't parked: the kernel looks the
 * descriptors up when the call begins, and the program may close them while the call is
 * parked. (The attempt has returned -EAGAIN, so the arguments are valid.)
 */
static bool has_control(const struct flexsc_entry *entry,
			const struct call_info *row)
{
	const struct msghdr *message =
		(const struct msghdr *)(uintptr_t)entry->args[1];

	return row->passes == PASSES_ONE && message->msg_controllen;
}

/*
 * Make a read or write without waiting (RWF_NOWAIT). Not for files that poll(2) always
 * reports ready, such as files on a disk: if only a part is in memory, the call would
 * return too few bytes.
 */
static int64_t try_stream(const struct flexsc_entry *entry,
			  const struct call_info *row)
{
	const __u64 *a = entry->args;
	struct iovec iov = { (void *)(uintptr_t)a[1], a[2] };
	uint64_t vector = a[1], n = a[2], at = -1ULL, flags = RWF_NOWAIT;
	long nr, ret;

	if (!row->dir || !(row->position == POSITION_USED ||
			   row->position == POSITION_IF_NEGATIVE))
		return NO_WAY;
	nr = row->dir == POLL_READ ? SYS_preadv2 : SYS_pwritev2;
	if (row->length == LENGTH_BYTES) {
		/*
		 * preadv2() of 0 bytes returns at once, but read() may wait: don't
		 * attempt it.
		 */
		if (!a[2])
			return NO_WAY;
		vector = PTR(&iov);
		n = 1;
	} else if (row->position == POSITION_IF_NEGATIVE) {
		at = a[row->position_arg];
		flags |= a[row->flags_arg];
	}
	ret = ask(nr, a[0], vector, n, at, 0, flags);
	switch (ret) {
	case -EOPNOTSUPP:
	case -ENOSYS:
	case -EPERM:
	case -EACCES:
		return NO_WAY;
	default:
		return ret;
	}
}

static bool is_listening(uint64_t fd)
{
	return flexsc__probe_option((uint32_t)fd, SO_ACCEPTCONN);
}

/*
 * Returns how many bytes a socket accepts without waiting; 0: the descriptor isn't a
 * socket.
 */
static uint64_t ask_room(uint64_t fd)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	uint32_t size = sizeof(memory), queued;

	if (ask(SYS_getsockopt, fd, SOL_SOCKET, SO_MEMINFO,
		PTR(memory), PTR(&size), 0))
		return 0;
	queued = memory[SK_MEMINFO_WMEM_QUEUED];
	if (queued < memory[SK_MEMINFO_WMEM_ALLOC])
		queued = memory[SK_MEMINFO_WMEM_ALLOC];
	if (memory[SK_MEMINFO_SNDBUF] < queued + ROOM_MIN)
		return ROOM_MIN;
	/* Leave an eighth of the room for the kernel's metadata around the bytes. */
	return (memory[SK_MEMINFO_SNDBUF] - queued) / 8 * 7;
}

/*
 * Would a send wait on this descriptor, which poll(2) doesn't report as writable? For a
 * TCP socket, poll(2) reports a shutdown, too. For a full local socket it doesn't, but
 * there a byte stream refuses even a send of no byte. On other sockets, such a send may
 * transmit an empty record.
 */
static int64_t try_unready(uint32_t fd)
{
	const uint32_t domain = flexsc__probe_option(fd, SO_DOMAIN);
	const uint32_t protocol = flexsc__probe_option(fd, SO_PROTOCOL);

	/* Not a socket. */
	if (!domain)
		return WOULD;
	if (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP)
		return is_listening(fd) ? BLOCKS : WOULD;
	if (domain != AF_UNIX ||
	    flexsc__probe_option(fd, SO_TYPE) != SOCK_STREAM ||
	    ask(SYS_sendto, fd, 0, 0, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0))
		return BLOCKS;
	return WOULD;
}

/*
 * Attempt a sendfile(). If the socket is ready, send at most as many bytes as it has
 * room for; a smaller result means the end of the file. If the descriptor isn't ready,
 * send 0 bytes, to check the arguments. Make no such attempt on a file that isn't
 * polled, where sending 0 bytes succeeds although sending more fails.
 */
static int64_t try_sendfile(const struct flexsc_entry *entry,
			    const struct call_info *row, bool is_ready,
			    bool *part)
{
	const __u64 *a = entry->args;
	uint64_t most = is_ready ? ask_room(a[0]) : 0;
	int64_t ret;

	if (is_ready && !most)
		return RUNS;
	if (!is_ready && flexsc__plan_waits(row, entry) != WAITS_POLLED)
		return NO_WAY;
	if (a[3] < most)
		most = a[3];
	ret = ask(SYS_sendfile, a[0], a[1], a[2], most, 0, 0);
	*part = ret == (int64_t)most;
	/* With 0 bytes, success only shows that the arguments are valid. */
	return is_ready || ret < 0 ? ret : try_unready((uint32_t)a[0]);
}

static bool ask_ready(uint64_t fd, unsigned int poll)
{
	struct timespec limit = { 0 };
	struct pollfd set = {
		.fd = (int)fd,
		.events = poll == POLL_READ ? POLLIN : POLLOUT,
	};

	return ask(SYS_ppoll, PTR(&set), 1, PTR(&limit), 0, 0, 0) != 0;
}

static bool accepts(const struct flexsc_entry *entry,
		    const struct call_info *row)
{
	uint64_t flags = row->made_flags ? entry->args[row->made_flags_arg] : 0;

	return !(flags & ~(uint64_t)(SOCK_CLOEXEC | SOCK_NONBLOCK)) &&
	       is_listening(entry->args[0]);
}

/*
 * Decide how to wait if the descriptor isn't ready and the call can't be attempted. The
 * call may wait for something that an epoll set doesn't report, so it should block a
 * thread. Such a call may be parked only if threads are scarce (ATTEMPT_LATE), and never
 * if the descriptor is a terminal.
 */
static enum attempt judge_kind(uint32_t fd)
{
	return flexsc__fds_kind(fd) & FD_TERMINAL ? ATTEMPT_UNKNOWN :
						    ATTEMPT_LATE;
}

/*
 * Decide how a call that can't complete now is to wait. "exact": an attempt of the call
 * itself returned -EAGAIN. If poll(2) nevertheless reports the descriptor ready, don't
 * park the call, because an epoll set would report the descriptor again and again. An
 * example is a datagram socket that was shut down.
 */
static enum attempt judge_unready(const struct flexsc_entry *entry,
				  const struct call_info *row, bool exact,
				  bool woken)
{
	const unsigned int poll = row->dir;
	uint64_t fd = entry->args[0];
	long flags = ask(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);

	if (flags < 0 || (flags & O_NONBLOCK))
		return ATTEMPT_RUNS;
	if (flexsc__probe_time_limit(fd, poll))
		return ATTEMPT_UNKNOWN;
	if (row->makes == MAKES_ACCEPTED)
		return accepts(entry, row) ? ATTEMPT_WAITS : ATTEMPT_RUNS;
	if (exact && has_control(entry, row))
		return ATTEMPT_UNKNOWN;
	if (exact && !woken)
		return ATTEMPT_WAITS;
	if (exact)
		return ask_ready(fd, poll) ? ATTEMPT_UNKNOWN : ATTEMPT_WAITS;
	return judge_kind((uint32_t)fd);
}

/*
 * Check whether the call's descriptor is ready, then make the call without waiting, if
 * that is possible.
 */
static int64_t try_polled(const struct flexsc_entry *entry,
			  const struct call_info *row, bool *part)
{
	bool is_ready = ask_ready(entry->args[0], row->dir);

	if (row->source_arg)
		return try_sendfile(entry, row, is_ready, part);
	return is_ready ? RUNS : try_stream(entry, row);
}

static enum attempt try_await(const struct flexsc_entry *entry, int64_t *ret)
{
	struct timespec limit = { 0 };

	*ret = ask(SYS_ppoll, entry->args[AWAIT_RECORD], 1, PTR(&limit), 0, 0,
		   0);
	return *ret ? ATTEMPT_DONE : ATTEMPT_WAITS;
}

bool flexsc__attempt_was_reset(const struct flexsc_entry *entry)
{
	const short reset = POLLERR | POLLHUP;
	struct timespec limit = { 0 };
	struct pollfd fd = { .fd = (int)entry->args[0] };

	ask(SYS_ppoll, PTR(&fd), 1, PTR(&limit), 0, 0, 0);
	return (fd.revents & reset) == reset &&
	       flexsc__probe_option((uint32_t)fd.fd, SO_PROTOCOL) == IPPROTO_TCP;
}

enum attempt flexsc__attempt(const struct flexsc_entry *entry,
			     const struct call_info *row, bool woken,
			     int64_t *ret)
{
	bool part = true;

	if (await_is(entry))
		return try_await(entry, ret);
	switch (flexsc__plan_waits(row, entry)) {
	case WAITS_OTHER:
		return ATTEMPT_UNKNOWN;
	case WAITS_NEVER:
	case WAITS_DEVICE:
		return ATTEMPT_RUNS;
	case WAITS_POLLED:
	case WAITS_UNKNOWN:
		break;
	}
	/*
	 * Don't attempt the receive: without waiting, it may return fewer bytes
	 * than SO_RCVLOWAT.
	 */
	if (row->dir == POLL_READ &&
	    flexsc__fds_find_lowat((uint32_t)entry->args[0]))
		return ATTEMPT_UNKNOWN;
	*ret = NO_WAY;
	if (call_is_of_socket(row))
		*ret = try_socket(entry, row);
	if (*ret == NO_WAY)
		*ret = try_polled(entry, row, &part);
	/*
	 * The call may still wait: a ready socket may have room for only the first
	 * of several messages, or may have only a part of the bytes that a receive
	 * waits for.
	 */
	if (*ret == RUNS)
		return row->passes == PASSES_MANY ||
				       flexsc__plan_wants_all(row, entry->args) ?
			       ATTEMPT_UNKNOWN :
			       ATTEMPT_RUNS;
	if (*ret == BLOCKS)
		return ATTEMPT_UNKNOWN;
	if (*ret == WOULD || *ret == NO_WAY)
		return judge_unready(entry, row, *ret == WOULD, woken);
	return part ? ATTEMPT_PART : ATTEMPT_DONE;
}
