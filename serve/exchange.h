/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer: what it has, what is pending of it, and how it
 * ends. What it does, answer.h begins.
 */
#ifndef SERVE_EXCHANGE_H
#define SERVE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <linux/stat.h>

#include <flexsc/call.h>

#include "environment.h"
#include "http/file.h"
#include "http/path.h"
#include "http/response.h"

struct directory;
struct exchange;
struct request;

/*
 * Stages of an exchange; a call's end means what its stage says. The arrows are
 * in answer.c.
 */
enum exchange_stage {
	EXCHANGE_OPEN,
	EXCHANGE_OPEN_INDEX,
	EXCHANGE_OPEN_FOLDER,
	EXCHANGE_LOOK,
	EXCHANGE_LOAD,
	EXCHANGE_LIST,
	EXCHANGE_SEND,
	/* Stages of an exchange that is over. */
	EXCHANGE_SENT,
	EXCHANGE_CUT,
};

/* Calls that may be pending. */
enum exchange_op {
	OP_OPEN	= 0x01,
	OP_STAT	= 0x02,
	OP_LOAD	= 0x04,
	OP_SEND	= 0x08,
};

/* Events that an exchange tells its connection. */
struct exchange_events {
	/* The last of the answer is being sent. May cut the exchange. */
	void (*ending)(struct exchange *x);
	/*
	 * The exchange is over: EXCHANGE_SENT or EXCHANGE_CUT; it has
	 * nothing.
	 */
	void (*done)(struct exchange *x);
	/* The process is out of descriptors. */
	void (*short_of_fds)(struct exchange *x);
};

struct exchange {
	struct environment *env;
	const struct exchange_events *events;
	void *arg;			/* for the events */
	const struct request *request;
	const char *request_head;	/* stays until ending(), or the log */
	const char *peer;		/* only read if there is a log */
	int socket;
	enum exchange_stage stage;
	unsigned int pending;		/* of enum exchange_op */
	struct flexsc_cb open;
	struct flexsc_cb stat;
	struct flexsc_cb load;
	struct flexsc_cb send;
	struct path path;
	struct response response;
	unsigned int retries;
	bool links;			/* the open follows symbolic links */
	int walk_flags;			/* of an open without openat2() */
	struct buffer *buffer;		/* data that is loaded, then sent */
	struct directory *directory;	/* while its names are read */
	char *page;			/* from malloc(), sent instead */
	struct file *file;		/* NULL: none is open */
	struct file own;		/* file, unless the cache keeps it */
	/* The part of the file that is being loaded. */
	uint64_t offset;		/* in the file */
	size_t needed;			/* bytes it shall have */
	size_t have;
	uint64_t left;			/* bytes of the answer behind it */
	/* Data that is being sent: out, or the rest of the file. */
	bool by_kernel;
	off_t place;			/* the kernel's own offset then */
	struct iovec out[2];		/* the second may be empty */
	struct msghdr message;		/* of both */
	size_t head;			/* of the bytes sent, not body */
	uint64_t sent;
	struct statx stx;
};

static inline bool exchange_pending(const struct exchange *x,
				    enum exchange_op op)
{
	return x->pending & op;
}

/* Start the exchange over. False: there is no buffer. */
bool exchange_begin(struct exchange *x, const char *head, bool keep_alive);

/* Give back the file: to the cache, or to the kernel. */
void exchange_release(struct exchange *x);

/* Give back all that the exchange has. */
void exchange_give_back(struct exchange *x);

/*
 * Give the exchange up: cancel what is pending. done() comes when that is
 * complete.
 */
void exchange_cut(struct exchange *x);

/* End an exchange that is over, for exchange_settle(). */
void exchange_end(struct exchange *x);

/* Mark op as pending if rc says so, else cut. */
static inline bool exchange_posted(struct exchange *x, enum exchange_op op,
				   int rc)
{
	if (rc == 0)
		x->pending |= op;
	else
		exchange_cut(x);
	return rc == 0;
}

/* A callback's first thing: op isn't pending. False: x has been cut. */
static inline bool exchange_completed(struct exchange *x, enum exchange_op op)
{
	x->pending &= ~op;
	return x->stage != EXCHANGE_CUT;
}

static inline bool exchange_over(const struct exchange *x)
{
	return x->stage >= EXCHANGE_SENT && !x->pending;
}

/*
 * The function that begins an exchange does this instead of exchange_settle().
 * False: the exchange is over already, and done() won't be called.
 */
static inline bool exchange_begun(struct exchange *x)
{
	if (!exchange_over(x))
		return true;
	exchange_give_back(x);
	return false;
}

/* A callback's last thing: done(), if that was the end. x may be gone then. */
static inline void exchange_settle(struct exchange *x)
{
	if (exchange_over(x))
		exchange_end(x);
}

#endif /* SERVE_EXCHANGE_H */
