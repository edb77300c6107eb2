/* SPDX-License-Identifier: MIT */
/*
 * A client's connection, and all connections of a worker. On the worker's thread;
 * connection.c has the states.
 */
#ifndef SERVE_CONNECTION_H
#define SERVE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netinet/in.h>

#include "exchange.h"
#include "http/request.h"

struct sockaddr_storage;

/* Most requests fit; a longer head moves to a big buffer. */
#define CONNECTION_INPUT	2048

enum connection_state {
	CONNECTION_WAITING,	/* for a request, or the rest of one */
	CONNECTION_ANSWERING,	/* see answer.c */
	CONNECTION_LINGERING,	/* until the client has read the answer */
	CONNECTION_CLOSING,	/* until nothing is pending */
};

/* Calls that may be pending, besides its exchange's. */
enum connection_op {
	OP_RECEIVE	= 0x01,
	OP_SHUTDOWN	= 0x02,
};

/* The connections of a worker. */
struct clients {
	struct environment *env;
	/* A connection has gone. */
	void (*left)(struct clients *clients);
	/*
	 * Lists, the oldest connection first: those that have sent nothing yet, that
	 * wait for another request, that linger, and all others.
	 */
	struct connection *fresh;
	struct connection *idle;
	struct connection *lingering;
	struct connection *busy;
	struct connection *unused;
	unsigned int count;
	unsigned int refused;	/* those of "count" that are refused or linger */
	unsigned int max;	/* most others */
	unsigned int max_refused;
	bool stopping;
	uint64_t waits;		/* times a connection began to be fresh or idle */
};

struct connection {
	struct clients *clients;
	struct connection *prev, *next;
	struct connection **list;	/* the one of clients' lists that it is on */
	int fd;
	enum connection_state state;
	unsigned int ops;
	bool refused;		/* it is counted in clients->refused */
	bool ended;		/* the client sends nothing more */
	uint64_t begun;		/* when its request's first byte came, or 0 */
	uint64_t accepted;	/* when */
	uint64_t waits;		/* clients->waits when it began to be fresh or idle */
	uint64_t discarded;	/* bytes thrown away while lingering */
	struct flexsc_cb receive;
	struct flexsc_cb shutdown;
	struct request request;
	struct exchange exchange;
	/*
	 * Input: the current request begins at start; llhttp has seen it up to
	 * parsed, and it is there up to end.
	 */
	char *input;
	size_t size;
	size_t start;
	size_t parsed;
	size_t end;
	struct buffer *big;	/* where input is, unless in small */
	char peer[INET6_ADDRSTRLEN];
	char small[CONNECTION_INPUT];
};

/*
 * Take a client's socket. peer is only read if there is a log. refuse: answer
 * 503 and close.
 */
void connection_start(struct clients *clients, int fd,
		      const struct sockaddr_storage *peer, bool refuse);

/* May one more be accepted, if "coming" others are being accepted? */
static inline bool clients_have_room(const struct clients *clients,
				     unsigned int coming)
{
	return clients->count + coming < clients->max + clients->max_refused;
}

/*
 * Is there a place for one more client? If not, close the connection that has been idle
 * for the longest time. False: none is idle.
 */
bool clients_make_place(struct clients *clients);

/* Close the connection that has lingered for the longest time, if one lingers. */
void clients_make_room(struct clients *clients);

/* Out of descriptors: close a connection that lingers, or else one that is idle. */
void clients_shed(struct clients *clients);

/* Drop connections that wait for a request; others finish what was begun. */
void clients_stop(struct clients *clients);

/* Drop all connections, whatever they do. */
void clients_cut(struct clients *clients);

/* Called when there are no connections. */
void clients_fini(struct clients *clients);

#endif /* SERVE_CONNECTION_H */
