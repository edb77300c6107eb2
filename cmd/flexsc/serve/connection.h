/* SPDX-License-Identifier: MIT */
/*
 * A client's connection.
 */
#ifndef SERVE_CONNECTION_H
#define SERVE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netinet/in.h>

#include "exchange.h"
#include "request.h"

struct sockaddr_storage;
struct worker;

/* Most requests fit; a longer head moves to a big buffer. */
#define CONNECTION_INPUT	2048

enum connection_state {
	CONNECTION_WAITING,	/* for a request, or the rest of one */
	CONNECTION_ANSWERING,	/* see exchange.c */
	CONNECTION_LINGERING,	/* until the client has read the answer */
	CONNECTION_CLOSING,	/* until nothing is pending */
};

/* Calls that may be pending. */
enum connection_op {
	OP_RECEIVE	= 0x01,
	OP_SHUTDOWN	= 0x02,
	OP_OPEN		= 0x04,
	OP_STAT		= 0x08,
	OP_LOAD		= 0x10,
	OP_SEND		= 0x20,
};

struct connection {
	struct worker *worker;
	struct connection *prev, *next;
	int fd;
	enum connection_state state;
	unsigned int ops;
	bool idle;		/* on the worker's list of idle ones */
	bool ended;		/* the client sends nothing more */
	uint64_t begun;		/* when its request's first byte came, or 0 */
	uint64_t discarded;	/* bytes thrown away while lingering */
	struct flexsc_cb receive;
	struct flexsc_cb shutdown;
	struct request request;
	struct exchange exchange;
	/*
	 * Input: the current request begins at start; up to parsed llhttp has
	 * seen it, up to end it is there.
	 */
	char *input;
	size_t size;
	size_t start;
	size_t parsed;
	size_t end;
	struct buffer *big;	/* what input is in, unless in small */
	char peer[INET6_ADDRSTRLEN];
	char small[CONNECTION_INPUT];
};

/*
 * Take a client's socket. peer is only read if there is a log. refuse: answer
 * 503 and close.
 */
void connection_start(struct worker *worker, int fd,
		      const struct sockaddr_storage *peer, bool refuse);

/* For exchange.c: mark op as pending if rc says so, else close. */
bool connection_posted(struct connection *c, enum connection_op op, int rc);

static inline bool connection_pending(const struct connection *c,
				      enum connection_op op)
{
	return c->ops & op;
}

/* For exchange.c: the head of the current request. */
static inline const char *connection_head(const struct connection *c)
{
	return c->input + c->start;
}

/* For exchange.c: the last of the answer is being sent; read on meanwhile. */
void connection_read_ahead(struct connection *c);

/* For exchange.c: the answer has been sent. */
void connection_answered(struct connection *c);

/* Close it as soon as nothing is pending, which is cancelled. */
void connection_drop(struct connection *c);

/* The last thing that each callback does. c may be gone after it. */
void connection_settle(struct connection *c);

/* From elsewhere: drop it, whatever it does. */
void connection_cut(struct connection *c);

/* From elsewhere: the worker stops; finish what was begun. */
void connection_stop(struct connection *c);

void connection_free_unused(struct worker *worker);

#endif /* SERVE_CONNECTION_H */
