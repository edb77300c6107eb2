/* SPDX-License-Identifier: MIT */
#include "kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/base/ask.h"
#include "lib/base/statx.h"
#include "fds.h"
#include "probe.h"

#define NAME_ROOM	48	/* bytes compared of a link's text in /proc/PID/fd */
#define QUEUE_SIZE	80	/* length of what a read of a message queue returns */

/* Files on a disk or in memory. Their calls use a file position. */
#define DISK		(FD_PLACED | FD_SEEKS)
/*
 * Generated files (such as /proc) have a position, too. Most of them reject pwrite(),
 * which io_uring doesn't check: it would write.
 */
#define GENERATED	(FD_PLACED | FD_NEVER_SEEKS)
/*
 * Other files. STREAM: reads and writes wait until poll(2) reports the file ready.
 * SOURCE: only reads do, and writes never wait. SILENT: neither waits.
 */
#define STREAM		(FD_POLLS_IN | FD_POLLS_OUT | FD_NEVER_SEEKS)
#define SOURCE		(FD_POLLS_IN | FD_RETURNS_OUT | FD_NEVER_SEEKS)
#define SILENT		(FD_RETURNS_IN | FD_RETURNS_OUT | FD_NEVER_SEEKS)
#define UNKNOWN		(FD_UNKNOWN | FD_NEVER_SEEKS)

enum found_by {
	BY_TYPE,	/* the file type in its mode (S_IFMT) */
	BY_DEVICE,	/* its major and minor number */
	BY_NAME,	/* the beginning of the text of its link in /proc/PID/fd */
	BY_REPLY,	/* a successful request that all other files reject */
};

#define TYPE(type)		BY_TYPE, (type), NULL
#define DEVICE(major, minor)	BY_DEVICE, (major) << 20 | (minor), NULL
#define NAME(name)		BY_NAME, 0, (name)
#define REPLY(reply)		BY_REPLY, (reply), NULL

enum reply { NO_REPLY, QUEUE_REPLY, TERMINAL_REPLY };

/* Every known kind: how it is recognised, and the facts of its descriptors. */
static const struct kind {
	uint8_t by;	/* enum found_by */
	uint32_t number;
	const char *name;
	uint32_t facts;	/* enum fd_fact */
} kinds[] = {
	{ TYPE(S_IFREG), DISK },
	{ TYPE(S_IFDIR), DISK },
	{ TYPE(S_IFBLK), DISK },
	{ TYPE(S_IFIFO), STREAM | FD_PIPE },
	{ TYPE(S_IFSOCK), STREAM },
	/* A POSIX message queue has a path, and ignores offsets. */
	{ REPLY(QUEUE_REPLY), GENERATED },
	{ NAME("/proc/"), GENERATED },
	{ NAME("/sys/"), GENERATED },
	{ NAME("/secretmem"), GENERATED },	/* memfd_secret() */
	{ NAME("anon_inode:[eventfd]"), STREAM },
	{ NAME("anon_inode:[timerfd]"), SOURCE | FD_OLD_WORKER },
	{ NAME("anon_inode:[signalfd]"), SOURCE | FD_SIGNALS },
	{ NAME("anon_inode:inotify"), SOURCE | FD_WORKER },
	{ NAME("anon_inode:[fanotify]"), SOURCE | FD_WORKER },
	/*
	 * If O_NONBLOCK isn't set, poll(2) reports an error at once. So a read of a
	 * userfaultfd needs a thread to wait.
	 */
	{ NAME("anon_inode:[userfaultfd]"), UNKNOWN | FD_RETURNS_OUT },
	/* Files that can't be read or written, or whose reads never wait. */
	{ NAME("anon_inode:[eventpoll]"), SILENT },
	{ NAME("anon_inode:[io_uring]"), SILENT },
	{ NAME("anon_inode:[perf_event]"), SILENT },
	{ NAME("anon_inode:[pidfd]"), SILENT },
	{ NAME("pidfd:"), SILENT },
	{ NAME("anon_inode:bpf"), SILENT },
	{ NAME("anon_inode:btf"), SILENT },
	{ NAME("anon_inode:[landlock-ruleset]"), SILENT },
	{ NAME("anon_inode:[fscontext]"), SILENT },
	/* Character devices, by number. */
	{ DEVICE(1, 3), FD_POLLS_IN | FD_POLLS_OUT | FD_SEEKS },	/* null */
	{ DEVICE(1, 5), FD_POLLS_IN | FD_POLLS_OUT | FD_SEEKS },	/* zero */
	{ DEVICE(1, 7), STREAM },			/* full */
	{ DEVICE(1, 8), SOURCE },			/* random */
	{ DEVICE(1, 9), SOURCE },			/* urandom */
	{ DEVICE(1, 11), SOURCE | FD_WORKER },		/* kmsg */
	{ DEVICE(10, 200), STREAM },			/* net/tun */
	{ DEVICE(10, 229), STREAM | FD_OLD_WORKER },	/* fuse */
	{ REPLY(TERMINAL_REPLY), FD_TERMINAL | FD_NEVER_SEEKS },
};

/* Returns the facts of the kind that matches; "other" if none matches. */
static uint32_t facts_of(enum found_by by, uint32_t number, const char *name,
			 uint32_t other)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].by == by && kinds[i].number == number &&
		    (by != BY_NAME ||
		     !strncmp(name, kinds[i].name, strlen(kinds[i].name))))
			return kinds[i].facts;
	return other;
}

/* Is the descriptor a terminal, or was it one before it hung up? */
static enum reply ask_terminal(uint32_t fd)
{
	/* The kernel's struct termios is smaller than this. */
	uint64_t mode[16];
	long ret = ask(SYS_ioctl, fd, TCGETS, PTR(mode), 0, 0, 0);

	return !ret || ret == -EIO ? TERMINAL_REPLY : NO_REPLY;
}

/*
 * Is the file a POSIX message queue? Makes the system call only if the attributes could
 * be those of one.
 */
static enum reply ask_queue(uint32_t fd, const struct statx *file)
{
	return !file->stx_dev_major && file->stx_size == QUEUE_SIZE &&
			       !ask(SYS_mq_getsetattr, fd, 0, 0, 0, 0, 0) ?
		       QUEUE_REPLY : NO_REPLY;
}

static uint32_t facts_of_device(uint32_t fd, const struct statx *file)
{
	const uint32_t number = file->stx_rdev_major << 20 |
				file->stx_rdev_minor;
	uint32_t facts = facts_of(BY_DEVICE, number, NULL, 0);

	return facts ? facts :
		       facts_of(BY_REPLY, ask_terminal(fd), NULL, UNKNOWN);
}

static void link_path(uint32_t fd, char path[NAME_ROOM])
{
	char digits[12], *at = digits + sizeof(digits);

	*--at = '\0';
	do {
		*--at = (char)('0' + fd % 10);
		fd /= 10;
	} while (fd);
	strcpy(path, "/proc/thread-self/fd/");
	strcat(path, at);
}

static uint32_t facts_of_name(uint32_t fd, uint32_t other)
{
	char path[NAME_ROOM], name[NAME_ROOM];
	long n;

	link_path(fd, path);
	n = ask(SYS_readlinkat, (uint64_t)AT_FDCWD, PTR(path), PTR(name),
		sizeof(name) - 1, 0, 0);
	name[n > 0 ? n : 0] = '\0';
	return facts_of(BY_NAME, 0, name, other);
}

bool flexsc__kind_on_disk(const struct statx *file)
{
	return S_ISREG(file->stx_mode) &&
	       (file->stx_dev_major || file->stx_blocks);
}

static uint32_t facts_of_regular(uint32_t fd, const struct statx *file)
{
	uint32_t facts;

	if (flexsc__kind_on_disk(file))
		return DISK;
	facts = facts_of(BY_REPLY, ask_queue(fd, file), NULL, 0);
	return facts ? facts : facts_of_name(fd, DISK);
}

/*
 * Doesn't use lseek() to find out whether the file has a position, because lseek()
 * succeeds on some files without one.
 * AT_STATX_DONT_SYNC returns the attributes that the kernel has cached, without
 * querying a file server, which might never answer.
 */
uint32_t flexsc__kind(uint32_t fd)
{
	struct statx file;
	uint32_t facts;

	if (ask(SYS_statx, fd, PTR(""), AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		STATX_TYPE | STATX_SIZE | STATX_BLOCKS, PTR(&file), 0))
		return 0;
	if (S_ISREG(file.stx_mode))
		return facts_of_regular(fd, &file);
	if (S_ISCHR(file.stx_mode))
		return facts_of_device(fd, &file);
	facts = facts_of(BY_TYPE, file.stx_mode & S_IFMT, NULL, 0);
	return facts ? facts : facts_of_name(fd, UNKNOWN);
}

/*
 * Linux (6.18) copies a datagram before it checks whether the receiver has room. If
 * there is no room, io_uring sends the datagram later, but the data was consumed by the
 * first attempt: the datagram is empty.
 */
bool flexsc__kind_loses(uint64_t domain, uint64_t type)
{
	return domain == AF_UNIX && type == SOCK_DGRAM;
}

bool flexsc__kind_waits_to_connect(uint64_t domain)
{
	return domain == AF_UNIX;
}

bool flexsc__kind_has_errors(uint32_t fd)
{
	switch (flexsc__probe_option(fd, SO_DOMAIN)) {
	case AF_INET:
	case AF_INET6:
	case AF_PACKET:
		return true;
	default:
		return false;
	}
}
