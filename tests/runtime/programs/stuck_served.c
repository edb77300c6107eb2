/* SPDX-License-Identifier: MIT */
/*
 * A file system (FUSE) that a thread of the program serves. Calls of other threads hang
 * until that thread continues.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "threads.h"

/* The server answers a close when it may. */
static atomic_bool keeps_closes, keeps_one;
static char mounted[] = "/tmp/flexsc-stuck.XXXXXX";
static int device;

static void reply(uint64_t unique, int err, const void *data, size_t n)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + n), .error = -err,
		.unique = unique,
	};
	struct iovec parts[2] = { { &head, sizeof(head) },
				  { (void *)(uintptr_t)data, n } };

	/* If a signal has ended the call that made the request, the request is gone. */
	CHECK(writev(device, parts, 2) > 0 || errno == ENOENT);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644,
		.nlink = 1, .size = 4, .blksize = 4096,
	};
}

/* A file system in which every name is a file of four bytes. */
static void serve(const struct fuse_in_header *in)
{
	const struct fuse_read_in *read = (const void *)(in + 1);
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31,
				      .max_write = 65536 };
	struct fuse_entry_out entry = { .nodeid = 2, .attr = attributes(2) };
	struct fuse_attr_out attr = { .attr = attributes(in->nodeid) };
	struct fuse_open_out opened = { .open_flags = FOPEN_DIRECT_IO };

	switch (in->opcode) {
	case FUSE_INIT:
		reply(in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		reply(in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		reply(in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		reply(in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		reply(in->unique, 0, "fuse", read->offset ? 0 : 4);
		break;
	case FUSE_FLUSH:
		for (keeps_one = true; keeps_closes;)
			usleep(1000);
		reply(in->unique, 0, NULL, 0);
		break;
	case FUSE_RELEASE:
		reply(in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(in->unique, ENOSYS, NULL, 0);
	}
}

static void *serve_all(void *arg)
{
	static char request[1 << 17];

	while (read(device, request, sizeof(request)) > 0)
		serve((struct fuse_in_header *)request);
	return arg;
}

static bool by_range;

static void *use_files(void *arg)
{
	char path[64], data[8];

	for (int i = 0; i < 10; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%ld", mounted, (long)arg);
		usleep(500);
		fd = open(path, O_RDONLY);
		CHECK(fd >= 0);
		CHECK_EQ(read(fd, data, sizeof(data)), 4);
		CHECK_EQ(memcmp(data, "fuse", 4), 0);
		CHECK_EQ(by_range ? close_range((unsigned int)fd, (unsigned int)fd, 0) :
				    close(fd), 0);
	}
	return NULL;
}

/*
 * A process that outlives the test unmounts the file system when the test is over,
 * or has hung for a while. The unmount ends calls that hang in the file system; no
 * signal would.
 */
static void guard_mount(int over)
{
	struct pollfd fd = { over, POLLIN, 0 };

	setsid();
	poll(&fd, 1, 30000);
	umount2(mounted, MNT_FORCE);
	umount2(mounted, MNT_DETACH);
	rmdir(mounted);
	_exit(0);
}

static int mount_own(void)
{
	char options[128];
	int over[2];

	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0)
		SKIP("/dev/fuse: %s", strerror(errno));
	CHECK(mkdtemp(mounted));
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (mount("flexsc", mounted, "fuse", MS_NOSUID | MS_NODEV, options)) {
		rmdir(mounted);
		SKIP("mount: %s", strerror(errno));
	}
	CHECK_EQ(pipe2(over, O_CLOEXEC), 0);
	if (!fork()) {
		close(device);
		close(over[1]);
		guard_mount(over[0]);
	}
	close(over[0]);
	return over[1];
}

static void use_what_it_serves(void)
{
	int over = mount_own();
	pthread_t server = start(serve_all, NULL);

	run_numbered(8, use_files);
	CHECK_EQ(write(over, "x", 1), 1);
	/* The server's read ends with the unmount. */
	join(server);
}

TEST_LIMIT(a_program_uses_the_file_system_that_it_serves, 40)
{
	use_what_it_serves();
}

/*
 * Without stickiness, threads don't stay on their hosts after their first such call,
 * so close() hangs, too.
 */
TEST_LIMIT(a_program_opens_and_closes_files_that_it_serves_on_carriers, 40)
{
	setenv("FLEXSC_STICKY", "0", 1);
	use_what_it_serves();
}

/* The carriers that replace the hung ones have descriptors of the runtime. */
TEST_LIMIT(a_program_closes_ranges_of_files_that_it_serves, 40)
{
	setenv("FLEXSC_STICKY", "0", 1);
	by_range = true;
	use_what_it_serves();
}

/*
 * A thread closes a range of numbers, and waits for the server meanwhile. Another one
 * writes more than its pipe has room for. The range must not include what the runtime
 * needs for the rest of the write.
 */

enum { MUCH = 1 << 18, ROOM = 1 << 16 };

static void *close_all_from(void *fd)
{
	CHECK_EQ(close_range(*(unsigned int *)fd, ~0U, 0), 0);
	return fd;
}

static void *write_much(void *fd)
{
	static const char much[MUCH];

	CHECK_EQ(write(*(int *)fd, much, MUCH), MUCH);
	return fd;
}

static void await_bytes(int fd, int n)
{
	int there = 0;

	while (there < n) {
		usleep(1000);
		CHECK_EQ(ioctl(fd, FIONREAD, &there), 0);
	}
}

TEST_LIMIT(a_write_is_whole_while_a_range_is_closed, 40)
{
	pthread_t server, closing, writing;
	static char much[MUCH];
	char path[64];
	int over, ends[2], file;

	over = mount_own();
	CHECK_EQ(pipe(ends), 0);
	CHECK_EQ(fcntl(ends[1], F_SETPIPE_SZ, ROOM), ROOM);
	server = start(serve_all, NULL);
	snprintf(path, sizeof(path), "%s/file", mounted);
	file = open(path, O_RDONLY);
	CHECK(file > ends[1]);
	keeps_closes = true;
	closing = start(close_all_from, &file);
	while (!keeps_one)
		usleep(1000);
	writing = start(write_much, &ends[1]);
	await_bytes(ends[0], ROOM);
	/* For 100 ms the runtime waits for the end of the closing. */
	for (int i = 0; i < 15; i++)
		settle();
	keeps_closes = false;
	join(closing);
	for (int left = MUCH, n; left; left -= n) {
		n = (int)read(ends[0], much, (size_t)left);
		CHECK(n > 0);
	}
	join(writing);
	CHECK_EQ(write(over, "x", 1), 1);
	join(server);
}
