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
#include "serve/exposition.h"
#include "command.h"
#include "process.h"

static const char usage[] =
	"usage: flexsc stat [--prometheus] PID\n"
	"\n"
	"Prints the counters of a live process: those of its user threads and\n"
	"their calls, if it is under flexsc run, and those of each loop, including\n"
	"the loops of carriers. With --prometheus, in Prometheus' text format.\n";

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static void print_cores(const struct process *process, unsigned int loop)
{
	for (unsigned int i = 0; i < FLEXSC_STATS_CORES_MAX; i++) {
		const uint64_t calls = process_core_calls(process, loop, i);

		if (calls)
			printf("  core %-9u %16" PRIu64 "  calls executed there\n",
			       i, calls);
	}
}

static void print(const struct process *process, unsigned int loop)
{
	const struct flexsc_stats_page *page = &process->loops[loop];
	const struct flexsc_stats *stats = &page->stats;

	printf("loop of thread %d, engine %.*s\n", page->tid,
	       (int)sizeof(page->engine), page->engine);
	for (size_t i = 0; i < LOOP_COUNTERS; i++)
		printf("  %-14s %16" PRIu64 "  %s\n", loop_counters[i].name,
		       loop_counter_value(&loop_counters[i], stats),
		       loop_counters[i].meaning);
	print_cores(process, loop);
	printf("  %-14s %16.2f  calls per batch\n", "mean batch",
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

/* Remove the loops of spare carriers that have never run anything. */
static void drop_unused(struct process *process)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < process->loops_count; i++)
		if (!process_is_unused(process, &process->loops[i])) {
			process->cores[n] = process->cores[i];
			process->loops[n++] = process->loops[i];
		}
	process->loops_count = n;
}

static void print_text(struct process *process)
{
	if (process->run)
		print_run(process);
	drop_unused(process);
	for (unsigned int i = 0; i < process->loops_count; i++)
		print(process, i);
}

static void label(const struct run_page *page)
{
	exposition_label(stdout, "program", page->program,
			 sizeof(page->program));
}

static void sample(const struct run_page *page, const char *name,
		   const char *meaning, bool gauge, int64_t value)
{
	char full[64];

	snprintf(full, sizeof(full), "flexsc_run_%s", name);
	printf("%s%s{", full, exposition_family(stdout, full, meaning, gauge));
	label(page);
	printf("} %" PRId64 "\n", value);
}

static void expose_ways(const struct run_page *page,
			const struct counters *total)
{
	static const char *const names[] = {
#define WAY(name, text, meaning) text,
		RUN_WAYS(WAY)
#undef WAY
	};

	exposition_family(stdout, "flexsc_run_calls",
			  "system calls of user threads, by how they were made",
			  false);
	for (unsigned int i = 0; i < WAYS; i++) {
		fputs("flexsc_run_calls_total{", stdout);
		label(page);
		printf(",way=\"%s\"} %" PRIu64 "\n", names[i], total->ways[i]);
	}
}

static void expose_run(const struct run_page *page, uint64_t loops)
{
	struct counters total = flexsc__report_total(page);

	expose_ways(page, &total);
	sample(page, "threads_made", "user threads made", false,
	       (int64_t)total.started);
	sample(page, "threads", "user threads alive now", true,
	       (int64_t)(total.started - total.ended));
	sample(page, "loop_calls", "system calls made by carriers' loops",
	       false, (int64_t)loops);
	sample(page, "mode_switches_avoided", "mode switches saved, compared "
	       "with native calls", true,
	       flexsc__report_avoided(page, &total, loops));
#define COUNTER(name, meaning) \
	sample(page, #name, meaning, false, (int64_t)total.name);
	RUN_COUNTERS(COUNTER)
#undef COUNTER
	sample(page, "departures", "times a user thread left its own kernel "
	       "thread", false, (int64_t)total.departures);
	sample(page, "returns", "times one returned to it", false,
	       (int64_t)flexsc__report_returns(page));
	sample(page, "carriers", "carriers, without spares", true,
	       page->carriers);
	sample(page, "stuck", "carriers stuck in a call now", true,
	       page->stuck);
}

static void expose_core(const struct process *process, unsigned int loop,
			unsigned int core)
{
	const struct flexsc_stats_page *page = &process->loops[loop];
	const uint64_t calls = process_core_calls(process, loop, core);

	if (!calls)
		return;
	printf("flexsc_loop_core_calls_total{thread=\"%d\",", page->tid);
	exposition_label(stdout, "engine", page->engine, sizeof(page->engine));
	printf(",core=\"%u\"} %" PRIu64 "\n", core, calls);
}

static void expose_cores(const struct process *process)
{
	exposition_family(stdout, "flexsc_loop_core_calls",
			  "calls run on each of kernel_cores", false);
	for (unsigned int i = 0; i < process->loops_count; i++)
		for (unsigned int j = 0; j < FLEXSC_STATS_CORES_MAX; j++)
			expose_core(process, i, j);
}

static void print_exposition(struct process *process)
{
	if (process->run)
		expose_run(process->run, process_loop_calls(process));
	drop_unused(process);
	exposition_loops(stdout, process->loops, process->loops_count);
	expose_cores(process);
}

static int stat_process(const char *name, pid_t pid,
			void (*show)(struct process *process))
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
	err = !process.run && !process.loops_count;
	if (err)
		fprintf(stderr, process_has_runtime(pid) ?
			"flexsc: process %s has no counters, because it has "
			"made no threads\n" :
			"flexsc: process %s has no counters, because it isn't "
			"under flexsc run and has no loop\n", name);
	if (!err)
		show(&process);
	process_free(&process);
	return err;
}

int command_stat(int argc, char **argv)
{
	void (*show)(struct process *process) = print_text;
	char *end;
	long pid;

	if (argc == 3 && strcmp(argv[1], "--prometheus") == 0) {
		show = print_exposition;
		argv++;
		argc--;
	}
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
	/* Neither INT_MAX nor a larger number is the id of a process. */
	if (pid > INT_MAX)
		pid = INT_MAX;
	return stat_process(argv[1], (pid_t)pid, show);
}
