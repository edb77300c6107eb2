/* SPDX-License-Identifier: MIT */
/*
 * A client's connection, and all connections of a worker. Used on the worker's
 * thread. connection.c has the states.
 */
#ifndef SERVE_CONNECTION_H
#define SERVE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netinet/in.h>

#include "exchange.h"
#include "http/request.h"
#include "input.h"

struct sockaddr_storage;

enum connection_state {
	CONNECTION_WAITING,	/* waits for a request, or for the rest of one */
	CONNECTION_ANSWERING,	/* its exchange is pending; see answer.c */
	/*
	 * Stays open until the client has read the answer, or until a limit
	 * (LINGER_...) is reached.
	 */
	CONNECTION_LINGERING,
	CONNECTION_CLOSING,	/* waits until no call is pending */
};

/* Pending calls of the connection itself; its exchange has others. */
enum connection_op {
	OP_RECEIVE	= 0x01,
	OP_SHUTDOWN	= 0x02,
};

/* The connections of a worker. */
struct clients {
	struct environment *env;
	/*
	 * Called after a connection was freed, or after the last pending accept
	 * of a closed listener.
	 */
	void (*left)(struct clients *clients);
	/*
	 * Lists, each with the oldest connection first: connections that have
	 * sent nothing yet, that wait for another request, that linger, and all
	 * others.
	 */
	struct connection *fresh;
	struct connection *idle;
	struct connection *lingering;
	struct connection *busy;
	struct connection *unused;
	unsigned int count;
	unsigned int refused;	/* how many of "count" were refused or linger */
	unsigned int max;	/* limit for connections that aren't refused */
	unsigned int max_refused;
	bool stopping;
	/* number of times that a connection was put into "fresh" or "idle" */
	uint64_t waits;
};

struct connection {
	struct clients *clients;
	struct connection *prev, *next;
	struct connection **list;	/* the list in "clients" that contains it */
	int fd;
	enum connection_state state;
	unsigned int ops;
	bool refused;		/* counted in clients->refused */
	bool ended;		/* the client has closed its side */
	uint64_t begun;		/* when the first byte of the request came, or 0 */
	uint64_t accepted;	/* time of the accept */
	/* clients->waits when it was last put into "fresh" or "idle" */
	uint64_t waits;
	uint64_t discarded;	/* while lingering, up to LINGER_BYTES */
	struct flexsc_cb receive;
	struct flexsc_cb shutdown;
	struct request request;
	struct exchange exchange;
	struct input input;
	char peer[INET6_ADDRSTRLEN];
};

/*
 * Take over a client's socket. Without a log, "peer" isn't read. If "refuse" is
 * set: answer 503 and close.
 */
void connection_start(struct clients *clients, int fd,
		      const struct sockaddr_storage *peer, bool refuse);

/*
 * Is there room for one more connection, while "coming" others are being
 * accepted?
 */
static inline bool clients_have_room(const struct clients *clients,
				     unsigned int coming)
{
	return clients->count + coming < clients->max + clients->max_refused;
}

/*
 * Make sure that there is a place for one more client: if necessary, close the
 * connection that has been idle for the longest time. False: no connection is
 * idle.
 */
bool clients_make_place(struct clients *clients);

/* Close the connection that has lingered for the longest time, if any. */
void clients_make_room(struct clients *clients);

/*
 * Called when descriptors run out: close a lingering connection, or else an
 * idle one.
 */
void clients_shed(struct clients *clients);

/*
 * Drop connections that wait for a request, except for new ones. The others
 * finish their answer first.
 */
void clients_stop(struct clients *clients);

/* Drop all connections, whatever their state. */
void clients_cut(struct clients *clients);

/* Free memory. The caller guarantees that no connection is left. */
void clients_fini(struct clients *clients);

#endif /* SERVE_CONNECTION_H */
