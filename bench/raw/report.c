/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <errno.h>
#include <flexsc/flexsc.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static bool first;	/* the next member is the first, and needs no comma */

int bench_failed(const char *what, int err)
{
	fprintf(stderr, "%s: %s: %s\n", bench_who, what, strerror(-err));
	return 1;
}

int bench_series_init(struct bench_series *series, const char *name,
		      const struct bench_settings *settings)
{
	series->name = name;
	series->count = 0;
	/* One additional sample, for the warm-up. */
	series->samples = calloc((size_t)settings->reps + 1, sizeof(double));
	return series->samples ? 0 : bench_failed("samples", -ENOMEM);
}

void bench_series_fini(struct bench_series *series)
{
	free(series->samples);
}

void bench_series_add(struct bench_series *series, double sample)
{
	series->samples[series->count++] = sample;
}

static void comma(void)
{
	if (!first)
		fputs(", ", stdout);
	first = false;
}

void bench_report_begin(const char *name,
			const struct bench_settings *settings)
{
	printf("{\"case\": \"%s\", \"settings\": {", name);
	bench_settings_print(settings);
	fputs("}, \"samples\": {", stdout);
	first = true;
}

void bench_report_series(const struct bench_series *series)
{
	comma();
	printf("\"%s\": [", series->name);
	for (long i = 0; i < series->count; i++)
		printf("%s%.2f", i ? ", " : "", series->samples[i]);
	putchar(']');
}

void bench_report_counts(void)
{
	fputs("}, \"counts\": {", stdout);
	first = true;
}

void bench_report_count(const char *name, double value)
{
	comma();
	printf("\"%s\": %.15g", name, value);
}

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
#define COUNTER(field) { #field, offsetof(struct flexsc_stats, field) }
	COUNTER(posted), COUNTER(completed), COUNTER(cancelled),
	COUNTER(waited), COUNTER(batches), COUNTER(batched),
	COUNTER(mode_switches), COUNTER(by_inline), COUNTER(by_uring),
	COUNTER(by_thread), COUNTER(timers), COUNTER(wakeups),
	COUNTER(threads), COUNTER(entries), COUNTER(bytes),
};

void bench_report_stats(const struct flexsc_loop *loop)
{
	struct flexsc_stats stats;

	if (flexsc_loop_stats(loop, &stats, sizeof(stats)))
		return;
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		uint64_t value;

		memcpy(&value, (const char *)&stats + counters[i].offset,
		       sizeof(value));
		comma();
		printf("\"%s\": %" PRIu64, counters[i].name, value);
	}
}

void bench_report_end(void)
{
	puts("}}");
}
