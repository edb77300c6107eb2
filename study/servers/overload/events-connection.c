/* SPDX-License-Identifier: MIT */
/*
 * A connection of http-events.c: receives, computes a request's work, and
 * sends, until a call would block.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "events.h"

#define KIB		1024U
#define PAGE_MAX	1024U	/* KiB */

static char pages[PAGE_MAX * KIB];
static uint64_t work_steps;	/* computation per request */

/* Makes no system calls, because some models could get events during a call. */
static void work(uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++)
		__asm__ volatile("" : "+r" (i));
}

void connection_begin(unsigned int work_us)
{
	const uint64_t steps = 100000;
	uint64_t best = UINT64_MAX;

	http_page(pages, sizeof(pages));
	for (int i = 0; work_us && i < 100; i++) {
		uint64_t begin = server_clock(), took;

		work(steps);
		took = server_clock() - begin;
		if (took && took < best)
			best = took;
	}
	work_steps = work_us * 1000ULL * steps / best;
}

static void begin_answer(struct connection *c, struct http_request *request)
{
	if (request->status == 200 && request->kib > PAGE_MAX)
		request->status = 404;
	c->page = 0;
	if (request->status == 200) {
		work(work_steps);
		c->page = request->kib * KIB;
	}
	c->head = (unsigned int)http_head(request, c->page, c->fields);
	if (request->head)
		c->page = 0;
	c->head_sent = c->page_sent = 0;
	c->last = !request->keep;
}

/* 1: the answer was sent; 0: no room; negative: the connection has ended. */
static int send_answer(int fd, struct connection *c)
{
	while (c->head_sent < c->head || c->page_sent < c->page) {
		struct iovec parts[] = {
			{ c->fields + c->head_sent, c->head - c->head_sent },
			{ pages + c->page_sent, c->page - c->page_sent },
		};
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
		ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);
		unsigned int of_head = c->head - c->head_sent;

		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		if ((size_t)n < of_head)
			of_head = (unsigned int)n;
		c->head_sent += of_head;
		c->page_sent += (unsigned int)n - of_head;
	}
	c->head = c->page = 0;
	return c->last ? -1 : 1;
}

/*
 * 1: an answer has to be sent; 0: nothing has arrived; negative: the connection
 * has ended.
 */
static int take_request(int fd, struct connection *c)
{
	struct http_request request;

	while (!http_next(&c->in, &request)) {
		size_t room = http_room(&c->in);
		ssize_t n = recv(fd, c->in.buf + c->in.end, room, 0);

		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 0 : -1;
		c->in.end += (size_t)n;
	}
	begin_answer(c, &request);
	return 1;
}

enum serve connection_serve(const struct model *model, int fd)
{
	struct connection *c = &server_connections[fd];
	bool sending;
	int done = 1;

	if (!c->head)
		done = take_request(fd, c);
	sending = done > 0;
	if (sending)
		done = send_answer(fd, c);
	if (done < 0)
		return SERVE_OVER;
	if (done)
		return SERVE_AGAIN;
	model->watch(fd, sending);
	return SERVE_WAITS;
}
