/* SPDX-License-Identifier: MIT */
/*
 * The core of the web servers: HTTP/1.1 of one connection, without system
 * calls. A connection says which call comes next. A driver makes the call, at a
 * time and on a thread of its choice, and tells the connection the result. So
 * all drivers do one amount of work for a request, and differ only in the time
 * and the thread of each call.
 *
 *	while (web_next(c, &call))
 *		web_done(c, make(&call));
 *
 * is a whole driver. The core answers GET and HEAD with files below a folder:
 * ranges, conditions, index.html, but no listings.
 *
 * Rules for a driver:
 * - One call of a connection is under way at a time. web_next() gives one call
 *   until web_done() has that call's result, so a driver may ask again after
 *   EAGAIN. A driver never passes EAGAIN of a RECEIVE or a SEND to web_done().
 * - Partial results, EINTR and errors are the core's business.
 * - The memory of a call's arguments belongs to the call until web_done().
 * - One thread at a time uses a connection. A driver hands a connection to
 *   another thread under a lock; the new thread sets web_connection.thread to
 *   its own web_thread before it calls web_next() or web_done().
 */
#ifndef WEBSERVER_WEB_H
#define WEBSERVER_WEB_H

#include <linux/openat2.h>
#include <linux/stat.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/clock.h"
#include "http/condition.h"
#include "http/path.h"
#include "http/request.h"
#include "http/response.h"

/* The kinds of calls, by the thing that a call may wait for. */
enum web_kind {
	WEB_RECEIVE,	/* the client's bytes */
	WEB_SEND,	/* room for bytes to the client */
	WEB_FILE,	/* a disk */
	WEB_CLOSE,	/* nothing */
	WEB_KINDS
};

struct web_call {
	enum web_kind kind;
	unsigned int nr;
	uint64_t args[6];
	/*
	 * Nanoseconds; 0: the call is waited for, however long it takes. A
	 * driver passes -ETIME to web_done() for a RECEIVE or a SEND that has
	 * had no result for so long, and may be late. It may do so for the
	 * opening of a file, which has patience, too.
	 */
	uint64_t patience;
};

/*
 * Counters of one thread. Other threads may read the counters at any time: the
 * atomics are relaxed, and publish nothing else.
 */
struct web_counts {
	_Atomic uint64_t requests;
	_Atomic uint64_t connections;
	_Atomic uint64_t calls[WEB_KINDS];	/* results of web_done() */
	/* The driver counts these. */
	_Atomic uint64_t waits;		/* epoll_wait() */
	_Atomic uint64_t watches;	/* epoll_ctl() */
	_Atomic uint64_t again;		/* EAGAIN */
	_Atomic uint64_t handed;	/* connections to other threads */
};

/* The clock and the counters of one driver's thread. */
struct web_thread {
	struct clock clock;
	struct web_counts counts;
};

/* Add one. Only the counter's own thread calls this, so no count is lost. */
static inline void web_count(_Atomic uint64_t *count)
{
	uint64_t n = atomic_load_explicit(count, memory_order_relaxed);

	atomic_store_explicit(count, n + 1, memory_order_relaxed);
}

/*
 * The settings of all connections of a process. A driver
 * sets all fields before it has connections; only loops.c clears a flag of
 * "how" when its threads begin.
 */
struct web {
	int root;		/* the folder with the files; O_PATH */
	uint64_t timeout;	/* ns: for a request, or a client's pause */
	struct limits limits;
	struct open_how how;	/* of opening a file */
};

#define WEB_FIRST	8192U	/* bytes of a file, sent with its head */
#define WEB_BODY	65536U	/* room for a message and a location */
#define WEB_HEAD_MAX	16384U	/* bytes of a request's head */
#define WEB_NAME	4096U
#define WEB_LINGER	(2 * CLOCK_SECOND)

/* The states and their arrows are in web.c. */
enum web_state {
	WEB_READING,
	WEB_OPENING,
	WEB_LOOKING,
	WEB_LOADING,
	WEB_SENDING,
	WEB_PASSING,
	WEB_DROPPING,
	WEB_SHUTTING,
	WEB_LINGERING,
	WEB_CLOSING,
	WEB_OVER
};

struct web_connection {
	struct web_thread *thread;	/* the thread that uses it now */
	struct web *web;
	int fd;
	enum web_state state;
	bool ended;			/* the client sends no more */
	unsigned int tries;		/* of opening the file */
	uint64_t begun;			/* ns: request's, lingering's; or 0 */
	uint64_t discarded;		/* bytes received while lingering */
	struct request request;
	struct response response;
	struct path path;
	struct statx stx;
	struct file own;		/* its fd is -1: no file is open */
	/* The part of the file that is loaded or sent. */
	uint64_t offset;
	size_t have, needed;
	uint64_t left;			/* bytes behind the part */
	int64_t place;			/* for sendfile() */
	const char *out;		/* what is sent */
	size_t out_left;
	/* The input: a request begins at start, the parser is at parsed. */
	size_t start, parsed, end;
	char input[2 * WEB_HEAD_MAX];
	/*
	 * An idle connection's memory is the pages that were touched: few, so
	 * the body has the place of the name, which an answer doesn't need.
	 */
	char head[RESPONSE_HEAD_MAX];	/* ends where body begins */
	union {
		char name[WEB_NAME];	/* of path, until the answer */
		char body[WEB_BODY];
	};
};

/*
 * Begin a connection of an accepted socket, which the connection will close.
 * The memory of c may hold an earlier connection that is over, or anything
 * else.
 */
void web_begin(struct web_connection *c, struct web *web,
	       struct web_thread *thread, int fd);

/* The next call. False: the connection is over, and has closed everything. */
bool web_next(struct web_connection *c, struct web_call *call);

/* Tell the connection the result of web_next()'s call: a value or -errno. */
void web_done(struct web_connection *c, int64_t ret);

/* The kind of the connection's next call. */
enum web_kind web_kind_of(const struct web_connection *c);

#endif /* WEBSERVER_WEB_H */
