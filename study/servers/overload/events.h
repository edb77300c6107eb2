/* SPDX-License-Identifier: MIT */
/*
 * What http-events.c and its models have in common. A model is how the server
 * comes to know that something happened, and when (SEND, figure 4.11); all else
 * is one and the same code, so that servers differ by their model alone.
 *
 * One thread runs everything. A model's wait() is called when there is nothing
 * to do; it sleeps until something happened, and tells the server of it by the
 * server_ functions. A model that preempts calls these at any time, but between
 * hold() and release().
 */
#ifndef STUDY_EVENTS_H
#define STUDY_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/servers/http.h"

/* By descriptor: server_connections[fd]. It is never freed, only closed. */
struct connection {
	bool open;
	bool queued;		/* it is on one of the queues */
	bool over;		/* to be closed when it is taken from there */
	bool watched;		/* the model has seen it: the model's */
	bool last;		/* closed once the answer is sent */
	int next;		/* on its queue */
	int place;		/* the model's */
	uint64_t since;		/* accepted; ns, CLOCK_MONOTONIC */
	/* The answer that is being sent: its head, then bytes of the page. */
	unsigned int head, head_sent;
	unsigned int page, page_sent;
	char fields[HTTP_FIELDS_MAX];
	struct http_in in;
};

struct model {
	const char *name;
	/* When events get into the program's memory, and when it is told. */
	const char *delivery, *notification;
	/* When connections are accepted. */
	const char *accepting;
	/*
	 * Who delivers, here; NULL: nobody can. Without it the model works
	 * everywhere.
	 */
	const char *(*by)(void);
	/* False after a line on stderr. */
	bool (*begin)(int listener);
	void (*wait)(void);
	/* A call on the connection would have blocked: to send, or to receive. */
	void (*watch)(int fd, bool sending);
	/* Close the connection's descriptor. */
	void (*close)(int fd);
	/* Accept connections, or leave them in the backlog. */
	void (*admit)(bool yes);
	/* NULL, unless the model preempts. */
	void (*hold)(void);
	void (*release)(void);
};

extern const struct model model_epoll, model_send, model_ps2, model_ps1;

extern struct connection *server_connections;
extern int server_limit;	/* descriptors are below it */

uint64_t server_clock(void);

/* A connection was accepted, which doesn't block. */
void server_new(int fd, uint64_t since);
/* Something about a connection may have changed. */
void server_ready(int fd);
/* The listener has connections: accept them all. */
void server_accept(int listener);

enum serve {
	SERVE_WAITS,	/* for an event: the model watches it */
	SERVE_AGAIN,	/* there may be more to do */
	SERVE_OVER,
};

/* Serve a connection once: one answer at most. */
enum serve connection_serve(const struct model *model, int fd);

/* Make the pages, and measure how long the work of a request takes. */
void connection_begin(unsigned int work_us);

#endif /* STUDY_EVENTS_H */
