/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "trap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/raw/report.h"

static bool none(struct bench_trap *trap)
{
	(void)trap;
	return true;
}

static bool make_getppid(struct bench_trap *trap)
{
	return syscall(SYS_getppid) == trap->parent;
}

static bool make_stat(struct bench_trap *trap)
{
	struct stat found;

	return !stat(trap->path, &found) && found.st_size == BENCH_TRAP_PAGE;
}

static bool make_pread(struct bench_trap *trap)
{
	return pread(trap->fd, trap->page, BENCH_TRAP_PAGE, 0) ==
	       BENCH_TRAP_PAGE;
}

static bool make_pwrite(struct bench_trap *trap)
{
	return pwrite(trap->fd, trap->page, BENCH_TRAP_PAGE, 0) ==
	       BENCH_TRAP_PAGE;
}

static bool open_close(struct bench_trap *trap)
{
	int fd = open(trap->path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && !close(fd);
}

static bool mmap_munmap(struct bench_trap *trap)
{
	void *memory = mmap(NULL, BENCH_TRAP_PAGE, PROT_READ,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)trap;
	return memory != MAP_FAILED && !munmap(memory, BENCH_TRAP_PAGE);
}

static bool open_write_close(struct bench_trap *trap)
{
	int fd = open(trap->path, O_WRONLY | O_CLOEXEC);
	bool right;

	if (fd < 0)
		return false;
	right = write(fd, trap->page, BENCH_TRAP_PAGE) == BENCH_TRAP_PAGE;
	return !close(fd) && right;
}

static const struct {
	const char *name;
	bool (*make)(struct bench_trap *trap);
} traps[] = {
	{ "none", none },
	{ "getppid", make_getppid },
	{ "stat", make_stat },
	{ "pread", make_pread },
	{ "pwrite", make_pwrite },
	{ "open-close", open_close },
	{ "mmap-munmap", mmap_munmap },
	{ "open-write-close", open_write_close },
};

static int choose(struct bench_trap *trap, const char *name)
{
	for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++) {
		if (strcmp(traps[i].name, name) != 0)
			continue;
		trap->make = traps[i].make;
		return 0;
	}
	fprintf(stderr, "flexsc: study: call=%s: give none, getppid, stat, "
		"pread, pwrite, open-close, mmap-munmap or open-write-close\n",
		name);
	return 1;
}

int bench_trap_init(struct bench_trap *trap, const char *name)
{
	const char *folder = getenv("TMPDIR");

	memset(trap, 0, sizeof(*trap));
	if (choose(trap, name))
		return 1;
	trap->parent = getppid();
	snprintf(trap->path, sizeof(trap->path), "%s/flexsc-bench-XXXXXX",
		 folder && *folder ? folder : "/tmp");
	trap->fd = mkostemp(trap->path, O_CLOEXEC);
	if (trap->fd < 0)
		return bench_failed(trap->path, -errno);
	if (make_pwrite(trap))
		return 0;
	bench_failed(trap->path, -EIO);
	bench_trap_fini(trap);
	return 1;
}

void bench_trap_fini(struct bench_trap *trap)
{
	close(trap->fd);
	unlink(trap->path);
}

int bench_trap_check(const struct bench_trap *trap)
{
	if (trap->wrong)
		fprintf(stderr, "flexsc: study: %llu calls returned wrong "
				"results\n",
			(unsigned long long)trap->wrong);
	return trap->wrong != 0;
}
