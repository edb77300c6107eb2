/* SPDX-License-Identifier: MIT */
/*
 * The interface between http-events.c and its models. A model is a way to be
 * notified of events, and the time of that notification (SEND, figure 4.11).
 * All other code is shared, so that servers differ only in their models.
 *
 * One thread runs everything. A model's wait() is called when the server is
 * idle. It sleeps until an event, and reports events through the server_
 * functions. A model that preempts the server may call these functions at any
 * time, except between hold() and release().
 */
#ifndef STUDY_EVENTS_H
#define STUDY_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/servers/http.h"

/* Indexed by descriptor: server_connections[fd]. Never freed, only closed. */
struct connection {
	bool open;
	bool queued;		/* on one of the queues */
	bool over;		/* to be closed when it is dequeued */
	bool watched;		/* the model watches it; set by the model */
	bool last;		/* to be closed after the answer */
	int next;		/* next on its queue */
	int place;		/* for the model's use */
	uint64_t since;		/* time of the accept; ns, CLOCK_MONOTONIC */
	/* The answer that is being sent: its head, then bytes of the page. */
	unsigned int head, head_sent;
	unsigned int page, page_sent;
	char fields[HTTP_FIELDS_MAX];
	struct http_in in;
};

struct model {
	const char *name;
	/*
	 * When events are stored in the program's memory, and when it is
	 * notified.
	 */
	const char *delivery, *notification;
	/* When connections are accepted. */
	const char *accepting;
	/*
	 * Which component delivers events here; NULL: none can. A model without
	 * this function works everywhere.
	 */
	const char *(*by)(void);
	/* Returns false after a message. */
	bool (*begin)(int listener);
	void (*wait)(void);
	/* Report (at least) when the connection is ready to send, or to receive. */
	void (*watch)(int fd, bool sending);
	/* Close the connection's descriptor. */
	void (*close)(int fd);
	/* yes: accept connections; otherwise leave them in the backlog. */
	void (*admit)(bool yes);
	/* NULL, unless the model preempts. */
	void (*hold)(void);
	void (*release)(void);
};

extern const struct model model_epoll, model_send, model_ps2, model_ps1;

extern struct connection *server_connections;
extern int server_limit;	/* all descriptors are below it */

uint64_t server_clock(void);

/* A non-blocking connection was accepted. */
void server_new(int fd, uint64_t since);
/* An event of a connection may have occurred. */
void server_ready(int fd);
/* The listener has connections: accept all. */
void server_accept(int listener);

enum serve {
	SERVE_WAITS,	/* waits for an event, which the model watches */
	SERVE_AGAIN,	/* may have more to do */
	SERVE_OVER,
};

/* Serve a connection once: at most one answer. */
enum serve connection_serve(const struct model *model, int fd);

/* Make the pages, and calibrate the computation of a request. */
void connection_begin(unsigned int work_us);

#endif /* STUDY_EVENTS_H */
