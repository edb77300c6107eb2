/* SPDX-License-Identifier: MIT */
/*
 * The KEY=VALUE arguments of "flexsc bench --raw" and "flexsc study --raw".
 * Each case ignores the settings that it doesn't use. Strings point into the
 * arguments.
 */
#ifndef FLEXSC_BENCH_SETTINGS_H
#define FLEXSC_BENCH_SETTINGS_H

#include <stdbool.h>

#define BENCH_BATCH_MAX	512

/* The prefix of messages: "flexsc: bench", or the argument of bench_raw(). */
extern const char *bench_who;

struct bench_settings {
	const char *variant;	/* plain, liburing, or an engine */
	const char *call;	/* system call: close, read, pread, getppid; or trap.h */
	const char *scenario;	/* of the case "timers", "reads" or "events" */
	const char *kernel_cores, *cores;	/* "cores": of the program's threads */
	long core;		/* of the measuring thread; -1: any */
	long poll_us, spin_us;	/* of the loop, and of clients */
	long batch;
	long calls;		/* completions per repetition; case "lost": in total */
	long reps;
	long outstanding;
	long active;		/* number of outstanding ones that complete */
	const char *work;	/* work between calls: tree, heap */
	long every;		/* units of work between two calls */
	long mib;		/* memory per core */
	const char *level;	/* cache level: l1d, l1i, l2, dtlb */
	const char *mode;	/* of "load" and "rounds": echo, http, exact */
	const char *request;	/* mode "exact": the request's bytes, in hexadecimal */
	const char *answer;	/* the same of its answer */
	long udp;		/* 1: use datagrams */
	long port;		/* the server's port; 0: missing */
	long pid;		/* the server's process; 0: missing */
	const char *address;	/* the server's address */
	const char *source;	/* first address of clients; NULL: the case's default */
	long sources;		/* number of clients' addresses */
	long connections;
	long bytes;		/* size of an echo; maximum size of an answer's body */
	long seconds;		/* duration of "load" and "rounds" */
	long threads;		/* threads of the clients */
	long greet;		/* 1: each connection gets an answer before the next
				 * one is made */
	const char *conns;	/* new, kept; NULL: the case's default */
	long count;		/* number of requests or sessions; 0: use "seconds" */
	/* Keys of an open loop and of sessions. */
	long rate;		/* requests or sessions per second; 0: closed loop */
	const char *arrivals;	/* even, poisson */
	long seed;
	long warm_ms;		/* requests that are due earlier aren't counted */
	long timeout_ms;	/* time after which clients give up; 0: never */
	const char *sizes;	/* sizes of pages in KiB, used in turn; NULL: page "/" */
	long order;		/* print the time of each answer */
	const char *trace;	/* a file of sessions, or NULL */
	long cut;		/* 1: don't wait for answers after the end */
	long passes;		/* "crawl": how often each file is hashed */
	long client;		/* "crawl": core of the client; -1: missing */
	long think;		/* think times, in percent of the trace's */
};

/* Parse the arguments. False after a message. */
bool bench_settings_parse(struct bench_settings *settings, int argc,
			  char **argv);

static inline bool bench_is(const char *word, const char *name)
{
	return __builtin_strcmp(word, name) == 0;
}

/* Print the settings as the members of a JSON object. */
void bench_settings_print(const struct bench_settings *settings);

#endif /* FLEXSC_BENCH_SETTINGS_H */
