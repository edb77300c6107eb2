/* SPDX-License-Identifier: MIT */
/*
 * A module for an unmodified nginx: static files and answers with fewer system
 * calls and fewer mode switches. Everything runs on the one thread of a worker.
 *
 * 	module.c	directives; start and exit of a worker
 * 	turn.c		the worker's loop; the end of nginx' turns
 * 	early.c		the first receive of a connection
 * 	file.c		static files: open, look, read, close
 * 	keep.c		small files that are kept open
 * 	send.c		answers: collected in a turn, sent together
 *
 * The module leaves to nginx whatever it doesn't handle. An unusual request is
 * declined before anything was done for it, or continues with nginx' own
 * functions.
 */
#ifndef FLEXSC_NGINX_MODULE_H
#define FLEXSC_NGINX_MODULE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <flexsc/flexsc.h>

/* Directives of a location. */
struct location {
	ngx_flag_t on;		/* flexsc */
	ngx_flag_t send;	/* flexsc_send */
	size_t whole;		/* flexsc_whole */
};

/* Settings of the whole configuration. */
struct everywhere {
	ngx_flag_t used;	/* some location has "flexsc on" */
	ngx_int_t keep;		/* flexsc_keep */
	ngx_str_t kernel_cores;	/* flexsc_kernel_cores; terminated by 0; or empty */
};

extern ngx_module_t ngx_http_flexsc_module;

static inline const struct location *location_of(ngx_http_request_t *r)
{
	return ngx_http_get_module_loc_conf(r, ngx_http_flexsc_module);
}

/* turn.c */

/*
 * A turn is one pass of nginx' event loop: it waits for events, and handles
 * them. Calls posted during a turn are submitted together at its end. Their
 * callbacks run then, before nginx waits again.
 */
struct turn {
	struct flexsc_loop *loop;	/* NULL: the module does nothing */
	ngx_uint_t posted;		/* calls posted since the last submission */
	ngx_uint_t pending;		/* calls whose callbacks haven't run */
	/*
	 * Requests in this turn, and in the previous one. Instead of the latter, the
	 * number of calls that the previous turn left pending, if that is larger: on
	 * other cores calls complete in later turns.
	 */
	ngx_uint_t requests, before;
	bool apart;			/* calls execute on flexsc_kernel_cores */
};

extern struct turn turn;

/*
 * Called when a worker starts: create its loop. Its calls execute on these cores,
 * unless the list is NULL, and the worker itself leaves them. Without io_uring,
 * turn.loop stays NULL, and this still returns NGX_OK.
 */
ngx_int_t turn_init(ngx_cycle_t *cycle, const char *kernel_cores);
/* Called when a worker exits. Submits the calls that were posted. */
void turn_fini(void);

/* Count a posted call. Its callback has to call turn_completed(). */
void turn_posted(void);

static inline void turn_completed(void)
{
	turn.pending--;
}

/*
 * Has this turn, or the previous one, enough requests for collecting calls to
 * pay off? For a single request each batch would be an additional mode switch.
 */
static inline bool turn_is_busy(void)
{
	return turn.requests > 2 || turn.before > 2;
}

/* early.c */

/*
 * Called when a worker starts: from now on, receive from connections as soon as
 * they are accepted.
 */
void early_init(ngx_cycle_t *cycle);
/* Called before nginx waits: add the remaining connections to epoll. */
void early_watch(void);

/* file.c */

/*
 * A content handler, which has to run right before nginx' handler for static
 * files.
 */
ngx_int_t file_handler(ngx_http_request_t *r);

/* keep.c */

struct kept;

/* Called when a worker starts: keep at most "files" files; 0: none. */
ngx_int_t keep_init(ngx_uint_t files, ngx_log_t *log);
/*
 * Return the kept file if the name still leads to it, and set *st; else NULL.
 */
struct kept *keep_find(const ngx_str_t *name, struct stat *st);
/*
 * Keep a file that was just opened. NULL: it isn't kept, and the caller has to
 * close it.
 */
struct kept *keep_add(const ngx_str_t *name, const struct stat *st, int fd,
		      ngx_log_t *log);
int keep_fd(const struct kept *k);
/* Release a file of keep_find() or keep_add(). NULL is allowed. */
void keep_release(struct kept *k);

/* send.c */

ngx_int_t send_init(ngx_cycle_t *cycle);
/* Allow the rest of this request's answer to be collected. */
void send_allow(ngx_http_request_t *r);

#endif /* FLEXSC_NGINX_MODULE_H */
