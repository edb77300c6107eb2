/* SPDX-License-Identifier: MIT */
/*
 * A module for an unmodified nginx: static files and answers with fewer system
 * calls and fewer mode switches. All of it runs on the one thread of a worker.
 *
 *	module.c	directives; a worker begins and ends
 *	turn.c		the worker's loop; the end of nginx' turns
 *	early.c		the first receive of a connection
 *	file.c		static files: open, look, read, close
 *	keep.c		small files that are kept open
 *	send.c		answers: collected in a turn, sent together
 *
 * What the module doesn't do itself it leaves to nginx as it found it: a request
 * that is out of the ordinary is declined before anything was done for it, or
 * goes on by nginx' own functions.
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

/* Settings of all of nginx. */
struct everywhere {
	ngx_flag_t used;	/* "flexsc on" is somewhere */
	ngx_int_t keep;		/* flexsc_keep */
};

extern ngx_module_t ngx_http_flexsc_module;

static inline const struct location *location_of(ngx_http_request_t *r)
{
	return ngx_http_get_module_loc_conf(r, ngx_http_flexsc_module);
}

/* turn.c */

/*
 * A turn of nginx is one pass of its loop: it waits for events, and handles them.
 * Calls that are posted meanwhile are submitted together at the turn's end, and
 * their callbacks run then, before nginx waits again.
 */
struct turn {
	struct flexsc_loop *loop;	/* NULL: nginx is left alone */
	ngx_uint_t posted;		/* calls since the last submission */
	ngx_uint_t pending;		/* calls whose callbacks haven't run */
	ngx_uint_t requests, before;	/* in this turn, and in the last one */
};

extern struct turn turn;

/* A worker begins. Without io_uring it is NGX_OK, too, and turn.loop is NULL. */
ngx_int_t turn_init(ngx_cycle_t *cycle);
/* A worker ends. Calls that were posted are still submitted. */
void turn_fini(void);

/* A call has been posted. Its callback has to call turn_completed(). */
void turn_posted(void);

static inline void turn_completed(void)
{
	turn.pending--;
}

/*
 * Has this turn, or the last one, so many requests that collecting their calls
 * pays? For one request alone each batch would be a mode switch more.
 */
static inline bool turn_is_busy(void)
{
	return turn.requests > 2 || turn.before > 2;
}

/* early.c */

/* A worker begins, and receives from a connection when it accepts it. */
void early_init(ngx_cycle_t *cycle);
/* nginx is about to wait: epoll is to watch the connections that are left. */
void early_watch(void);

/* file.c */

/* A content handler, which has to run right before nginx' for static files. */
ngx_int_t file_handler(ngx_http_request_t *r);

/* keep.c */

struct kept;

/* A worker begins, with so many places; none: nothing is kept. */
ngx_int_t keep_init(ngx_uint_t files, ngx_log_t *log);
/* What is kept under this name and still true, and what the name leads to. */
struct kept *keep_find(const ngx_str_t *name, struct stat *st);
/* Keep a file that has just been opened. NULL: it is the caller's to close. */
struct kept *keep_add(const ngx_str_t *name, const struct stat *st, int fd,
		      ngx_log_t *log);
int keep_fd(const struct kept *k);
/* The other side of finding and of adding. NULL is fine. */
void keep_release(struct kept *k);

/* send.c */

ngx_int_t send_init(ngx_cycle_t *cycle);
/* The rest of this request's answer may be collected. */
void send_allow(ngx_http_request_t *r);

#endif /* FLEXSC_NGINX_MODULE_H */
