/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/calls/call_info.h"

#define TOP	10U	/* causes that are named */

/* Ways of making a call without a system call by the calling thread. */
static const uint8_t silent[] = {
	WAY_POSTED, WAY_FUTEX_WAIT, WAY_FUTEX_WAKE, WAY_POLLED, WAY_SLEPT,
	WAY_ANSWERED,
};

/* System calls of one switch from a host to a carrier, or back: sched/host.c. */
#define CALLS_A_TRIP	2

struct out {
	char *text;
	size_t size, length;
};

__attribute__((format(printf, 2, 3)))
static void print(struct out *out, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(out->text + out->length, out->size - out->length, format,
		      list);
	va_end(list);
	if (n < 0)
		return;
	out->length += (size_t)n;
	if (out->length >= out->size)
		out->length = out->size - 1;
}

static void line(struct out *out, const char *name, uint64_t value,
		 const char *meaning)
{
	print(out, "  %-14s %16" PRId64 "  %s\n", name, (int64_t)value, meaning);
}

static uint64_t load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static uint32_t load32(const uint32_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

struct counters flexsc__report_total(const struct run_page *page)
{
	/* All but the last field are counters. */
	const size_t n = offsetof(struct counters, tid) / sizeof(uint64_t);
	struct counters total = { 0 };
	uint64_t *to = &total.switches;

	for (unsigned int i = 0; i < page->room + RUN_PAGE_HOSTS; i++) {
		const uint64_t *from = &page->blocks[i].switches;

		for (size_t j = 0; j < n; j++)
			to[j] += load(&from[j]);
	}
	return total;
}

uint64_t flexsc__report_calls(const struct counters *total)
{
	uint64_t calls = 0;

	for (unsigned int i = 0; i < WAYS; i++)
		calls += total->ways[i];
	return calls;
}

uint64_t flexsc__report_returns(const struct run_page *page)
{
	uint64_t returns = 0;

	for (unsigned int i = 0; i < CAUSES; i++)
		returns += load(&page->causes[i]);
	return returns;
}

int64_t flexsc__report_avoided(const struct run_page *page,
			       const struct counters *total, uint64_t loops)
{
	uint64_t saved = 0;

	for (unsigned int i = 0; i < sizeof(silent); i++)
		saved += total->ways[silent[i]];
	return (int64_t)(saved - loops - total->own -
			 CALLS_A_TRIP * (flexsc__report_returns(page) +
					 total->departures));
}

const char *flexsc__report_cause(unsigned int cause)
{
	static const char *const names[] = {
		"(signal)", "(preempted)", "(no entry)", "(thread end)",
		"(fault)", "(anchored)", "(unknown)",
#define SYMBOL(symbol)	#symbol,
#define CALL(...)
#define POINT(...)
#define MADE(...)
#define OWN(...)
#include "runtime/base/symbols.def"
	};

	_Static_assert(sizeof(names) / sizeof(*names) == CAUSES - CAUSE_CALLS,
		       "a name for each");
	const char *name;

	if (cause >= CAUSES)
		return "-";
	if (cause >= CAUSE_CALLS)
		return names[cause - CAUSE_CALLS];
	name = flexsc__call_info(cause)->name;
	return name ? name : "(unknown)";
}

unsigned int flexsc__report_top(const uint64_t causes[CAUSES])
{
	unsigned int top = CAUSES;

	for (unsigned int i = 0; i < CAUSES; i++)
		if (causes[i] && (top == CAUSES || causes[i] > causes[top]))
			top = i;
	return top;
}

static void print_causes(struct out *out, const struct run_page *page)
{
	uint64_t causes[CAUSES], rest = 0;

	for (unsigned int i = 0; i < CAUSES; i++)
		causes[i] = load(&page->causes[i]);
	for (unsigned int i = 0; i < TOP; i++) {
		unsigned int cause = flexsc__report_top(causes);

		if (cause == CAUSES)
			return;
		print(out, "    %-12s %16" PRIu64 "  for %s\n", "",
		    causes[cause], flexsc__report_cause(cause));
		causes[cause] = 0;
	}
	for (unsigned int i = 0; i < CAUSES; i++)
		rest += causes[i];
	if (rest)
		print(out, "    %-12s %16" PRIu64 "  for others\n", "", rest);
}

static void print_carriers(struct out *out, const struct run_page *page)
{
	print(out, "  carrier  thread     switches       posted   steals   "
	    "sleeps    spins\n");
	for (unsigned int i = 0; i < page->room && i < REPORT_CARRIERS; i++) {
		const struct counters *c = &page->blocks[i];

		/* Skip spares that have run nothing. */
		if (i >= page->carriers && !load(&c->switches))
			continue;
		print(out, "  %7u %7d %12" PRIu64 " %12" PRIu64 " %8" PRIu64
		    " %8" PRIu64 " %8" PRIu64 "\n", i, c->tid,
		    load(&c->switches), load(&c->ways[WAY_POSTED]),
		    load(&c->steals), load(&c->sleeps), load(&c->spins));
	}
}

static void print_head(struct out *out, const struct run_page *page,
		     uint64_t now)
{
	uint64_t ms = (now - page->begin) / 1000000;

	print(out, "flexsc run: %.*s, process %d: %" PRIu64 ".%03" PRIu64
	    " s with user threads, carriers: %u, engine %.*s\n",
	    (int)sizeof(page->program), page->program, page->pid, ms / 1000,
	    ms % 1000, page->carriers, (int)sizeof(page->engine),
	    page->engine);
}

size_t flexsc__report(char *text, size_t size, const struct run_page *page,
		      uint64_t loops, uint64_t now)
{
	static const struct {
		const char *name, *meaning;
	} ways[] = {
#define WAY(name, text, meaning) { text, meaning },
		RUN_WAYS(WAY)
	};
	struct counters total = flexsc__report_total(page);
	int64_t avoided = flexsc__report_avoided(page, &total, loops);
	struct out out = { text, size, 0 };

	print_head(&out, page, now);
	line(&out, "threads", total.started, "user threads made");
	line(&out, "alive", total.started - total.ended,
	     "user threads alive now");
	line(&out, "calls", flexsc__report_calls(&total),
	     "system calls of user threads, in total");
	for (unsigned int i = 0; i < WAYS; i++)
		line(&out, ways[i].name, total.ways[i], ways[i].meaning);
	line(&out, "loop_calls", loops, "system calls made by carriers' loops");
	if (avoided >= 0)
		line(&out, "avoided", (uint64_t)avoided,
		     "mode switches saved, compared with native calls");
	else
		line(&out, "added", (uint64_t)-avoided,
		     "mode switches added, compared with native calls");
#define COUNTER(name, meaning) line(&out, #name, total.name, meaning);
	RUN_COUNTERS(COUNTER)
	line(&out, "spares", load32(&page->spares),
	     "spare carriers made, one of them in advance");
	line(&out, "stuck", load32(&page->stuck),
	     "carriers stuck in a call now");
	line(&out, "departures", total.departures,
	     "times a user thread left its own kernel thread");
	line(&out, "returns", flexsc__report_returns(page),
	     "times a user thread returned to it, by cause");
	print_causes(&out, page);
	print_carriers(&out, page);
	return out.length;
}
