/* SPDX-License-Identifier: MIT */
/*
 * The KEY=VALUE arguments of "flexsc bench --raw". A case uses those that it
 * knows and gives the others no meaning.
 */
#ifndef FLEXSC_BENCH_SETTINGS_H
#define FLEXSC_BENCH_SETTINGS_H

#include <stdbool.h>

#define BENCH_BATCH_MAX	512

struct bench_settings {
	const char *variant;	/* plain, liburing, or an engine */
	const char *call;	/* close, read, pread, getppid */
	const char *scenario;	/* of the timers and the reads */
	const char *cores;	/* of syscall threads */
	long core;		/* of the measuring thread; -1: any */
	long spin_us;
	long batch;
	long calls;		/* completions in a repetition */
	long reps;
	long outstanding;
	long active;		/* outstanding ones that are in use */
	long sharing;		/* reads that wait on one descriptor */
	long spacing;		/* nanoseconds between timers that expire */
	const char *mode;	/* of the load: echo, http, exact */
	const char *request;	/* exact: its bytes, in hexadecimal digits */
	const char *answer;
	long udp;		/* 1: datagrams */
	long port;		/* to load; 0: none */
	long pid;		/* of the process behind port; 0: none */
	const char *address;	/* the server's */
	const char *source;	/* the clients' first one; NULL: the case's */
	long sources;		/* addresses of clients */
	long connections;
	long bytes;		/* to be echoed; in an answer's body at most */
	long seconds;		/* of load */
	long threads;		/* of the clients */
	long greet;		/* one exchange a connection, one by one */
	const char *conns;	/* new, kept; NULL: what the case is used to */
	long count;		/* requests; 0: as many as the time allows */
	/* Of an open loop. */
	long rate;		/* requests a second; 0: the loop is closed */
	const char *arrivals;	/* even, poisson */
	long seed;
	long warm_ms;		/* requests due that early aren't counted */
	long timeout_ms;	/* clients give up; 0: they don't */
	const char *sizes;	/* KiB of the pages, in turn; NULL: the page / */
	long trace;		/* print each answer's time */
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
