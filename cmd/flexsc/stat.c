/* SPDX-License-Identifier: MIT */
/*
 * flexsc stat: the counters of a live process. Its loops publish them in
 * memfds, which are found among its descriptors and read, never written.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <flexsc/stats.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

static const char usage[] =
	"usage: flexsc stat PID\n\n"
	"Prints what each loop of a live process has done since it was made.\n";

static const struct {
	size_t offset;
	const char *name;
	const char *meaning;
} counters[] = {
#define COUNTER(field, meaning) \
	{ offsetof(struct flexsc_stats, field), #field, meaning }
	COUNTER(posted, "calls posted"),
	COUNTER(completed, "calls whose result was consumed"),
	COUNTER(cancelled, "of those, ended early on request"),
	COUNTER(waited, "calls that waited for an entry"),
	COUNTER(by_inline, "calls run inline by the loop's thread"),
	COUNTER(by_uring, "calls run by io_uring"),
	COUNTER(by_thread, "calls run by a syscall thread"),
	COUNTER(batches, "batches"),
	COUNTER(mode_switches, "system calls made by the library"),
	COUNTER(timers, "timers and deadlines armed"),
	COUNTER(wakeups, "times the loop slept"),
	COUNTER(outstanding, "calls outstanding now"),
	COUNTER(waiting, "calls waiting for an entry now"),
	COUNTER(entries, "entries now"),
	COUNTER(max_entries, "entries at most"),
	COUNTER(threads, "syscall threads now"),
	COUNTER(max_threads, "syscall threads at most"),
	COUNTER(bytes, "bytes of memory for calls"),
};

#define COUNTERS	(sizeof(counters) / sizeof(counters[0]))

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static void print(const struct flexsc_stats_page *page)
{
	const struct flexsc_stats *stats = &page->stats;

	printf("loop of thread %d, engine %.*s\n", page->tid,
	       (int)sizeof(page->engine), page->engine);
	for (size_t i = 0; i < COUNTERS; i++) {
		uint64_t value;

		memcpy(&value, (const char *)stats + counters[i].offset,
		       sizeof(value));
		printf("  %-14s %16" PRIu64 "  %s\n", counters[i].name, value,
		       counters[i].meaning);
	}
	printf("  %-14s %16.2f  calls a batch\n", "mean batch",
	       ratio(stats->batched, stats->batches));
	printf("  %-14s %16.4f  system calls a completed call\n", "switches",
	       ratio(stats->mode_switches, stats->completed));
}

/* Does the descriptor, a link in /proc, lead to counters? Print them. */
static int try(const char *link)
{
	struct flexsc_stats_page page;
	char target[64];
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	int fd;

	if (n < 0)
		return 0;
	target[n] = '\0';
	if (!strstr(target, "memfd:" FLEXSC_STATS_NAME))
		return 0;
	fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	memset(&page, 0, sizeof(page));
	n = pread(fd, &page, sizeof(page), 0);
	close(fd);
	if (n <= 0 || page.magic != FLEXSC_STATS_MAGIC)
		return 0;
	print(&page);
	return 1;
}

static int stat_process(const char *pid)
{
	char path[64], link[128];
	struct dirent *entry;
	int loops = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	if (!dir) {
		fprintf(stderr, "flexsc: process %s: %s\n", pid,
			errno == ENOENT ? "there is none" : strerror(errno));
		return 1;
	}
	while ((entry = readdir(dir))) {
		if (snprintf(link, sizeof(link), "%s/%.32s", path,
			     entry->d_name) < (int)sizeof(link))
			loops += try(link);
	}
	closedir(dir);
	if (!loops)
		fprintf(stderr, "flexsc: process %s has no loop\n", pid);
	return !loops;
}

int command_stat(int argc, char **argv)
{
	char *end;

	if (argc == 2 && (!strcmp(argv[1], "--help") ||
			  !strcmp(argv[1], "-h"))) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc != 2 || strtol(argv[1], &end, 10) <= 0 || *end) {
		fputs(usage, stderr);
		return 2;
	}
	return stat_process(argv[1]);
}
