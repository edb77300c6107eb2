/* SPDX-License-Identifier: MIT */
/*
 * The loop of a worker, inside of nginx' own. nginx waits by a function that its
 * event module set, and that is called through a pointer; the function here
 * stands in front of it.
 *
 * Nearly all calls are over when their submission returns. For those that aren't,
 * as a read from a disk, epoll watches the loop's descriptor from then on.
 */
#include "module.h"

#include <malloc.h>

#define EXISTS_MS	60000
#define HEAP_KEPT	(16 << 20)

struct turn turn;

static ngx_int_t (*wait_for_events)(ngx_cycle_t *cycle, ngx_msec_t timer,
				    ngx_uint_t flags);

/*
 * A worker that is asked to quit waits for timers that may not be cancelled: for
 * this one, while calls are pending. nginx looks before it calls the function that
 * submits.
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

/* The loop's descriptor became readable: it is looked at each turn anyway. */
static void on_readable(ngx_event_t *event)
{
}

/* Have epoll tell when calls are complete. It asks for changes only. */
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
	/* A worker that ends doesn't miss its being closed. */
	c->read->channel = 1;
	if (ngx_add_event(c->read, NGX_READ_EVENT, NGX_CLEAR_EVENT) != NGX_OK) {
		ngx_free_connection(c);
		return NGX_ERROR;
	}
	watched = true;
	return NGX_OK;
}

/* How long may nginx sleep, if calls are pending? */
static ngx_msec_t patience(ngx_log_t *log)
{
	uint64_t ns;

	/* Without a descriptor to watch: look again soon. */
	if (watch(log) != NGX_OK || flexsc_loop_prepare(turn.loop, &ns) < 0)
		return 1;
	return ns == FLEXSC_FOREVER ? NGX_TIMER_INFINITE :
				      (ngx_msec_t)((ns + 999999) / 1000000);
}

static void run_callbacks(ngx_log_t *log)
{
	bool first = true;
	int n;

	/* Callbacks post more, which goes in the next batch. */
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
	/* NGX_TIMER_INFINITE is the greatest number. */
	return a < b ? a : b;
}

static ngx_int_t process_events(ngx_cycle_t *cycle, ngx_msec_t timer,
				ngx_uint_t flags)
{
	turn.before = turn.requests;
	turn.requests = 0;
	if (turn.pending || turn.posted) {
		run_callbacks(cycle->log);
		/* With timer_resolution nginx sleeps without a limit. */
		if (flags & NGX_UPDATE_TIME)
			timer = sooner(timer, ngx_event_find_timer());
		if (turn.pending)
			timer = sooner(timer, patience(cycle->log));
		if (is_at_once())
			timer = 0;
	}
	return wait_for_events(cycle, timer, flags);
}

/*
 * Try to receive from connections when they are accepted, as if the kernel had
 * kept them until there is a request. There mostly is, and then epoll needn't be
 * told of a connection before it waits for a second one.
 */
static void receive_early(ngx_cycle_t *cycle)
{
	ngx_listening_t *ls = cycle->listening.elts;

	for (ngx_uint_t i = 0; i < cycle->listening.nelts; i++)
		if (ls[i].connection && ls[i].type == SOCK_STREAM &&
		    ls[i].handler == ngx_http_init_connection)
			ls[i].connection->read->deferred_accept = 1;
}

static struct flexsc_loop *make_loop(ngx_log_t *log)
{
	struct flexsc_options options = FLEXSC_OPTIONS_INIT;
	struct flexsc_loop *loop;
	char why[256] = "";
	int err;

	options.engine = "uring";
	err = flexsc_loop_create(&loop, &options);
	if (!err)
		return loop;
	if (err == -EOPNOTSUPP)
		flexsc_engine_probe(options.engine, why, sizeof(why));
	ngx_log_error(NGX_LOG_WARN, log, (ngx_err_t)-err,
		      "flexsc: this worker goes on without io_uring: %s", why);
	return NULL;
}

/*
 * All requests of a turn have memory at a time, and free it at a time. libc would
 * give it back to the kernel, and have it cleared again, in each turn.
 */
static void keep_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, HEAP_KEPT / 2);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
}

ngx_int_t turn_init(ngx_cycle_t *cycle)
{
	turn.loop = make_loop(cycle->log);
	if (!turn.loop)
		return NGX_OK;
	keep_memory();
	exists.handler = on_exists;
	exists.data = &nowhere;
	exists.log = cycle->log;
	wait_for_events = ngx_event_actions.process_events;
	ngx_event_actions.process_events = process_events;
	receive_early(cycle);
	return NGX_OK;
}

void turn_fini(void)
{
	/* The process ends: its loop with it, and callbacks don't run. */
	if (turn.loop)
		flexsc_loop_submit(turn.loop);
}
