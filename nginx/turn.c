/* SPDX-License-Identifier: MIT */
/*
 * A worker's loop inside nginx' own. nginx waits for events through a function
 * pointer of its event module, which is epoll's. The module replaces that
 * pointer by process_events(), which runs the loop and then calls the event
 * module's function.
 *
 * Nearly all calls are complete when their submission returns. As soon as one
 * isn't, such as a read from a disk, epoll watches the loop's descriptor.
 */
#include "module.h"

#include <malloc.h>
#include <sched.h>

#include "lib/base/cores.h"

#define EXISTS_MS	60000
#define HEAP_KEPT	(16 << 20)

struct turn turn;

static ngx_int_t (*wait_for_events)(ngx_cycle_t *cycle, ngx_msec_t timer,
				    ngx_uint_t flags);

/*
 * A timer that keeps a worker alive while calls are pending: a worker that
 * quits waits for timers that aren't cancelable. The timer is set when a call
 * is posted, because nginx checks its timers before process_events() submits
 * calls.
 */
static ngx_event_t exists;
static ngx_connection_t nowhere = { .fd = (ngx_socket_t)-1 };

static void on_exists(ngx_event_t *event)
{
	if (turn.pending)
		ngx_add_timer(event, EXISTS_MS);
}

void turn_posted(void)
{
	turn.posted++;
	turn.pending++;
	exists.cancelable = 0;
	if (!exists.timer_set)
		ngx_add_timer(&exists, EXISTS_MS);
}

/*
 * The loop's descriptor is readable. process_events() runs the loop in each
 * turn while calls are pending, so nothing is left to do here.
 */
static void on_readable(ngx_event_t *event)
{
}

/*
 * Add the loop's descriptor to epoll, edge-triggered, to be notified when calls
 * complete.
 */
static ngx_int_t watch(ngx_log_t *log)
{
	static bool watched;
	ngx_connection_t *c;
	int fd;

	if (watched)
		return NGX_OK;
	fd = flexsc_loop_fd(turn.loop);
	if (fd < 0)
		return NGX_ERROR;
	c = ngx_get_connection(fd, log);
	if (!c)
		return NGX_ERROR;
	c->read->handler = on_readable;
	c->read->log = log;
	/* Keep nginx from reporting this connection as left open at exit. */
	c->read->channel = 1;
	if (ngx_add_event(c->read, NGX_READ_EVENT, NGX_CLEAR_EVENT) != NGX_OK) {
		ngx_free_connection(c);
		return NGX_ERROR;
	}
	watched = true;
	return NGX_OK;
}

/* How long nginx may sleep while calls are pending, in milliseconds. */
static ngx_msec_t patience(ngx_log_t *log)
{
	uint64_t ns;

	/* epoll can't watch the loop: check again after 1 ms. */
	if (watch(log) != NGX_OK || flexsc_loop_prepare(turn.loop, &ns) < 0)
		return 1;
	return ns == FLEXSC_FOREVER ? NGX_TIMER_INFINITE :
				      (ngx_msec_t)((ns + 999999) / 1000000);
}

static void run_callbacks(ngx_log_t *log)
{
	bool first = true;
	int n;

	/* Calls that callbacks post are submitted in the next batch. */
	while (turn.posted || (first && turn.pending)) {
		turn.posted = 0;
		first = false;
		n = flexsc_loop_dispatch(turn.loop);
		if (n < 0)
			ngx_log_error(NGX_LOG_ALERT, log, (ngx_err_t)-n,
				      "flexsc: the loop failed");
	}
	exists.cancelable = !turn.pending;
}

static bool is_at_once(void)
{
	return !ngx_queue_empty(&ngx_posted_events) ||
	       !ngx_queue_empty(&ngx_posted_next_events) ||
	       (ngx_exiting && ngx_event_no_timers_left() == NGX_OK);
}

static ngx_msec_t sooner(ngx_msec_t a, ngx_msec_t b)
{
	/* "No limit" (NGX_TIMER_INFINITE) is the largest value. */
	return a < b ? a : b;
}

static ngx_int_t process_events(ngx_cycle_t *cycle, ngx_msec_t timer,
				ngx_uint_t flags)
{
	turn.before = turn.requests;
	if (turn.apart && turn.pending > turn.before)
		turn.before = turn.pending;
	turn.requests = 0;
	if (turn.pending || turn.posted) {
		run_callbacks(cycle->log);
		/*
		 * Callbacks may have set timers, so look for the next one
		 * again; but not with timer_resolution, with which nginx sleeps
		 * without a time limit.
		 */
		if (flags & NGX_UPDATE_TIME)
			timer = sooner(timer, ngx_event_find_timer());
		if (turn.pending)
			timer = sooner(timer, patience(cycle->log));
		if (is_at_once())
			timer = 0;
	}
	early_watch();
	return wait_for_events(cycle, timer, flags);
}

/*
 * Move the worker to the cores that the list lacks; "before" gets those that it had.
 * False: worker_cpu_affinity allows it no other core.
 */
static bool leave(const char *kernel_cores, cpu_set_t *before, ngx_log_t *log)
{
	char why[120];
	cpu_set_t rest;

	if (!sched_getaffinity(0, sizeof(*before), before) &&
	    !flexsc__cores_split(kernel_cores, &rest, why, sizeof(why)) &&
	    !sched_setaffinity(0, sizeof(rest), &rest))
		return true;
	ngx_log_error(NGX_LOG_WARN, log, 0, "flexsc_kernel_cores %s has no effect "
		      "on this worker, which may run on these cores only: see "
		      "worker_cpu_affinity", kernel_cores);
	return false;
}

static struct flexsc_loop *make_loop(const char *kernel_cores, ngx_log_t *log)
{
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;
	struct flexsc_loop *loop;
	char why[256] = "";
	cpu_set_t before;
	int err;

	options.engine = "uring";
	if (kernel_cores && leave(kernel_cores, &before, log))
		options.kernel_cores = kernel_cores;
	err = flexsc_loop_create(&loop, &options);
	turn.apart = options.kernel_cores && !err && !flexsc_loop_why(loop);
	/* Without a poller, the worker makes its calls itself, and may use all its cores. */
	if (options.kernel_cores && !turn.apart)
		sched_setaffinity(0, sizeof(before), &before);
	if (!err && options.kernel_cores && !turn.apart)
		ngx_log_error(NGX_LOG_WARN, log, 0, "flexsc_kernel_cores %s: %s",
			      kernel_cores, flexsc_loop_why(loop));
	if (!err)
		return loop;
	if (err == -EOPNOTSUPP)
		flexsc_engine_probe(options.engine, why, sizeof(why));
	ngx_log_error(NGX_LOG_WARN, log, (ngx_err_t)-err,
		      "flexsc: this worker runs without io_uring%s%s", *why ? ": " : "",
		      why);
	return NULL;
}

/*
 * Keep freed memory. The requests of a turn allocate together and free
 * together. By default libc returns that memory to the kernel in each turn, and
 * the kernel clears it for the next one.
 */
static void keep_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, HEAP_KEPT / 2);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
}

ngx_int_t turn_init(ngx_cycle_t *cycle, const char *kernel_cores)
{
	turn.loop = make_loop(kernel_cores, cycle->log);
	if (!turn.loop)
		return NGX_OK;
	keep_memory();
	exists.handler = on_exists;
	exists.data = &nowhere;
	exists.log = cycle->log;
	wait_for_events = ngx_event_actions.process_events;
	ngx_event_actions.process_events = process_events;
	early_init(cycle);
	return NGX_OK;
}

void turn_fini(void)
{
	/*
	 * Submit the posted calls. The process ends right after, so their
	 * callbacks don't run any more.
	 */
	if (turn.loop)
		flexsc_loop_submit(turn.loop);
}
