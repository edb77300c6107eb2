/* SPDX-License-Identifier: MIT */
/*
 * A client's connection, and all connections of a worker.
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
	/* Connections that wait between two requests, longest first; others. */
	struct connection *idle;
	struct connection *busy;
	struct connection *unused;
	unsigned int count;
	unsigned int max;
	bool stopping;
};

struct connection {
	struct clients *clients;
	struct connection *prev, *next;
	int fd;
	enum connection_state state;
	unsigned int ops;
	bool idle;		/* on the clients' list of idle ones */
	bool ended;		/* the client sends nothing more */
	uint64_t begun;		/* when its request's first byte came, or 0 */
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

/* Descriptors or places are short: close the longest idle one, if any. */
bool clients_shed(struct clients *clients);

/* Drop connections that wait for a request; others finish what was begun. */
void clients_stop(struct clients *clients);

/* Drop all connections, whatever they do. */
void clients_cut(struct clients *clients);

/* Called when there are no connections. */
void clients_fini(struct clients *clients);

#endif /* SERVE_CONNECTION_H */
