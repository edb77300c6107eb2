/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer: its resources, its pending calls, and its end.
 * answer.h has the functions that begin one.
 */
#ifndef SERVE_EXCHANGE_H
#define SERVE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <flexsc/call.h>

#include "environment.h"
#include "http/file.h"
#include "http/path.h"
#include "http/response.h"

struct directory;
struct exchange;
struct request;

/*
 * Stages of an exchange. The stage decides what a completed call means.
 * answer.c has the transitions.
 */
enum exchange_stage {
	EXCHANGE_OPEN,
	EXCHANGE_OPEN_INDEX,
	EXCHANGE_OPEN_FOLDER,
	EXCHANGE_LOOK,
	EXCHANGE_LOAD,
	EXCHANGE_LIST,
	EXCHANGE_SEND,
	/* Stages of an exchange that has ended. */
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

/* Events that an exchange reports to its connection. */
struct exchange_events {
	/* The last part of the answer is being sent. May cut the exchange. */
	void (*ending)(struct exchange *x);
	/*
	 * The exchange has ended as EXCHANGE_SENT or EXCHANGE_CUT, and holds no
	 * resources.
	 */
	void (*done)(struct exchange *x);
	/* The process has run out of descriptors. */
	void (*short_of_fds)(struct exchange *x);
};

struct exchange {
	struct environment *env;
	const struct exchange_events *events;
	void *arg;			/* argument of the events */
	const struct request *request;
	/* valid until ending(); with a log, until the line is logged */
	const char *request_head;
	const char *peer;		/* read only if there is a log */
	int socket;
	enum exchange_stage stage;
	unsigned int pending;		/* bits of enum exchange_op */
	struct flexsc_cb open;
	struct flexsc_cb stat;
	struct flexsc_cb load;
	struct flexsc_cb send;
	struct path path;
	struct response response;
	unsigned int retries;
	bool links;			/* the pending open may follow symbolic links */
	int walk_flags;			/* flags of an open without openat2() */
	/* Without --precompressed, the next two fields are 0. */
	uint8_t accepts;		/* encodings that the client accepts, as bits */
	uint8_t encoding;		/* encoding of the file that is being opened */
	struct buffer *buffer;		/* data, first loaded, then sent */
	struct directory *directory;	/* the folder, while its names are being read */
	char *page;			/* from malloc(); sent instead of "buffer" */
	struct file *file;		/* NULL: no file is open */
	/* what "file" points to, unless the cache keeps the file */
	struct file own;
	/* The part of the file that is being loaded. */
	uint64_t offset;		/* in the file */
	size_t needed;			/* bytes to load for this part */
	size_t have;
	uint64_t left;			/* bytes of the answer after this part */
	/*
	 * The data that is being sent: "out"; or, if by_kernel is set, the file
	 * from "place" on.
	 */
	bool by_kernel;
	/* offset in the file, which the kernel advances */
	off_t place;
	struct iovec out[2];		/* the second element may be empty */
	struct msghdr message;		/* sends both elements of "out" */
	size_t head;			/* how many bytes of "out" are head, not body */
	uint64_t sent;
	struct statx stx;
};

static inline bool exchange_pending(const struct exchange *x,
				    enum exchange_op op)
{
	return x->pending & op;
}

/* Begin another request. False: no buffer is free. */
bool exchange_begin(struct exchange *x, const char *head, bool keep_alive);

/* Release the file to the cache, or close it. */
void exchange_release(struct exchange *x);

/* Release all resources of the exchange. */
void exchange_give_back(struct exchange *x);

/*
 * Cut the exchange: cancel its pending calls. done() is called when they are
 * complete.
 */
void exchange_cut(struct exchange *x);

/* Used by exchange_settle(): end an exchange that is over. */
void exchange_end(struct exchange *x);

/* Mark op as pending if rc reports success; otherwise cut x. */
static inline bool exchange_posted(struct exchange *x, enum exchange_op op,
				   int rc)
{
	if (rc == 0)
		x->pending |= op;
	else
		exchange_cut(x);
	return rc == 0;
}

/*
 * Each callback calls this first: op is no longer pending. False:
 * exchange_cut() was called for x.
 */
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
 * The function that begins an exchange calls this instead of exchange_settle().
 * False: the exchange is over already, and done() won't be called.
 */
static inline bool exchange_begun(struct exchange *x)
{
	if (!exchange_over(x))
		return true;
	exchange_give_back(x);
	return false;
}

/*
 * Each callback calls this last. If the exchange is over, done() is called here,
 * and x may have been freed after that.
 */
static inline void exchange_settle(struct exchange *x)
{
	if (exchange_over(x))
		exchange_end(x);
}

#endif /* SERVE_EXCHANGE_H */
