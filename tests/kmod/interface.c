// SPDX-License-Identifier: MIT
/*
 * The kernel module's own interface: the parts that libflexsc doesn't use, and what
 * the module has to refuse. Runs in a guest, as root.
 */
#include "raw.h"

#include <linux/futex.h>

#include "lib/calls/call_info.h"

#define CALL(...)	(raw_post(&raw, 0, 0, __VA_ARGS__), raw_result(&raw)->ret)

RAW_TEST(a_call_is_executed)
{
	CHECK_EQ(CALL(SYS_getppid), getppid());
	CHECK_EQ(CALL(SYS_close, 12345), -EBADF);
	CHECK_EQ(raw.threads, 0);
}

RAW_TEST_WITH(a_batch_is_executed, 20, 1024, 0)
{
	CHECK_EQ(raw.args.ring_entries, 65536);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 65536; i++)
			raw_post(&raw, i, 0, SYS_getppid);
		raw_collect(&raw, 65536);
		for (uint32_t i = 0; i < 65536; i++)
			CHECK_EQ(raw.entries[i].ret, getppid());
	}
}

RAW_TEST(calls_that_act_on_the_thread_are_refused)
{
	CHECK_EQ(CALL(SYS_gettid), -EOPNOTSUPP);
	CHECK_EQ(CALL(SYS_exit), -EOPNOTSUPP);
	CHECK_EQ(CALL(SYS_clone), -EOPNOTSUPP);
	CHECK_EQ(CALL(SYS_rt_sigreturn), -EOPNOTSUPP);
	CHECK_EQ(CALL(5000), -ENOSYS);
	CHECK_EQ(CALL(65535), -ENOSYS);
}

/*
 * Returns the error with which the module has to refuse the call; 0: it makes the
 * call.
 */
static int64_t refusal(unsigned int nr)
{
	switch (flexsc__call_info(nr)->class) {
	case CLASS_FAST:
	case CLASS_DISK:
	case CLASS_WAIT:
		return 0;
	case CLASS_SELF:
	case CLASS_ADMIN:
	case CLASS_NEVER:
		return -EOPNOTSUPP;
	default:
		return -ENOSYS;
	}
}

/*
 * Calls that are newer than Linux 6.1: the module of an older kernel doesn't know
 * them.
 */
static bool is_newer(unsigned int nr)
{
	const char *name = flexsc__call_info(nr)->name;

	return nr > SYS_set_mempolicy_home_node ||
	       (name && strstr(name, "probe"));
}

/* Returns the call's error, or 0. */
static int64_t plain(unsigned int nr)
{
	long ret = syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L);

	return ret == -1 ? -errno : 0;
}

/*
 * With invalid arguments, each call has to return the error of a plain call. Some
 * calls succeed once (setsid()), so the plain call is made twice.
 */
RAW_TEST(only_calls_that_the_table_allows_are_executed)
{
	int executed = 0;
	int64_t expected, ret;

	for (unsigned int nr = 0; nr < 1024; nr++) {
		expected = refusal(nr);
		if (!expected) {
			executed++;
			plain(nr);
			expected = plain(nr);
		}
		ret = CALL(nr, -1, -1, -1, -1, -1, -1);
		if (expected == -EOPNOTSUPP && is_newer(nr) && ret == -ENOSYS)
			continue;
		if ((ret < 0 ? ret : 0) != expected)
			printf("# call %u, %s\n", nr,
			       flexsc__call_info(nr)->name);
		CHECK_EQ(ret < 0 ? ret : 0, expected);
	}
	CHECK(executed > 200);
}

RAW_TEST(a_futex_with_an_owner_is_refused)
{
	static const int with_owner[] = {
		FUTEX_LOCK_PI, FUTEX_LOCK_PI2, FUTEX_UNLOCK_PI,
		FUTEX_TRYLOCK_PI, FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI,
	};
	uint32_t word = 0;

	for (size_t i = 0; i < sizeof(with_owner) / sizeof(int); i++)
		for (int flags = 0; flags <= FUTEX_PRIVATE_FLAG;
		     flags += FUTEX_PRIVATE_FLAG)
			CHECK_EQ(CALL(SYS_futex, &word,
				      (with_owner[i] | flags), 0),
				 -EOPNOTSUPP);
	CHECK_EQ(word, 0);
	CHECK_EQ(CALL(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1), 0);
	CHECK_EQ(CALL(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1), -EAGAIN);
}

/* A syscall thread blocks in a read of entry 0. */
static void block_a_thread(char *byte)
{
	raw_thread(&raw);
	raw_await_sleepers();
	raw_post(&raw, 0, FLEXSC_DEFER, SYS_read, fds[0], byte, 1);
	raw_kick(&raw);
	while (raw_shown(NULL, " blocked ") != 1)
		usleep(1000);
	CHECK_EQ(raw.entries[0].ret, FLEXSC_BLOCKED);
}

/* The library closes descriptors that such a call uses without waiting for it. */
RAW_TEST(a_call_that_has_blocked_is_marked)
{
	char byte;

	block_a_thread(&byte);
	CHECK_EQ(raw.entries[0].status, FLEXSC_BUSY);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(raw_result(&raw)->ret, 1);
}

/*
 * The entry's next call hasn't looked up its descriptors yet. No thread is left that
 * could make that call.
 */
RAW_TEST(a_call_that_is_made_again_is_not_marked)
{
	char byte;

	block_a_thread(&byte);
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_END), 0);
	/* The entry isn't cancelled, so its interrupted call has to be made again. */
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_CANCEL, 0), 0);
	while (atomic_load(&raw.threads))
		usleep(1000);
	CHECK_EQ(raw.entries[0].status, FLEXSC_SUBMITTED);
	CHECK_EQ(raw.entries[0].ret, 0);
}

TEST(a_failed_registration_has_no_effect)
{
	struct flexsc_register *args = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fd = open("/dev/flexsc", O_RDWR | O_CLOEXEC);

	CHECK(args != MAP_FAILED && fd >= 0);
	*args = (struct flexsc_register){
		.size = sizeof(*args), .abi = FLEXSC_ABI_VERSION, .pages = 1,
	};
	CHECK_EQ(mprotect(args, 4096, PROT_READ), 0);
	CHECK(ioctl(fd, FLEXSC_IOC_REGISTER, args) == -1 && errno == EFAULT);
	CHECK(ioctl(fd, FLEXSC_IOC_WAKE) == -1 && errno == ENOTCONN);
	CHECK_EQ(mprotect(args, 4096, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(ioctl(fd, FLEXSC_IOC_REGISTER, args), 0);
	CHECK_EQ(close(fd), 0);
}

RAW_TEST(aside_is_for_a_syscall_thread)
{
	char byte = 0;

	raw_post(&raw, 0, DEFER, SYS_read, fds[0], &byte, 1);
	raw_post(&raw, 1, 0, SYS_getppid);
	CHECK(raw_result(&raw) == &raw.entries[1]);
	CHECK_EQ(raw_wait(&raw, 50 * MS), 0);
	CHECK_EQ(raw_take(&raw), FLEXSC_NO_ENTRY);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK(raw_result(&raw) == &raw.entries[0]);
	CHECK_EQ(raw.entries[0].ret, 1);
	CHECK_EQ(byte, 'x');
}

RAW_TEST_WITH(many_block_at_once, 20, 8, 0)
{
	enum { COUNT = 256 };
	static char bytes[COUNT];
	int fds[COUNT][2];

	for (uint32_t i = 0; i < COUNT; i++) {
		CHECK_EQ(pipe(fds[i]), 0);
		raw_post(&raw, i, DEFER, SYS_read, fds[i][0], &bytes[i], 1);
	}
	CHECK_EQ(raw_wait(&raw, 500 * MS), 0);
	CHECK_EQ(raw_reap(&raw), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		CHECK_EQ(write(fds[COUNT - 1 - i][1], "y", 1), 1);
	raw_collect(&raw, COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		CHECK_EQ(raw.entries[i].ret, 1);
		CHECK_EQ(bytes[i], 'y');
	}
}

static bool is_refused(int fd, unsigned long number, void *args, int error)
{
	return ioctl(fd, number, args) == -1 && errno == error;
}

#define REGISTER(...)							\
	((struct flexsc_register){ .size = sizeof(struct flexsc_register), \
				   .abi = FLEXSC_ABI_VERSION, __VA_ARGS__ })

TEST(bad_registrations_are_refused)
{
	struct flexsc_register good = REGISTER(.pages = 1), bads[] = {
		good, good, good, good,
		REGISTER(.pages = 1, .flags = 0x80),
		REGISTER(.pages = 1, .reserved[2] = 1),
	};
	int fd = open("/dev/flexsc", O_RDWR | O_CLOEXEC);

	CHECK(is_refused(fd, FLEXSC_IOC_KICK, NULL, ENOTCONN));
	bads[0].size = 4096;
	CHECK(is_refused(fd, FLEXSC_IOC_REGISTER, &bads[0], E2BIG));
	bads[0].size = 8;
	bads[1].abi = 99;
	CHECK(is_refused(fd, FLEXSC_IOC_REGISTER, &bads[1], EPROTONOSUPPORT));
	bads[1].abi = FLEXSC_ABI_VERSION;
	bads[1].pages = 0;
	bads[2].pages = 3;
	bads[3].pages = FLEXSC_PAGES_MAX * 2;
	for (int i = 0; i < 6; i++)
		CHECK(is_refused(fd, FLEXSC_IOC_REGISTER, &bads[i], EINVAL));
	CHECK_EQ(ioctl(fd, FLEXSC_IOC_REGISTER, &good), 0);
	good = REGISTER(.pages = 1);
	CHECK_EQ(ioctl(fd, FLEXSC_IOC_REGISTER, &good), -1);
	close(fd);
}

/* With the pages, a child would post calls of its parent. */
RAW_TEST(a_child_does_not_have_the_pages)
{
	unsigned char here;

	CHECK_EQ(mincore(raw.shared, 4096, &here), 0);
	IN_CHILD
		CHECK(mincore(raw.shared, 4096, &here) && errno == ENOMEM);
}

/*
 * udev gives the device to a group. The test reads the default mode, because the
 * guest's root may have changed the actual one.
 */
TEST(the_device_is_for_a_group_only)
{
	char text[256];
	ssize_t n;
	int fd = open("/sys/class/misc/flexsc/uevent", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	CHECK(n > 0);
	text[n] = '\0';
	CHECK(strstr(text, "DEVMODE=0660\n"));
	close(fd);
}

RAW_TEST(bad_threads_are_refused)
{
	struct flexsc_serve good = { FLEXSC_NO_ENTRY, 0, 0, -1, 0 }, bad = good;

	bad.flags = 0x80;
	CHECK(is_refused(raw.fd, FLEXSC_IOC_SERVE, &bad, EINVAL));
	bad = good;
	bad.reserved = 1;
	CHECK(is_refused(raw.fd, FLEXSC_IOC_SERVE, &bad, EINVAL));
	/* A thread can't continue with an entry that it has never taken. */
	CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_END), 0);
	for (uint32_t i = 0; i < 128; i++) {
		bad = good;
		bad.index = i;
		CHECK_EQ(ioctl(raw.fd, FLEXSC_IOC_SERVE, &bad), FLEXSC_SERVE_END);
	}
	CHECK_EQ(raw_take(&raw), FLEXSC_NO_ENTRY);
}

TEST(memory_is_limited)
{
	struct flexsc_register args = REGISTER(.pages = 1024);
	struct rlimit none = { 65536, 65536 };
	int fd = open("/dev/flexsc", O_RDWR | O_CLOEXEC);

	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	/* Root may lock any amount of memory, and other users may not. */
	CHECK_EQ(syscall(SYS_setresuid, 1000, 1000, 1000), 0);
	CHECK(is_refused(fd, FLEXSC_IOC_REGISTER, &args, ENOMEM));
	args.pages = 8;
	CHECK_EQ(ioctl(fd, FLEXSC_IOC_REGISTER, &args), 0);
	close(fd);
}
