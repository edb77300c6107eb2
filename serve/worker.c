/* SPDX-License-Identifier: MIT */
/*
 * The life of a worker; runs on its thread, except worker_ask_stop() and
 * wake_first().
 *
 *	running		until SIGTERM, SIGINT or worker_ask_stop()
 *	stopping	no client is accepted, idle ones are dropped, the others
 *			get their answers; until the last one has left, "grace"
 *			is over, or a second signal comes
 *	closing		the log is written; the loop ends when nothing is
 *			pending any more
 *
 * At SIGHUP and SIGUSR1 the first worker has all workers reopen the log. After
 * a further signal, it has the log reopened again only once all workers have
 * finished: otherwise a worker could open the file before the file was renamed
 * again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <flexsc/flexsc.h>

#include "systemd.h"
#include "worker.h"
#include "http/beneath.h"

static const int signals[WORKER_SIGNALS] = { SIGTERM, SIGINT, SIGUSR1, SIGHUP };

/*
 * Without a named log, SIGHUP keeps its default action, so a closed terminal
 * ends the process.
 */
static unsigned int signals_of(const struct worker *w)
{
	if (!w->first)
		return 2;
	return WORKER_SIGNALS - !log_has_name(w->env.settings->log_file);
}

/*
 * Is the worker stopping, without clients and pending accepts? Then it only has
 * to end its own calls.
 */
static bool is_done(const struct worker *w)
{
	return w->clients.stopping && !w->clients.count && !w->listener.posted;
}

/* Cancel the worker's pending calls and write the log. The loop then ends. */
static void close_worker(struct worker *w)
{
	unsigned int i;

	if (w->closing)
		return;
	w->closing = true;
	for (i = 0; i < signals_of(w); i++)
		flexsc_loop_cancel(w->env.loop, &w->signals[i]);
	flexsc_loop_cancel(w->env.loop, &w->grace);
	log_close(&w->env.log);
}

static void on_grace(struct flexsc_cb *cb)
{
	struct worker *w = cb->arg;

	if (cb->ret < 0)
		return;
	fprintf(stderr, "flexsc: grace period is over: cut off %u transfers; "
			"see --grace\n",
		w->clients.count);
	clients_cut(&w->clients);
}

static void stop(struct worker *w)
{
	if (w->clients.stopping) {
		clients_cut(&w->clients);
		return;
	}
	if (w->first)
		systemd_notify("STOPPING=1");
	listener_close(&w->listener);
	clients_stop(&w->clients);
	if (is_done(w)) {
		close_worker(w);
		return;
	}
	w->grace = (struct flexsc_cb){ .callback = on_grace, .arg = w };
	flexsc_loop_timer(w->env.loop, &w->grace, w->env.settings->grace);
}

static void on_reopen(struct flexsc_cb *cb)
{
	struct worker *w = cb->arg;

	log_reopen(&w->env.log);
}

static void reopen_all(struct worker *first)
{
	struct log_file *file = first->env.settings->log_file;
	struct timespec now;
	struct worker *w;
	char message[80];

	first->again = first->reopening;
	if (first->reopening || first->clients.stopping || !log_has_name(file))
		return;
	first->reopening = true;
	/* systemd ignores a message that is older than its own request. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(message, sizeof(message),
		 "RELOADING=1\nMONOTONIC_USEC=%llu",
		 now.tv_sec * 1000000ULL + (unsigned long long)now.tv_nsec / 1000);
	systemd_notify(message);
	file->reopening = first->env.settings->loops;
	for (w = first->next; w; w = w->next)
		flexsc_loop_wake(w->env.loop, &w->reopen);
	log_reopen(&first->env.log);
}

static void on_reopened(struct flexsc_cb *cb)
{
	struct worker *first = cb->arg;

	first->reopening = false;
	if (first->clients.stopping)
		return;
	systemd_notify("READY=1");
	if (first->again)
		reopen_all(first);
}

/* Any worker's thread. */
static void wake_first(void *arg)
{
	struct worker *first = arg;

	flexsc_loop_wake(first->env.loop, &first->reopened);
}

static void on_signal(struct flexsc_cb *cb)
{
	struct worker *w = cb->arg;

	if (cb->ret < 0)
		return;
	if (cb->ret == SIGHUP || cb->ret == SIGUSR1)
		reopen_all(w);
	else
		stop(w);
	/* Wait for the next signal, unless the worker has finished. */
	if (!w->closing)
		flexsc_loop_signal(w->env.loop, cb, cb->ret);
}

static void on_ask(struct flexsc_cb *cb)
{
	stop(cb->arg);
}

void worker_ask_stop(struct worker *w)
{
	flexsc_loop_wake(w->env.loop, &w->ask);
}

static void worker_left(struct clients *clients)
{
	struct worker *w = (void *)((char *)clients -
				    offsetof(struct worker, clients));

	if (!clients->stopping)
		listener_freed(&w->listener);
	else if (is_done(w))
		close_worker(w);
}

/*
 * Set SCHED_BATCH. io_uring opens files on a kernel thread that inherits the
 * policy. With SCHED_OTHER that thread preempts the loop for each file, at two
 * context switches per request. With SCHED_BATCH it waits until the loop
 * sleeps, and then opens all files.
 */
static void run_in_batches(void)
{
	const struct sched_param none = { 0 };

	/*
	 * Keep a policy that the user has chosen. Ignore a failure, because the
	 * policy is only an optimisation.
	 */
	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &none);
}

static int create_loop(struct worker *w)
{
	const struct settings *s = w->env.settings;
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;
	char why[256] = "";
	int rc;

	run_in_batches();
	options.engine = s->engine;
	options.kernel_cores = s->kernel_cores;
	rc = flexsc_loop_create(&w->env.loop, &options);
	if (rc == 0)
		return 0;
	if (rc == -EOPNOTSUPP && s->engine)
		flexsc_engine_probe(s->engine, why, sizeof(why));
	fprintf(stderr, "flexsc: serve: can't make a loop: %s\n",
		*why ? why : strerror(-rc));
	return rc;
}

static void init_how(struct environment *env)
{
	uint64_t flags[] = {
		O_RDONLY | O_CLOEXEC | O_NOCTTY,
		O_RDONLY | O_CLOEXEC | O_DIRECTORY,
	};

	/*
	 * If the engine isn't uring, add O_NONBLOCK, so that opening a pipe
	 * doesn't wait for a writer. io_uring's open doesn't wait. For a file
	 * with O_NONBLOCK, the uring engine would have to make plain calls
	 * instead of using io_uring.
	 */
	if (strcmp(flexsc_loop_engine(env->loop), "uring") != 0)
		flags[0] |= O_NONBLOCK;
	for (int folder = 0; folder < 2; folder++) {
		env->how[0][folder].flags = flags[folder];
		env->how[0][folder].resolve = RESOLVE_NO_SYMLINKS;
		env->how[1][folder].flags = flags[folder];
		env->how[1][folder].resolve =
			RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
	}
}

static void init(struct worker *w, const struct settings *s, bool first)
{
	*w = (struct worker){
		.env.settings = s,
		.clients = {
			.env = &w->env,
			.left = worker_left,
			.max = (s->max_connections + s->loops - 1) / s->loops,
			.max_refused = s->max_refused,
		},
		.ask = { .callback = on_ask, .arg = w },
		.reopen = { .callback = on_reopen, .arg = w },
		.reopened = { .callback = on_reopened, .arg = w },
		.tid = gettid(),
		.first = first,
	};
	if (first) {
		s->log_file->reopened = wake_first;
		s->log_file->arg = w;
	}
	clock_update(&w->env.clock);
}

static void close_posted(void *loop, int fd)
{
	flexsc_loop_close(loop, NULL, fd);
}

int worker_init(struct worker *w, const struct settings *s, int socket,
		bool first)
{
	unsigned int i;
	int rc;

	init(w, s, first);
	listener_init(&w->listener, &w->clients, socket);
	rc = create_loop(w);
	if (rc)
		return rc;
	init_how(&w->env);
	/*
	 * Test openat2(), unless the engine is uring: io_uring opens files even
	 * if a system-call filter forbids openat2().
	 */
	if (strcmp(flexsc_loop_engine(w->env.loop), "uring") != 0)
		w->env.no_openat2 = beneath_needed(s->root_fd);
	w->env.cache.close = close_posted;
	w->env.cache.arg = w->env.loop;
	w->env.cache.limit = (s->cache + s->loops - 1) / s->loops;
	rc = log_init(&w->env.log, w->env.settings->log_file, w->env.loop);
	for (i = 0; i < signals_of(w) && rc == 0; i++) {
		w->signals[i] = (struct flexsc_cb){ .callback = on_signal,
						    .arg = w };
		rc = flexsc_loop_signal(w->env.loop, &w->signals[i],
					signals[i]);
	}
	if (rc == 0)
		listener_resume(&w->listener);
	else
		fprintf(stderr, "flexsc: can't start: %s\n", strerror(-rc));
	return rc;
}

int worker_run(struct worker *w)
{
	int rc = flexsc_loop_run(w->env.loop);

	if (rc < 0)
		fprintf(stderr, "flexsc: the loop failed: %s\n",
			strerror(-rc));
	return rc;
}

void worker_fini(struct worker *w)
{
	flexsc_loop_destroy(w->env.loop);
	listener_fini(&w->listener);
	clients_fini(&w->clients);
	cache_fini(&w->env.cache);
	log_fini(&w->env.log);
	buffers_fini(&w->env.buffers);
}
