/* SPDX-License-Identifier: MIT */
/*
 * The loop's openat() opens files, and then reads them without a query of their
 * kind. For every kind of file, the result is that of the plain call.
 */
#include "tests/harness/harness.h"

#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <pty.h>
#include <termios.h>

#define LARGE	300000U

static int open_by_loop(const char *path, int flags)
{
	int64_t fd = DO(loop, SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);

	CHECK(fd >= 0);
	return (int)fd;
}

static char byte_at(size_t i)
{
	return (char)(i / 4096 + i * 7);
}

static void make_file(const char *path, size_t size)
{
	char *bytes = malloc(size);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | O_TRUNC, 0600);

	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_at(i);
	CHECK_EQ(write(fd, bytes, size), (int64_t)size);
	CHECK_EQ(fsync(fd), 0);
	/* Removes as much of the file from memory as the kernel agrees to. */
	CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	free(bytes);
}

/* Brings a page in the middle into memory. Others needn't be there. */
static void touch(const char *path, off_t at)
{
	char byte;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
	CHECK_EQ(pread(fd, &byte, 1, at), 1);
	close(fd);
}

static void check_bytes(const char *got, size_t at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(got[i], byte_at(at + i));
}

/* Reads the whole file in pieces of this size, until the end is reported. */
static void read_in_pieces(size_t size, size_t piece, bool at_offset)
{
	char *got = calloc(1, piece);
	int fd = open_by_loop("f", O_RDONLY);
	size_t at = 0, want;
	int64_t n;

	do {
		want = size - at < piece ? size - at : piece;
		n = at_offset ? DO(loop, SYS_pread64, fd, got, piece, at) :
				DO(loop, SYS_read, fd, got, piece);
		CHECK_EQ(n, (int64_t)want);
		check_bytes(got, at, want);
		at += want;
	} while (n);
	if (!at_offset)
		CHECK_EQ(lseek(fd, 0, SEEK_CUR), (off_t)size);
	CHECK_EQ(DO(loop, SYS_close, fd), 0);
	free(got);
}

LOOP_TEST(files_are_read_to_their_ends)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 65536, LARGE };
	static const size_t pieces[] = { 1000, 4096, 65536, 2 * LARGE };

	enter_scratch();
	for (unsigned int s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (unsigned int p = 0; p < 4; p++) {
			make_file("f", sizes[s]);
			if (sizes[s])
				touch("f", 0);
			if (sizes[s] > 8192)
				touch("f", 8192);
			read_in_pieces(sizes[s], pieces[p], false);
			read_in_pieces(sizes[s], pieces[p], false);
			read_in_pieces(sizes[s], pieces[p], true);
		}
}

/* Calls use the file's position at the same time. Each byte is read once. */
static void read_together(bool seeks)
{
	enum { READS = 40, PIECE = 5000 };
	static char got[READS][PIECE];
	static bool seen[READS * PIECE / 1000];
	struct call calls[READS], other = CALL_INIT;
	int fd = open_by_loop("f", O_RDONLY);

	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < READS; i++) {
		calls[i] = (struct call)CALL_INIT;
		POST(loop, &calls[i], SYS_read, fd, got[i], PIECE);
		if (seeks && i == READS / 2)
			POST(loop, &other, SYS_lseek, fd, 0, SEEK_CUR);
	}
	for (unsigned int i = 0; i < READS; i++) {
		size_t at = 0;

		CHECK_EQ(await_call(loop, &calls[i]), PIECE);
		while (at < READS * PIECE && got[i][0] != byte_at(at))
			at += PIECE;
		while (at < READS * PIECE && (seen[at / 1000] ||
		       memcmp(got[i], &(char[]){ byte_at(at), byte_at(at + 1),
						 byte_at(at + 2) }, 3)))
			at += PIECE;
		CHECK(at < READS * PIECE);
		check_bytes(got[i], at, PIECE);
		seen[at / 1000] = true;
	}
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), READS * PIECE);
	if (seeks)
		CHECK_EQ(await_call(loop, &other) % PIECE, 0);
	CHECK_EQ(DO(loop, SYS_close, fd), 0);
}

LOOP_TEST(reads_at_the_same_time_share_a_position)
{
	enter_scratch();
	make_file("f", LARGE);
	for (unsigned int i = 0; i < 10; i++)
		read_together(i % 2);
}

/*
 * Imitates Linux before 5.13 when results have no room: io_uring takes requests only
 * from an owner that also takes results. Waking the poller is never refused.
 */
static void refuse_to_submit_only(void)
{
	filter_argument(SYS_io_uring_enter, 3, BPF_JSET,
			IORING_ENTER_GETEVENTS | IORING_ENTER_SQ_WAKEUP,
			SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EBUSY);
}

/* A thread begins to read a large piece while a read by io_uring is pending. */
LOOP_TEST(reads_share_a_position_while_the_kernel_takes_no_requests)
{
	enum { PIECE = 4 << 20 };
	char *bytes = calloc(2, PIECE), *got[2] = { bytes, bytes + PIECE };
	struct call calls[2];
	int fd;

	enter_scratch();
	memset(got[1], 1, PIECE);
	fd = open("f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK_EQ(write(fd, bytes, 2 * PIECE), 2 * PIECE);
	CHECK_EQ(close(fd), 0);
	refuse_to_submit_only();
	for (int round = 0; round < 10; round++) {
		fd = open_by_loop("f", O_RDONLY);
		for (int i = 0; i < 2; i++) {
			calls[i] = (struct call)CALL_INIT;
			POST(loop, &calls[i], SYS_read, fd, got[i], PIECE);
		}
		for (int i = 0; i < 2; i++)
			CHECK_EQ(await_call(loop, &calls[i]), PIECE);
		CHECK_EQ(got[0][0] + got[1][0], 1);
		CHECK_EQ(lseek(fd, 0, SEEK_CUR), 2 * PIECE);
		CHECK_EQ(DO(loop, SYS_close, fd), 0);
	}
	free(bytes);
}

LOOP_TEST(a_position_that_was_moved_is_used)
{
	char got[8];
	int fd, copy;

	enter_scratch();
	make_file("f", LARGE);
	fd = open_by_loop("f", O_RDONLY);
	CHECK_EQ(DO(loop, SYS_lseek, fd, 5000, SEEK_SET), 5000);
	CHECK_EQ(DO(loop, SYS_read, fd, got, 8), 8);
	check_bytes(got, 5000, 8);
	copy = (int)DO(loop, SYS_dup, fd);
	CHECK_EQ(DO(loop, SYS_read, copy, got, 8), 8);
	check_bytes(got, 5008, 8);
	CHECK_EQ(DO(loop, SYS_read, fd, got, 8), 8);
	check_bytes(got, 5016, 8);
	fd = open_by_loop("f", O_RDWR);
	CHECK_EQ(DO(loop, SYS_write, fd, "abc", 3), 3);
	CHECK_EQ(DO(loop, SYS_read, fd, got, 8), 8);
	check_bytes(got, 3, 8);
}

/* The library doesn't see this move, so a short read may not be at the end. */
LOOP_TEST(a_position_that_was_moved_plainly_is_used)
{
	static const off_t places[] = { 1, 4095, 5000, 12287 };
	static char got[LARGE];

	enter_scratch();
	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const off_t at = places[i];
		int fd;

		make_file("f", LARGE);
		touch("f", at);
		fd = open_by_loop("f", O_RDONLY);
		CHECK_EQ(lseek(fd, at, SEEK_SET), at);
		CHECK_EQ(DO(loop, SYS_read, fd, got, LARGE), LARGE - at);
		check_bytes(got, (size_t)at, LARGE - (size_t)at);
		CHECK_EQ(DO(loop, SYS_read, fd, got, LARGE), 0);
		CHECK_EQ(DO(loop, SYS_close, fd), 0);
	}
}

/* Is the byte's page in memory? */
static bool is_resident(int fd, off_t at)
{
	unsigned char seen;
	off_t page = at & ~(off_t)(getpagesize() - 1);
	void *map = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, page);

	CHECK(map != MAP_FAILED);
	CHECK_EQ(mincore(map, 1, &seen), 0);
	munmap(map, 1);
	return seen & 1;
}

/* After this advice, a read brings one page into memory, and none behind it. */
LOOP_TEST(the_program_s_advice_stays_in_effect)
{
	char byte;
	int fd;

	enter_scratch();
	make_file("f", LARGE);
	touch("f", LARGE / 2);
	fd = open_by_loop("f", O_RDONLY);
	if (is_resident(fd, LARGE - 1))
		SKIP("files are always in memory here");
	CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
	CHECK_EQ(DO(loop, SYS_pread64, fd, &byte, 1, LARGE / 2), 1);
	CHECK_EQ(pread(fd, &byte, 1, 0), 1);
	CHECK(is_resident(fd, 0));
	CHECK(!is_resident(fd, getpagesize()));
}

LOOP_TEST(fifos_opened_by_name_wait)
{
	struct call reader = CALL_INIT, late = CALL_INIT;
	char got[8] = "";
	int fd;

	enter_scratch();
	CHECK_EQ(mkfifo("fifo", 0600), 0);
	/* The FIFO has a writer already, so that the loop's open doesn't wait. */
	fd = open("fifo", O_RDWR | O_CLOEXEC);
	CHECK_EQ(write(fd, "one", 3), 3);
	{
		int own = open_by_loop("fifo", O_RDONLY);

		CHECK_EQ(DO(loop, SYS_pread64, own, got, 8, 0), -ESPIPE);
		CHECK_EQ(DO(loop, SYS_read, own, got, 8), 3);
		CHECK(!memcmp(got, "one", 3));
		/* A read in packet mode takes one packet. */
		CHECK_EQ(fcntl(fd, F_SETFL, O_DIRECT), 0);
		CHECK_EQ(write(fd, "1", 1), 1);
		CHECK_EQ(write(fd, "22", 2), 2);
		CHECK_EQ(DO(loop, SYS_close, own), 0);
		own = open_by_loop("fifo", O_RDONLY);
		CHECK_EQ(DO(loop, SYS_read, own, got, 8), 1);
		CHECK_EQ(DO(loop, SYS_read, own, got, 8), 2);
		if (strcmp(test_engine(), "sync")) {
			POST(loop, &late, SYS_read, own, got, 8);
			CHECK_EQ(flexsc_loop_deadline(loop, &late.cb, 5 * MS), 0);
			CHECK_EQ(await_call(loop, &late), -ETIME);
			POST(loop, &reader, SYS_read, own, got, 8);
			run_for(loop, 10);
			CHECK_EQ(reader.runs, 0);
			CHECK_EQ(write(fd, "two", 3), 3);
			CHECK_EQ(await_call(loop, &reader), 3);
			CHECK(!memcmp(got, "two", 3));
		}
		CHECK_EQ(DO(loop, SYS_close, own), 0);
	}
}

/*
 * A terminal has a time limit that poll() doesn't show, and ends reads at a line's
 * end.
 */
LOOP_TEST(terminals_opened_by_name_are_terminals)
{
	struct termios settings;
	char got[8], path[64];
	int master, slave, own;

	CHECK_EQ(openpty(&master, &slave, path, NULL, NULL), 0);
	CHECK_EQ(write(master, "ab\ncd\n", 6), 6);
	own = open_by_loop(path, O_RDONLY | O_NOCTTY);
	CHECK_EQ(DO(loop, SYS_read, own, got, 8), 3);
	CHECK_EQ(DO(loop, SYS_pread64, own, got, 8, 0), -ESPIPE);
	CHECK_EQ(DO(loop, SYS_read, own, got, 8), 3);
	CHECK_EQ(DO(loop, SYS_close, own), 0);
	CHECK_EQ(tcgetattr(slave, &settings), 0);
	settings.c_lflag &= ~(tcflag_t)ICANON;
	settings.c_cc[VMIN] = 0;
	settings.c_cc[VTIME] = 1;
	CHECK_EQ(tcsetattr(slave, TCSANOW, &settings), 0);
	own = open_by_loop(path, O_RDONLY | O_NOCTTY);
	CHECK_EQ(DO(loop, SYS_read, own, got, 8), 0);
}

LOOP_TEST(other_things_opened_by_name_are_read)
{
	static const char *const paths[] = {
		"/dev/null", "/dev/zero", "/proc/self/cmdline", "/proc/mounts",
		"/sys/kernel/mm/transparent_hugepage/enabled", "/",
	};

	for (unsigned int i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char got[2][64] = { { 0 } };
		int plain = open(paths[i], O_RDONLY | O_CLOEXEC), own;

		if (plain < 0)
			continue;
		own = open_by_loop(paths[i], O_RDONLY);
		for (unsigned int k = 0; k < 3; k++) {
			CHECK_EQ(DO(loop, SYS_read, own, got[0], 64),
				 PLAIN(SYS_read, plain, got[1], 64));
			CHECK(!memcmp(got[0], got[1], 64));
			CHECK_EQ(DO(loop, SYS_pread64, own, got[0], 64, 3),
				 PLAIN(SYS_pread64, plain, got[1], 64, 3));
			CHECK(!memcmp(got[0], got[1], 64));
		}
		CHECK_EQ(DO(loop, SYS_pread64, own, got[0], 64, -1), -EINVAL);
		CHECK_EQ(DO(loop, SYS_close, own), 0);
		close(plain);
	}
}

/* The cost of 3000 files, of which 64 are open at a time. */
#define FILES	3000U
#define AT_ONCE	64U

static unsigned int left;
static bool at_offset;

static struct job {
	struct flexsc_cb cb;
	int fd, step;
	char bytes[512];
} jobs[AT_ONCE];

static void step(struct flexsc_cb *cb)
{
	struct job *job = cb->arg;

	CHECK(cb->ret >= 0);
	switch (job->step++) {
	case 0:
		if (!left)
			return;
		left--;
		CHECK_EQ(flexsc_loop_openat(loop, cb, AT_FDCWD, "f", O_RDONLY, 0),
			 0);
		break;
	case 1:
		job->fd = (int)cb->ret;
		if (at_offset)
			flexsc_loop_pread64(loop, cb, job->fd, job->bytes, 512, 0);
		else
			flexsc_loop_read(loop, cb, job->fd, job->bytes, 512);
		break;
	default:
		CHECK_EQ(cb->ret, 100);
		check_bytes(job->bytes, 0, 100);
		job->step = 0;
		flexsc_loop_close(loop, cb, job->fd);
	}
}

static uint64_t cost_of_files(void)
{
	uint64_t before = stats_of(loop).mode_switches;

	left = FILES;
	for (unsigned int i = 0; i < AT_ONCE; i++) {
		jobs[i] = (struct job){ .cb = { .callback = step, .arg = &jobs[i] } };
		step(&jobs[i].cb);
	}
	CHECK_EQ(flexsc_loop_run(loop), 0);
	return stats_of(loop).mode_switches - before;
}

LOOP_TEST(files_cost_few_system_calls)
{
	enter_scratch();
	make_file("f", 100);
	touch("f", 0);
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t n;

		at_offset = i;
		n = cost_of_files();
		test_note("%s: %lu mode switches", i ? "pread64" : "read",
			  (unsigned long)n);
		/* The first reads of a file may have to update its access time. */
		if (!strcmp(test_engine(), "uring"))
			CHECK(n <= 500);
		n = cost_of_files();
		test_note("%lu the second time", (unsigned long)n);
		if (!strcmp(test_engine(), "uring"))
			CHECK(n <= 300);
	}
}
