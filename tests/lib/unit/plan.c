/* SPDX-License-Identifier: MIT */
/* How calls wait, depending on the kind of their file: lib/files/plan.h. */
#include "tests/harness/harness.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>

#include "lib/files/plan.h"

#define AT_POSITION	((uint64_t)-1)

static enum waits waits_of(long nr, int fd, uint64_t at, uint64_t flags)
{
	const struct call_info *row = flexsc__call_info((unsigned int)nr);
	struct flexsc_entry entry = { .nr = (uint16_t)nr };

	entry.args[0] = (uint32_t)fd;
	if (row->position_arg)
		entry.args[row->position_arg] = at;
	if (row->flags_arg)
		entry.args[row->flags_arg] = flags;
	return flexsc__plan_waits(row, &entry);
}

static void check(int fd, enum waits reads, enum waits writes)
{
	CHECK(fd >= 0);
	fds_forget((uint32_t)fd);
	CHECK_EQ(waits_of(SYS_read, fd, 0, 0), reads);
	CHECK_EQ(waits_of(SYS_preadv2, fd, AT_POSITION, 0), reads);
	CHECK_EQ(waits_of(SYS_preadv2, fd, 0, 0), reads);
	CHECK_EQ(waits_of(SYS_writev, fd, 0, 0), writes);
	CHECK_EQ(waits_of(SYS_sendfile, fd, 0, 0), writes);
	CHECK_EQ(waits_of(SYS_accept4, fd, 0, 0), reads);
	fds_forget((uint32_t)fd);
	close(fd);
}

TEST(the_kind_of_file_decides_how_calls_wait)
{
	CHECK_EQ(flexsc__plan_init(), 0);
	check(socket(AF_UNIX, SOCK_STREAM, 0), WAITS_POLLED, WAITS_POLLED);
	check(eventfd(0, 0), WAITS_POLLED, WAITS_POLLED);
	check(open("/dev/null", O_RDWR), WAITS_POLLED, WAITS_POLLED);
	check(epoll_create1(0), WAITS_NEVER, WAITS_NEVER);
	check(inotify_init1(0), WAITS_POLLED, WAITS_NEVER);
	check(memfd_create("plan", 0), WAITS_DEVICE, WAITS_DEVICE);
	check(open("/proc/self/stat", O_RDONLY), WAITS_DEVICE, WAITS_DEVICE);
	check(posix_openpt(O_RDWR | O_NOCTTY), WAITS_UNKNOWN, WAITS_UNKNOWN);
}

/* Such a call fails at once, in every way of making it. */
TEST(a_call_on_a_bad_descriptor_counts_as_polled)
{
	CHECK_EQ(waits_of(SYS_read, 999, 0, 0), WAITS_POLLED);
	CHECK_EQ(waits_of(SYS_accept4, 999, 0, 0), WAITS_POLLED);
}

TEST(flags_decide_how_receives_wait)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK_EQ(waits_of(SYS_recvfrom, fd, 0, 0), WAITS_POLLED);
	CHECK_EQ(waits_of(SYS_recvfrom, fd, 0, MSG_WAITALL), WAITS_POLLED);
	CHECK_EQ(waits_of(SYS_recvfrom, fd, 0, MSG_WAITALL | MSG_PEEK),
		 WAITS_OTHER);
	CHECK_EQ(waits_of(SYS_recvmsg, fd, 0, MSG_ERRQUEUE), WAITS_OTHER);
	CHECK_EQ(waits_of(SYS_recvmsg, fd, 0, MSG_OOB), WAITS_OTHER);
	close(fd);
}

TEST(poll_does_not_report_the_events_of_these_calls)
{
	CHECK_EQ(waits_of(SYS_connect, 0, 0, 0), WAITS_OTHER);
	CHECK_EQ(waits_of(SYS_flock, 0, 0, 0), WAITS_OTHER);
	CHECK_EQ(waits_of(SYS_ioctl, 0, 0, 0), WAITS_OTHER);
}
