/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* a larger file in /proc/PID/fd isn't read: it can't contain counters */
#define PAGE_MAX	(16 << 20)

static void read_loop(int fd, struct process *process)
{
	const size_t count = process->loops_count + 1;
	struct flexsc_stats_page page, *loops;
	struct flexsc_stats_cores *cores;

	memset(&page, 0, sizeof(page));
	if (pread(fd, &page, sizeof(page), 0) <= 0 ||
	    page.magic != FLEXSC_STATS_MAGIC)
		return;
	loops = realloc(process->loops, count * sizeof(*loops));
	if (!loops)
		return;
	process->loops = loops;
	cores = realloc(process->cores, count * sizeof(*cores));
	if (!cores)
		return;
	process->cores = cores;
	loops += process->loops_count;
	cores += process->loops_count;
	*loops = page;
	memset(cores, 0, sizeof(*cores));
	if (pread(fd, cores, sizeof(*cores), FLEXSC_STATS_CORES) < 0)
		memset(cores, 0, sizeof(*cores));
	process->loops_count++;
}

/* Is the page complete, and does it have this build's layout? */
static bool is_whole(const struct run_page *page, size_t size)
{
	return size >= sizeof(*page) && page->magic == RUN_PAGE_MAGIC &&
	       page->block == sizeof(page->blocks[0]) &&
	       page->room <= PAGE_MAX / sizeof(page->blocks[0]) &&
	       page->carriers <= page->room &&
	       size >= sizeof(*page) + (page->room + RUN_PAGE_HOSTS) *
					       sizeof(page->blocks[0]);
}

static void read_run(int fd, struct process *process)
{
	struct run_page *page;
	struct stat stat;
	ssize_t n;

	if (process->run || fstat(fd, &stat) || stat.st_size <= 0 ||
	    stat.st_size > PAGE_MAX)
		return;
	page = aligned_alloc(64, ((size_t)stat.st_size + 63) / 64 * 64);
	if (!page)
		return;
	n = pread(fd, page, (size_t)stat.st_size, 0);
	if (n > 0 && is_whole(page, (size_t)n))
		process->run = page;
	else
		free(page);
}

/* Examine one descriptor: where does its link in /proc lead? */
static void try(int dir, const char *link, struct process *process)
{
	char target[64];
	ssize_t n = readlinkat(dir, link, target, sizeof(target) - 1);
	bool loop, run;
	int fd;

	if (n < 0)
		return;
	target[n] = '\0';
	loop = strstr(target, "memfd:" FLEXSC_STATS_NAME);
	run = strstr(target, "memfd:" RUN_PAGE_NAME);
	if (!loop && !run)
		return;
	fd = openat(dir, link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	if (loop)
		read_loop(fd, process);
	else
		read_run(fd, process);
	close(fd);
}

int process_read(pid_t pid, struct process *process)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	memset(process, 0, sizeof(*process));
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		try(dirfd(dir), entry->d_name, process);
	closedir(dir);
	return 0;
}

bool process_has_runtime(pid_t pid)
{
	bool found = false;
	char *line = NULL;
	size_t size = 0;
	char path[64];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && !found && getline(&line, &size, maps) > 0)
		found = strstr(line, "/libflexsc-runtime");
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

void process_free(struct process *process)
{
	free(process->loops);
	free(process->cores);
	free(process->run);
}

bool process_is_unused(const struct process *process,
		       const struct flexsc_stats_page *loop)
{
	const struct run_page *run = process->run;

	for (unsigned int i = run ? run->carriers : 0; run && i < run->room; i++)
		if (run->blocks[i].tid == loop->tid)
			return !run->blocks[i].switches;
	return false;
}

uint64_t process_core_calls(const struct process *process, unsigned int loop,
			    unsigned int core)
{
	const struct flexsc_stats_cores *cores = &process->cores[loop];

	return cores->by_thread[core] +
	       (cores->poller == core + 1 ? process->loops[loop].stats.by_uring :
					    0);
}

uint64_t process_loop_calls(const struct process *process)
{
	const struct run_page *run = process->run;
	uint64_t calls = 0;

	for (unsigned int i = 0; i < process->loops_count; i++) {
		const struct flexsc_stats_page *loop = &process->loops[i];

		for (unsigned int j = 0; j < run->room; j++)
			if (run->blocks[j].tid == loop->tid)
				calls += loop->stats.mode_switches;
	}
	return calls;
}
