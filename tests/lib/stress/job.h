/* SPDX-License-Identifier: MIT */
/*
 * A job of the soak: one post, or two that are chained, with the resources they
 * need. Each callback is counted and has to come exactly once; each result has
 * to be one that the call can have. Everything but what is atomic belongs to
 * the worker, a thread with a loop.
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
	OPEN_CLOSE,	/* chained, the descriptor handed over */
	ALWAYS,		/* chained, the second runs in any case */
	TIMER,
	SIGNAL,
	KINDS
};

struct worker;

/* One callback that is owed. */
struct post {
	struct flexsc_cb cb;
	struct job *job;
	bool pending;
};

struct job {
	struct post a, b;	/* b: the second of a chain */
	struct worker *worker;
	enum kind kind;
	bool cancelled;		/* or has a deadline: may end early */
	bool late;		/* has a deadline */
	uint64_t due;		/* a timer's */
	int p[2], event;
	uint8_t c;
	uint64_t value;
	struct timespec span;
	/* The byte, or the count, that is on its way. */
	unsigned int fed;	/* into the pipe; and what came out */
	unsigned int eaten;
	_Atomic unsigned int wanted;	/* of the main thread, for the event */
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
	pthread_mutex_t lock;	/* of target, for the main thread */
	struct flexsc_loop *target;	/* to be woken, or NULL */
	struct flexsc_loop *loop;
	unsigned int number, round;
	uint64_t random;
	bool ending;		/* callbacks start nothing new */
	bool serial;		/* the engine runs calls where they're submitted */
	struct job jobs[JOBS];
	struct wake wakes[WAKES];
	int counter;		/* an eventfd that calls to be forgotten raise */
	/* The balance. */
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

/* True once in n times. */
static inline bool once_in(struct worker *worker, unsigned int n)
{
	return random_of(worker) % n == 0;
}

static inline bool job_busy(const struct job *job)
{
	return job->a.pending || job->b.pending;
}

/* Post what comes by chance. */
void job_start(struct job *job);

/* Do something by chance to one that is under way. */
void job_disturb(struct job *job);

void job_cancel(struct job *job, struct post *post);

/* Empty the pipe of what earlier posts left in it. */
void job_drain_pipe(struct job *job);

#endif /* FLEXSC_TESTS_JOB_H */
