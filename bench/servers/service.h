/* SPDX-License-Identifier: MIT */
/*
 * Two services, echo and http, and ways to run them as servers: a thread for each
 * connection, as one writes it first; one thread with epoll, as one writes it for speed;
 * a listener with a pool of threads. The programs know nothing of FlexSC.
 *
 *	echo-threads, echo-epoll, http-threads, http-epoll, http-pool [PORT]
 *
 * They listen on the loopback interface, and print the port.
 */
#ifndef BENCH_SERVICE_H
#define BENCH_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http.h"

/* What a service keeps for one connection. */
struct buffers {
	struct http_in in;
	bool last;		/* closed once "out" is sent */
	size_t begin, end;	/* of what is still to be sent */
	char out[4 * HTTP_ANSWER_MAX];
};

extern const struct service {
	const char *name;
	void (*begin)(struct buffers *c);
	/* Where to receive the next bytes, and how many: never 0. */
	char *(*room)(struct buffers *c, size_t *size);
	/*
	 * So many more bytes have come: write what is to be sent, as far as there is
	 * room. Again with 0 when that is sent. Nothing written: more has to
	 * come.
	 */
	void (*answer)(struct buffers *c, size_t n);
} service;

/*
 * Listen on the address and print the port; what a port of 0 is given is free.
 * It doesn't return if that fails.
 */
int service_listen(const char *program, const char *address, uint16_t port,
		   int backlog);

#endif /* BENCH_SERVICE_H */
