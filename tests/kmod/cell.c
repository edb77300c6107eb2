// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cell.h"
#include "tests/harness/harness.h"

#define FOLDER	"/tmp/cell"
#define NOBODY	65534
#define LIFE	(3 * SECOND)
#define PATIENCE (60 * SECOND)

void cell_init(void)
{
	CHECK(mkdir(FOLDER, 0777) == 0 || errno == EEXIST);
}

static void limit(int what, rlim_t most)
{
	const struct rlimit limits = { most, most };

	CHECK_EQ(setrlimit(what, &limits), 0);
}

/* Makes the process user nobody, in an empty directory, with low resource limits. */
static void confine(void)
{
	CHECK_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	CHECK_EQ(mount("cell", FOLDER, "tmpfs", 0, "size=4m,mode=0777"), 0);
	CHECK_EQ(chdir(FOLDER), 0);
	limit(RLIMIT_NPROC, 64);
	limit(RLIMIT_NOFILE, 64);
	limit(RLIMIT_FSIZE, 1 << 20);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_AS, 512 << 20);
	limit(RLIMIT_MSGQUEUE, 1 << 16);
	CHECK_EQ(syscall(SYS_setgroups, 0, NULL), 0);
	CHECK_EQ(syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY), 0);
	CHECK_EQ(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY), 0);
}

/* Closes the test's descriptors. */
static void close_files(void)
{
	const int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		CHECK_EQ(dup2(null, fd), fd);
	CHECK_EQ(close_range(3, ~0U, 0), 0);
}

/*
 * The first process of a pid namespace. When it ends, all others in the namespace
 * end.
 */
static void contain(void (*inside)(void))
{
	const uint64_t end = now_ns() + LIFE;
	pid_t pid = test_fork();

	if (!pid) {
		confine();
		close_files();
		inside();
		_exit(0);
	}
	/* The process may stop itself. */
	while (now_ns() < end && waitpid(pid, NULL, WNOHANG) == 0)
		usleep(1000);
}

static void reap(pid_t pid)
{
	const uint64_t end = now_ns() + PATIENCE;
	int status;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		CHECK(now_ns() < end);
		usleep(1000);
	}
	CHECK_EQ(status, 0);
}

void cell_run(void (*inside)(void))
{
	pid_t pid = test_fork();

	if (!pid) {
		CHECK_EQ(unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC), 0);
		IN_CHILD {
			contain(inside);
		}
		test_leave();
	}
	reap(pid);
}
