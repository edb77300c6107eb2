/* SPDX-License-Identifier: MIT */
/*
 * A job of the stress test: one post, or two chained posts, with the resources they
 * need. Each callback is counted, and has to run exactly once. Each result has to be
 * one that the call can return. Everything that isn't atomic belongs to the worker,
 * a thread with a loop.
 */
#ifndef FLEXSC_TESTS_JOB_H
#define FLEXSC_TESTS_JOB_H
#include "tests/harness/harness.h"

#define JOBS		96
#define WAKES		16

enum kind {
	READ_PIPE,	/* fed by the worker */
	READ_EVENT,	/* fed by the main thread */
	WRITE_PIPE,
	FAST,
	SLEEP,
	OPEN_CLOSE,	/* chained, with the descriptor as an argument */
	ALWAYS,		/* chained, and the second one runs in any case */
	TIMER,
	SIGNAL,
	KINDS
};

struct worker;

/* One post whose callback has to run. */
struct post {
	struct flexsc_cb cb;
	struct job *job;
	bool pending;
};

struct job {
	struct post a, b;	/* b: the second one of a chain */
	struct worker *worker;
	enum kind kind;
	bool cancelled;		/* or has a deadline: may end early */
	bool late;		/* has a deadline */
	uint64_t due;		/* a timer's */
	int p[2], event;
	uint8_t c;
	uint64_t value;
	struct timespec span;
	/* Bytes, or a count, that are in transit. */
	unsigned int fed;	/* written to the pipe; read from it */
	unsigned int eaten;
	/* counts for the event that the worker requests from the main thread */
	_Atomic unsigned int wanted;
	_Atomic unsigned int given;
	unsigned int taken;
};

struct wake {
	struct flexsc_cb cb;
	struct worker *worker;
	atomic_bool pending;
};

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;	/* protects target, for the main thread */
	struct flexsc_loop *target;	/* the loop to wake, or NULL */
	struct flexsc_loop *loop;
	unsigned int number, round;
	uint64_t random;
	bool ending;		/* callbacks start nothing new */
	bool serial;	/* the engine runs calls when they are submitted */
	struct job jobs[JOBS];
	struct wake wakes[WAKES];
	int counter;	/* an eventfd that calls without a cb increment */
	/* Totals. */
	uint64_t posted, ran;	/* callbacks */
	uint64_t calls;		/* system calls among the posts */
	uint64_t forgotten;	/* posted without a cb */
	uint64_t wakes_ran;
	_Atomic uint64_t wakes_sent;
};

static inline uint64_t random_of(struct worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return worker->random;
}

/* True once in n times, at random. */
static inline bool once_in(struct worker *worker, unsigned int n)
{
	return random_of(worker) % n == 0;
}

static inline bool job_busy(const struct job *job)
{
	return job->a.pending || job->b.pending;
}

/* Posts a random kind of job. */
void job_start(struct job *job);

/* Disturbs a pending job at random. */
void job_disturb(struct job *job);

void job_cancel(struct job *job, struct post *post);

/* Removes what earlier posts have left in the pipe. */
void job_drain_pipe(struct job *job);

#endif /* FLEXSC_TESTS_JOB_H */
