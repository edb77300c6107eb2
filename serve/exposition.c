/* SPDX-License-Identifier: MIT */
/* Pure functions, apart from writing to a stream. */
#include "exposition.h"

#include <inttypes.h>
#include <string.h>

const struct loop_counter loop_counters[LOOP_COUNTERS] = {
#define COUNTER(field, meaning) \
	{ offsetof(struct flexsc_stats, field), #field, meaning, false }
#define GAUGE(field, meaning) \
	{ offsetof(struct flexsc_stats, field), #field, meaning, true }
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
	GAUGE(outstanding, "calls outstanding now"),
	GAUGE(waiting, "calls waiting for an entry now"),
	GAUGE(entries, "entries now"),
	GAUGE(max_entries, "maximum number of entries"),
	GAUGE(threads, "syscall threads now"),
	GAUGE(max_threads, "maximum number of syscall threads"),
	GAUGE(bytes, "bytes of memory for calls"),
};

uint64_t loop_counter_value(const struct loop_counter *counter,
			    const struct flexsc_stats *stats)
{
	uint64_t value;

	memcpy(&value, (const char *)stats + counter->offset, sizeof(value));
	return value;
}

const char *exposition_family(FILE *out, const char *name, const char *meaning,
			      bool gauge)
{
	const char *end = gauge ? "" : "_total";

	fprintf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, meaning,
		name, end, gauge ? "gauge" : "counter");
	return end;
}

void exposition_label(FILE *out, const char *name, const char *text,
		      size_t max)
{
	size_t i, length = strnlen(text, max);

	fprintf(out, "%s=\"", name);
	for (i = 0; i < length; i++) {
		if (text[i] == '"' || text[i] == '\\')
			putc('\\', out);
		/*
		 * Replace control characters: "text" may be the name of a
		 * process, which may contain any byte.
		 */
		putc(text[i] < ' ' ? '?' : text[i], out);
	}
	putc('"', out);
}

void exposition_loops(FILE *out, const struct flexsc_stats_page *loops,
		      unsigned int count)
{
	for (unsigned int i = 0; i < LOOP_COUNTERS; i++) {
		const struct loop_counter *counter = &loop_counters[i];
		const char *end;
		char name[64];

		snprintf(name, sizeof(name), "flexsc_loop_%s", counter->name);
		end = exposition_family(out, name, counter->meaning,
					counter->gauge);
		for (unsigned int j = 0; j < count; j++) {
			fprintf(out, "%s%s{thread=\"%d\",", name, end,
				loops[j].tid);
			exposition_label(out, "engine", loops[j].engine,
					 sizeof(loops[j].engine));
			fprintf(out, "} %" PRIu64 "\n",
				loop_counter_value(counter, &loops[j].stats));
		}
	}
}
