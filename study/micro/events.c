/* SPDX-License-Identifier: MIT */
/*
 * study --raw events: the cost of receiving events, from a backend of SEND
 * (variant uring or kmod), or as POSIX real-time signals (variant signal).
 *
 * 	dequeue	"batch" events are queued while notification is disabled; then
 * 		the program's handler gets all of them (SEND, figure 4.1). With
 * 		SEND the events are those of "batch" eventfds
 * 	preempt	another thread, on the first of "cores", makes one event at a
 * 		time while the program computes on "core". The result is the
 * 		time until the program's handler gets the event
 */
#define _GNU_SOURCE
#include <errno.h>
#include <flexsc/ecb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "study/cases.h"
#include "bench/raw/loop.h"
#include "bench/raw/report.h"

#define SIGNO		(SIGRTMIN + 1)
#define PAUSE_NS	50000	/* ns between events that preempt */

struct events {
	const struct bench_settings *settings;
	const struct way *way;
	struct flexsc_ecb *ecb;		/* of SEND */
	int *fds;			/* for SEND: an eventfd for each event of a batch */
	sigset_t set;			/* set of signals */
	int tid;
	struct bench_series queue, dequeue;
};

/*
 * Events that the handlers have counted; with "timed", also the time of the
 * last one.
 */
static volatile long handled;
static volatile uint64_t handled_at;
static bool timed;
static atomic_long made;	/* events made by the thread that preempts */
static volatile uint64_t made_at;

/* A way to receive events. */
struct way {
	int (*open)(struct events *events);
	void (*quiet)(struct events *events);	/* queue events from here on */
	void (*make)(struct events *events, long i);	/* make an event; any thread */
	void (*heed)(struct events *events);	/* let the handler run here */
	void (*close)(struct events *events);
};

/* Signals. */

static inline void handle_one(void)
{
	if (timed)
		handled_at = bench_clock(CLOCK_MONOTONIC);
	handled++;
}

static void on_signal(int signo)
{
	handle_one();
}

static int signal_open(struct events *events)
{
	const struct sigaction action = { .sa_handler = on_signal };

	sigemptyset(&events->set);
	sigaddset(&events->set, SIGNO);
	return sigaction(SIGNO, &action, NULL) ? -errno : 0;
}

static void signal_quiet(struct events *events)
{
	pthread_sigmask(SIG_BLOCK, &events->set, NULL);
}

static void signal_make(struct events *events, long i)
{
	siginfo_t info = { .si_code = SI_QUEUE };

	syscall(SYS_rt_tgsigqueueinfo, getpid(), events->tid, SIGNO, &info);
}

static void signal_heed(struct events *events)
{
	pthread_sigmask(SIG_UNBLOCK, &events->set, NULL);
}

static void signal_close(struct events *events)
{
}

/* SEND. */

static void on_event(struct flexsc_ecb *ecb, void *arg)
{
	struct flexsc_ecb_event event;

	/* The eventfds are never read, but each write is still an event. */
	while (flexsc_ecb_next(ecb, 1, &event))
		handle_one();
}

static int send_open(struct events *events)
{
	struct flexsc_ecb_options options = FLEXSC_ECB_OPTIONS_INIT;
	long n = events->settings->batch;
	int err;

	options.backend = events->settings->variant;
	err = flexsc_ecb_create(&events->ecb, &options);
	events->fds = calloc((size_t)n, sizeof(int));
	if (err || !events->fds)
		return err ? err : -ENOMEM;
	flexsc_ecb_handler(events->ecb, on_event, events);
	for (long i = 0; i < n; i++) {
		events->fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (events->fds[i] < 0)
			return -errno;
		err = flexsc_ecb_watch(events->ecb, events->fds[i], POLLIN, 0,
				       NULL);
		if (err < 0)
			return err;
	}
	return flexsc_ecb_notify(events->ecb, 1);
}

static void send_quiet(struct events *events)
{
	flexsc_ecb_critical_begin(events->ecb);
}

static void send_make(struct events *events, long i)
{
	eventfd_write(events->fds[i], 1);
}

static void send_heed(struct events *events)
{
	flexsc_ecb_critical_end(events->ecb);
}

static void send_close(struct events *events)
{
	flexsc_ecb_destroy(events->ecb);
	free(events->fds);
}

static const struct way signal_way = {
	signal_open, signal_quiet, signal_make, signal_heed, signal_close,
};

static const struct way send_way = {
	send_open, send_quiet, send_make, send_heed, send_close,
};

/* Queue a batch, then receive all of it. */
static void dequeue(struct events *events, double *queued, double *dequeued)
{
	long n = events->settings->batch, end = handled + n;
	uint64_t begin, middle;

	events->way->quiet(events);
	begin = bench_clock(CLOCK_MONOTONIC);
	for (long i = 0; i < n; i++)
		events->way->make(events, i);
	middle = bench_clock(CLOCK_MONOTONIC);
	events->way->heed(events);
	while (handled < end)
		;
	*dequeued += (double)(bench_clock(CLOCK_MONOTONIC) - middle);
	*queued += (double)(middle - begin);
}

static void run_dequeue(struct events *events)
{
	long batches = events->settings->calls / events->settings->batch + 1;
	double n = (double)(batches * events->settings->batch);
	double queued = 0, dequeued = 0;

	for (long i = 0; i < batches; i++)
		dequeue(events, &queued, &dequeued);
	bench_series_add(&events->queue, queued / n);
	bench_series_add(&events->dequeue, dequeued / n);
}

/* Make one event at a time, a while after the previous one was received. */
static void *preempt(void *arg)
{
	struct events *events = arg;
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	bench_pin(atol(events->settings->cores));
	while (atomic_load(&made) < events->settings->calls) {
		long end = handled + 1;

		nanosleep(&pause, NULL);
		made_at = bench_clock(CLOCK_MONOTONIC);
		atomic_fetch_add(&made, 1);
		events->way->make(events, 0);
		while (handled < end)
			;
	}
	return NULL;
}

static int ascending(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return a < b ? -1 : a > b;
}

/* The sample of a repetition is its median. */
static int run_preempt(struct events *events)
{
	long n = events->settings->calls, middle = n / 2, seen = 0;
	uint64_t *times = calloc((size_t)n, sizeof(*times));
	pthread_t thread;
	int err;

	if (!times)
		return -ENOMEM;
	handled = 0;
	timed = true;
	atomic_store(&made, 0);
	err = -pthread_create(&thread, NULL, preempt, events);
	while (!err && seen < n)
		if (handled > seen)
			times[seen++] = handled_at - made_at;
	if (!err) {
		pthread_join(thread, NULL);
		qsort(times, (size_t)n, sizeof(*times), ascending);
		bench_series_add(&events->dequeue, (double)times[middle]);
	}
	free(times);
	return err;
}

static void report(const struct events *events, bool preempts)
{
	bench_report_begin("events", events->settings);
	if (!preempts)
		bench_report_series(&events->queue);
	bench_report_series(&events->dequeue);
	bench_report_counts();
	bench_report_end();
}

static int measure(struct events *events, bool preempts)
{
	int err = events->way->open(events);

	/* The first repetition is a warm-up. */
	for (long rep = 0; rep <= events->settings->reps && !err; rep++) {
		if (preempts)
			err = run_preempt(events);
		else
			run_dequeue(events);
		if (!rep)
			events->queue.count = events->dequeue.count = 0;
	}
	if (err)
		bench_failed(events->settings->variant, err);
	else
		report(events, preempts);
	if (events->ecb || events->way == &signal_way)
		events->way->close(events);
	return err != 0;
}

int bench_events(const struct bench_settings *settings)
{
	bool preempts = bench_is(settings->scenario, "preempt");
	struct events events = {
		.settings = settings,
		.way = bench_is(settings->variant, "signal") ? &signal_way :
							       &send_way,
		.tid = gettid(),
	};
	int err = 1;

	if (!preempts && !bench_is(settings->scenario, "dequeue")) {
		fprintf(stderr, "flexsc: study: events: scenario=%s: give "
			"dequeue or preempt\n", settings->scenario);
		return 1;
	}
	if (preempts && !settings->cores) {
		fprintf(stderr, "flexsc: study: events: preempt: give cores=N, "
				"the core of the events' source\n");
		return 1;
	}
	if (!bench_pin(settings->core) &&
	    !bench_series_init(&events.queue, "ns_to_queue", settings) &&
	    !bench_series_init(&events.dequeue,
			       preempts ? "ns_to_preempt" : "ns_to_dequeue",
			       settings))
		err = measure(&events, preempts);
	bench_series_fini(&events.queue);
	bench_series_fini(&events.dequeue);
	return err;
}
