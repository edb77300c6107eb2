/* SPDX-License-Identifier: MIT */
/*
 * Two services, echo and http, and three ways to run them as servers: a thread
 * per connection, the simplest way; one thread with epoll, the fast way; and a
 * listener with a pool of threads. The programs don't use FlexSC.
 *
 * 	echo-threads, echo-epoll, http-threads, http-epoll, http-pool [PORT]
 *
 * They listen on the loopback interface, and print the port.
 */
#ifndef BENCH_SERVICE_H
#define BENCH_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http.h"

/* A service's state for one connection. */
struct buffers {
	struct http_in in;
	bool last;		/* close the connection when "out" has been sent */
	size_t begin, end;	/* the bytes that are still to be sent */
	char out[4 * HTTP_ANSWER_MAX];
};

extern const struct service {
	const char *name;
	void (*begin)(struct buffers *c);
	/*
	 * Return where to receive the next bytes, and how many: at least one.
	 */
	char *(*room)(struct buffers *c, size_t *size);
	/*
	 * Process n more received bytes: write the answer, as far as there is
	 * room. Called again with n = 0 when that was sent. If nothing was
	 * written, more bytes are needed.
	 */
	void (*answer)(struct buffers *c, size_t n);
} service;

/*
 * Listen on the address and print the port; port 0 selects a free one. Exits on
 * failure.
 */
int service_listen(const char *program, const char *address, uint16_t port,
		   int backlog);

#endif /* BENCH_SERVICE_H */
