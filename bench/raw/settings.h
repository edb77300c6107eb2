/* SPDX-License-Identifier: MIT */
/*
 * The KEY=VALUE arguments of "flexsc bench --raw" and "flexsc study --raw". A case ignores those that
 * mean nothing to it. Strings are the arguments' own.
 */
#ifndef FLEXSC_BENCH_SETTINGS_H
#define FLEXSC_BENCH_SETTINGS_H

#include <stdbool.h>

#define BENCH_BATCH_MAX	512

/* What messages begin with: "flexsc: bench", or what bench_raw() was given. */
extern const char *bench_who;

struct bench_settings {
	const char *variant;	/* plain, liburing, or an engine */
	const char *call;	/* close, read, pread, getppid; or see trap.h */
	const char *scenario;	/* of timers, reads and events */
	const char *cores;	/* of syscall threads; of memory's, events' */
	long core;		/* of the measuring thread; -1: any */
	long spin_us;
	long batch;
	long calls;		/* completions in a repetition; lost: in all */
	long reps;
	long outstanding;
	long active;		/* outstanding ones that complete */
	const char *work;	/* between calls: tree, heap */
	long every;		/* units of work between two calls */
	long mib;		/* of memory, for each core */
	const char *level;	/* of the caches: l1d, l1i, l2, dtlb */
	const char *mode;	/* of load and rounds: echo, http, exact */
	const char *request;	/* exact: its bytes, in hexadecimal digits */
	const char *answer;
	long udp;		/* 1: datagrams */
	long port;		/* the server's; 0: not given */
	long pid;		/* the server's process; 0: not given */
	const char *address;	/* the server's */
	const char *source;	/* clients' first address; NULL: the case's */
	long sources;		/* addresses of clients */
	long connections;
	long bytes;		/* of an echo; of an answer's body at most */
	long seconds;		/* of load and rounds */
	long threads;		/* of the clients */
	long greet;		/* 1: each connection is answered first */
	const char *conns;	/* new, kept; NULL: the case's default */
	long count;		/* requests or sessions; 0: for "seconds" */
	/* Keys of an open loop and of sessions. */
	long rate;		/* requests or sessions a second; 0: closed */
	const char *arrivals;	/* even, poisson */
	long seed;
	long warm_ms;		/* requests due earlier aren't counted */
	long timeout_ms;	/* when clients give up; 0: they don't */
	const char *sizes;	/* KiB of pages, by turns; NULL: the page / */
	long order;		/* print each answer's time */
	const char *trace;	/* a file of sessions; NULL: none */
	long cut;		/* 1: no answer is waited for behind the end */
	long think;		/* percent of the trace's times to think */
};

/* Parse the arguments. False after one line on stderr. */
bool bench_settings_parse(struct bench_settings *settings, int argc,
			  char **argv);

static inline bool bench_is(const char *word, const char *name)
{
	return __builtin_strcmp(word, name) == 0;
}

/* Print the settings as the members of a JSON object. */
void bench_settings_print(const struct bench_settings *settings);

#endif /* FLEXSC_BENCH_SETTINGS_H */
