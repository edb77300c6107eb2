/* SPDX-License-Identifier: MIT */
/*
 * The core of the web servers: HTTP/1.1 of one connection, without system
 * calls. A connection determines its next call. A driver makes the call, at a
 * time and on a thread of its choice, and passes the result to the connection.
 * So all drivers do the same work per request, and differ only in the time and
 * the thread of each call.
 *
 * 	while (web_next(c, &call))
 * 		web_done(c, make(&call));
 *
 * is a complete driver. The core answers GET and HEAD with files below a
 * folder: it supports ranges, conditions and index.html, but no listings.
 *
 * Rules for a driver:
 * - One call of a connection is pending at a time. web_next() returns the same
 *   call until web_done() gets its result, so a driver may call it again after
 *   EAGAIN. A driver never passes EAGAIN of a RECEIVE or a SEND to web_done().
 * - The core handles partial results, EINTR and errors.
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

/* The kinds of calls, by what they may wait for. */
enum web_kind {
	WEB_RECEIVE,	/* bytes from the client */
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
	 * Nanoseconds; 0: no limit. A driver passes -ETIME to web_done() for a
	 * RECEIVE or a SEND that has had no result for so long; it may do so
	 * late. Opening a file has a limit too, which a driver may ignore.
	 */
	uint64_t patience;
};

/*
 * Counters of one thread. Other threads may read them at any time: the atomics
 * are relaxed, and publish nothing else.
 */
struct web_counts {
	_Atomic uint64_t requests;
	_Atomic uint64_t connections;
	_Atomic uint64_t calls[WEB_KINDS];	/* number of results passed to web_done() */
	/* Counted by the driver. */
	_Atomic uint64_t waits;		/* calls of epoll_wait() */
	_Atomic uint64_t watches;	/* calls of epoll_ctl() */
	_Atomic uint64_t again;		/* EAGAIN */
	_Atomic uint64_t handed;	/* connections handed to other threads */
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
 * Settings of all connections of a process. A driver sets all fields before it
 * has connections; only loops.c clears a flag of "how" when its threads start.
 */
struct web {
	int root;		/* the folder with the files; O_PATH */
	uint64_t timeout;	/* ns; for a request, or a client's pause */
	struct limits limits;
	struct open_how how;	/* arguments for opening a file */
};

#define WEB_FIRST	8192U	/* bytes of a file that are sent with its head */
#define WEB_BODY	65536U	/* room for a message and a location */
#define WEB_HEAD_MAX	16384U	/* longest head of a request */
#define WEB_NAME	4096U
#define WEB_LINGER	(2 * CLOCK_SECOND)

/* web.c has the states and their transitions. */
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
	bool ended;			/* the client has closed its side */
	unsigned int tries;		/* attempts to open the file */
	uint64_t begun;			/* ns: begin of the request, or of lingering; 0 */
	uint64_t discarded;		/* bytes received while lingering */
	struct request request;
	struct response response;
	struct path path;
	struct statx stx;
	struct file own;		/* its fd is -1 while no file is open */
	/* The part of the file that is loaded or sent. */
	uint64_t offset;
	size_t have, needed;
	uint64_t left;			/* bytes after the part */
	int64_t place;			/* for sendfile() */
	const char *out;		/* what is being sent */
	size_t out_left;
	/*
	 * The input: the current request begins at "start". The parser has
	 * reached "parsed", and received bytes end at "end".
	 */
	size_t start, parsed, end;
	char input[2 * WEB_HEAD_MAX];
	/*
	 * An idle connection occupies only those pages of its memory that were
	 * touched. To keep them few, the body overlaps the name, which an
	 * answer doesn't need.
	 */
	char head[RESPONSE_HEAD_MAX];	/* ends where body begins */
	union {
		char name[WEB_NAME];	/* the file's name, until the answer begins */
		char body[WEB_BODY];
	};
};

/*
 * Begin a connection of an accepted socket, which the connection will close.
 * The memory of c may contain an ended connection, or anything else.
 */
void web_begin(struct web_connection *c, struct web *web,
	       struct web_thread *thread, int fd);

/*
 * Get the next call. False: the connection has ended, and has closed
 * everything.
 */
bool web_next(struct web_connection *c, struct web_call *call);

/* Pass the result of web_next()'s call to the connection: a value or -errno. */
void web_done(struct web_connection *c, int64_t ret);

/* The kind of the connection's next call. */
enum web_kind web_kind_of(const struct web_connection *c);

#endif /* WEBSERVER_WEB_H */
