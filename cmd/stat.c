/* SPDX-License-Identifier: MIT */
/*
 * flexsc stat: the counters of a live process. Shows those of the runtime, if
 * the process is under flexsc run, and those of each loop.
 */
#include <errno.h>
#include <flexsc/stats.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/counters/report.h"
#include "command.h"
#include "process.h"

static const char usage[] =
	"usage: flexsc stat PID\n"
	"\n"
	"Prints the counters of a live process: those of its user threads and\n"
	"their calls, if it is under flexsc run, and those of each loop, its own\n"
	"and the carriers'.\n";

static const struct {
	size_t offset;
	const char *name;
	const char *meaning;
} counters[] = {
#define COUNTER(field, meaning) \
	{ offsetof(struct flexsc_stats, field), #field, meaning }
	COUNTER(posted, "calls posted"),
	COUNTER(completed, "calls whose result was consumed"),
	COUNTER(cancelled, "completed calls that were cancelled"),
	COUNTER(failed_unseen, "calls without a callback that failed"),
	COUNTER(waited, "calls that waited for an entry"),
	COUNTER(by_inline, "calls run inline by the loop's thread"),
	COUNTER(by_uring, "calls run by io_uring"),
	COUNTER(by_thread, "calls run by a syscall thread"),
	COUNTER(by_kmod, "calls run by the kernel module"),
	COUNTER(batches, "batches"),
	COUNTER(mode_switches, "system calls made by the library"),
	COUNTER(timers, "timers and deadlines armed"),
	COUNTER(wakeups, "times the loop slept"),
	COUNTER(outstanding, "calls outstanding now"),
	COUNTER(waiting, "calls waiting for an entry now"),
	COUNTER(entries, "entries now"),
	COUNTER(max_entries, "maximum number of entries"),
	COUNTER(threads, "syscall threads now"),
	COUNTER(max_threads, "maximum number of syscall threads"),
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
	printf("  %-14s %16.4f  system calls per completed call\n", "switches",
	       ratio(stats->mode_switches, stats->completed));
}

static void print_run(const struct process *process)
{
	static char text[REPORT_BYTES];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	flexsc__report(text, sizeof(text), process->run,
		       process_loop_calls(process),
		       (uint64_t)now.tv_sec * 1000000000 +
			       (uint64_t)now.tv_nsec);
	fputs(text, stdout);
}

static int stat_process(const char *name, pid_t pid)
{
	struct process process;
	int err = process_read(pid, &process);

	if (err) {
		if (err == -ENOENT)
			fprintf(stderr, "flexsc: no such process: %s\n", name);
		else
			fprintf(stderr, "flexsc: process %s: %s\n", name,
				strerror(-err));
		return 1;
	}
	if (process.run)
		print_run(&process);
	for (unsigned int i = 0; i < process.loops_count; i++)
		if (!process_is_unused(&process, &process.loops[i]))
			print(&process.loops[i]);
	err = !process.run && !process.loops_count;
	if (err)
		fprintf(stderr, process_has_runtime(pid) ?
			"flexsc: process %s has no counters, because it has "
			"made no threads\n" :
			"flexsc: process %s has no counters, because it isn't "
			"under flexsc run and has no loop\n", name);
	process_free(&process);
	return err;
}

int command_stat(int argc, char **argv)
{
	char *end;
	long pid;

	if (argc == 2 && (!strcmp(argv[1], "--help") ||
			  !strcmp(argv[1], "-h"))) {
		fputs(usage, stdout);
		return 0;
	}
	pid = argc == 2 ? strtol(argv[1], &end, 10) : 0;
	if (pid <= 0 || *end) {
		fputs(usage, stderr);
		return 2;
	}
	/* Process numbers fit in an int. */
	if (pid > INT_MAX)
		pid = INT_MAX;
	return stat_process(argv[1], (pid_t)pid);
}
