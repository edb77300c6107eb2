/* SPDX-License-Identifier: MIT */
/*
 * The core of the web servers: HTTP/1.1 of one connection, without system calls.
 * A connection says which call comes next; a driver makes the call, when and on
 * which thread it likes, and tells the result. So all drivers do one amount of
 * work for a request, and differ only in who makes which call when.
 *
 *	while (web_next(c, &call))
 *		web_done(c, make(&call));
 *
 * is a whole driver. It answers GET and HEAD with files below a folder: ranges,
 * conditions, index.html, but no listings.
 *
 * Rules for a driver:
 * - One call of a connection is under way at a time. web_next() gives the same call
 *   until web_done() has its result, so a driver may ask again after EAGAIN; it
 *   never passes EAGAIN of a RECEIVE or a SEND on.
 * - Partial results, EINTR and errors are the core's business.
 * - The memory of a call's arguments belongs to the call until web_done().
 * - One thread at a time uses a connection. Handing it on under a lock is enough;
 *   the new thread then sets web_connection.thread to its own.
 */
#ifndef WEBSERVER_WEB_H
#define WEBSERVER_WEB_H

#include <linux/openat2.h>
#include <linux/stat.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files.h"
#include "http/clock.h"
#include "http/condition.h"
#include "http/path.h"
#include "http/request.h"
#include "http/response.h"

/* What a call may wait for. */
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
	 * A RECEIVE or SEND that has had no result for so many nanoseconds is to
	 * end with -ETIME; a driver may be late.
	 */
	uint64_t patience;
};

/* Counters of one thread. Others may read them at any time. */
struct web_counts {
	_Atomic uint64_t requests;
	_Atomic uint64_t connections;
	_Atomic uint64_t calls[WEB_KINDS];	/* results that web_done() got */
	/* What a driver adds to that. */
	_Atomic uint64_t waits;		/* epoll_wait() */
	_Atomic uint64_t watches;	/* epoll_ctl() */
	_Atomic uint64_t again;		/* EAGAIN */
	_Atomic uint64_t handed;	/* connections given to another thread */
};

/* What a driver's thread has of its own. */
struct web_thread {
	struct clock clock;
	struct web_counts counts;
	struct web_thread *next;	/* command.c */
};

/* By the owning thread alone, so no other thread's count is lost. */
static inline void web_count(_Atomic uint64_t *count)
{
	uint64_t n = atomic_load_explicit(count, memory_order_relaxed);

	atomic_store_explicit(count, n + 1, memory_order_relaxed);
}

/* What all connections of a process have in common: read only, but files. */
struct web {
	int root;		/* the folder */
	bool reads;		/* large files are read and sent, not by sendfile() */
	uint64_t timeout;	/* for a request, an idle client, a stuck one; ns */
	struct limits limits;
	struct open_how how;
	struct files *files;
};

#define WEB_FIRST	8192U	/* bytes of a file that are sent with its head */
#define WEB_PART	65536U	/* bytes of a part, where files are read */
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
	struct web_thread *thread;	/* that uses the connection now */
	struct web *web;
	int fd;
	enum web_state state;
	bool ended;			/* the client sends no more */
	bool headed;			/* the head has been written */
	unsigned int tries;		/* of opening the file */
	struct dropped dropped;		/* descriptors to close */
	uint64_t begun;			/* when a request's first byte came; ns */
	uint64_t discarded;		/* bytes, while lingering */
	struct request request;
	struct response response;
	struct path path;
	struct statx stx;
	struct file *file;		/* NULL: none is open */
	struct file own;		/* file, unless the cache keeps it */
	/* The part of the file that is loaded or sent. */
	uint64_t offset;
	size_t have, needed;
	uint64_t left;			/* bytes of the answer behind the part */
	int64_t place;			/* for sendfile() */
	const char *out;		/* what is sent */
	size_t out_left;
	/* The input: a request begins at start, the parser is at parsed. */
	size_t start, parsed, end;
	char input[2 * WEB_HEAD_MAX];
	char name[WEB_NAME];
	char head[RESPONSE_HEAD_MAX];	/* ends where body begins */
	char body[WEB_PART];		/* only its first pages are touched mostly */
};

/* Begin with an accepted socket. c needn't be zero. */
void web_begin(struct web_connection *c, struct web *web,
	       struct web_thread *thread, int fd);

/* The next call. False: the connection is over, and has closed everything. */
bool web_next(struct web_connection *c, struct web_call *call);

/* The call's result: a value or -errno. */
void web_done(struct web_connection *c, int64_t ret);

/* The kind of the call that is next. */
enum web_kind web_kind_of(const struct web_connection *c);

#endif /* WEBSERVER_WEB_H */
