/* SPDX-License-Identifier: MIT */
#include "kinds.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "lib/base/ask.h"
#include "probe.h"

#define NAME_ROOM	48	/* bytes of a link's text that matter */
#define QUEUE_SIZE	80	/* of the text that a message queue reads as */

/* Regular files, folders and block devices. */
static const struct kind on_disk = {
	.in = WAITS_NEVER, .out = WAITS_NEVER,
	.has_place = true, .has_offsets = true,
};
/* A POSIX message queue: a path, offsets without a meaning; poll(2) shows messages. */
static const struct kind queue = {
	.in = WAITS_NEVER, .out = WAITS_NEVER, .has_place = true,
};
/* Most of these reject pwrite(). io_uring doesn't look at that, and writes. */
static const struct kind generated = {
	.in = WAITS_NEVER, .out = WAITS_NEVER, .has_place = true,
};
static const struct kind stream = { .in = WAITS_POLLED, .out = WAITS_POLLED };
static const struct kind terminal = {
	.in = WAITS_UNKNOWN, .out = WAITS_UNKNOWN, .is_terminal = true,
};
static const struct kind unknown = {
	.in = WAITS_UNKNOWN, .out = WAITS_UNKNOWN,
};
/* /dev/null and its like: always ready. */
static const struct kind memory = {
	.in = WAITS_POLLED, .out = WAITS_POLLED, .has_offsets = true,
};
/* A userfaultfd without O_NONBLOCK: poll(2) reports an error at once. */
static const struct kind faults = { .in = WAITS_UNKNOWN, .out = WAITS_NEVER };
/* A read waits until poll(2) reports it; a write never waits. */
static const struct kind source = { .in = WAITS_POLLED, .out = WAITS_NEVER };
static const struct kind timer = {
	.in = WAITS_POLLED, .out = WAITS_NEVER, .maker = MADE_BY_OLD_WORKER,
};
static const struct kind events = {
	.in = WAITS_POLLED, .out = WAITS_NEVER, .maker = MADE_BY_WORKER,
};
static const struct kind requests = {
	.in = WAITS_POLLED, .out = WAITS_POLLED, .maker = MADE_BY_OLD_WORKER,
};

static const struct kind signals = {
	.in = WAITS_POLLED, .out = WAITS_NEVER, .has_signals = true,
};
/* Files that can't be read or written, or whose reads never wait. */
static const struct kind silent = { .in = WAITS_NEVER, .out = WAITS_NEVER };

/* Files by the beginnings of their names in /proc/PID/fd. */
static const struct {
	const char *name;
	const struct kind *kind;
} names[] = {
	{ "/proc/", &generated },
	{ "/sys/", &generated },
	{ "/secretmem", &generated },	/* memfd_secret() */
	{ "anon_inode:[eventfd]", &stream },
	{ "anon_inode:[timerfd]", &timer },
	{ "anon_inode:[signalfd]", &signals },
	{ "anon_inode:inotify", &events },
	{ "anon_inode:[fanotify]", &events },
	{ "anon_inode:[userfaultfd]", &faults },
	{ "anon_inode:[eventpoll]", &silent },
	{ "anon_inode:[io_uring]", &silent },
	{ "anon_inode:[perf_event]", &silent },
	{ "anon_inode:[pidfd]", &silent },
	{ "pidfd:", &silent },
	{ "anon_inode:bpf", &silent },
	{ "anon_inode:btf", &silent },
	{ "anon_inode:[landlock-ruleset]", &silent },
	{ "anon_inode:[fscontext]", &silent },
};

/* Devices, by major and minor number. */
static const struct {
	uint32_t major, minor;
	const struct kind *kind;
} devices[] = {
	{ 1, 3, &memory },	/* null */
	{ 1, 5, &memory },	/* zero */
	{ 1, 7, &stream },	/* full */
	{ 1, 8, &source },	/* random */
	{ 1, 9, &source },	/* urandom */
	{ 1, 11, &events },	/* kmsg */
	{ 10, 200, &stream },	/* net/tun */
	{ 10, 229, &requests },	/* fuse */
};

static const struct kind *kind_of_device(uint32_t fd, const struct statx *file)
{
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (devices[i].major == file->stx_rdev_major &&
		    devices[i].minor == file->stx_rdev_minor)
			return devices[i].kind;
	return flexsc__probe_terminal(fd) ? &terminal : &unknown;
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

static const struct kind *kind_of_name(uint32_t fd, const struct kind *other)
{
	char path[NAME_ROOM], name[NAME_ROOM];
	long n;

	link_path(fd, path);
	n = ask(SYS_readlinkat, (uint64_t)AT_FDCWD, PTR(path), PTR(name),
		sizeof(name) - 1, 0, 0);
	name[n > 0 ? n : 0] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i].name, strlen(names[i].name)))
			return names[i].kind;
	return other;
}

/* Costs a system call only if the attributes are those of a queue. */
static bool is_queue(uint32_t fd, const struct statx *file)
{
	return !file->stx_dev_major && file->stx_size == QUEUE_SIZE &&
	       !ask(SYS_mq_getsetattr, fd, 0, 0, 0, 0, 0);
}

bool flexsc__kind_on_disk(const struct statx *file)
{
	return S_ISREG(file->stx_mode) &&
	       (file->stx_dev_major || file->stx_blocks);
}

static const struct kind *kind_of_regular(uint32_t fd, const struct statx *file)
{
	if (flexsc__kind_on_disk(file))
		return &on_disk;
	return is_queue(fd, file) ? &queue : kind_of_name(fd, &on_disk);
}

/*
 * Not by lseek(), which succeeds on some files without a position. The attributes are
 * those that the kernel has: AT_STATX_DONT_SYNC keeps it from asking a file's server,
 * which may not answer.
 */
const struct kind *flexsc__kind(uint32_t fd)
{
	struct statx file;

	if (ask(SYS_statx, fd, PTR(""), AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		STATX_TYPE | STATX_SIZE | STATX_BLOCKS, PTR(&file), 0))
		return NULL;
	switch (file.stx_mode & S_IFMT) {
	case S_IFREG:
		return kind_of_regular(fd, &file);
	case S_IFDIR:
	case S_IFBLK:
		return &on_disk;
	case S_IFIFO:
	case S_IFSOCK:
		return &stream;
	case S_IFCHR:
		return kind_of_device(fd, &file);
	default:
		return kind_of_name(fd, &unknown);
	}
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
