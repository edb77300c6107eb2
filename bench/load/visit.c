/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "visit.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "bench/raw/loop.h"

#define BODY_MAX	(64U << 20)

static size_t get(struct bench_page *page, const char *target, bool kept)
{
	return (size_t)snprintf(page->get, sizeof(page->get),
				"GET %s HTTP/1.1\r\nHost: bench\r\n%s\r\n",
				target, kept ? "" : "Connection: close\r\n");
}

void bench_page_init(struct bench_page *page, uint32_t kib, bool kept)
{
	char target[16] = "/";

	if (kib)
		snprintf(target, sizeof(target), "/%uk", kib);
	*page = (struct bench_page){ };
	page->request_size = get(page, target, kept);
}

void bench_page_fini(struct bench_page *page)
{
	free(page->body);
}

void bench_page_of(struct bench_page *page, const char *target,
		   const unsigned char *body, size_t size)
{
	*page = (struct bench_page){
		.body = (unsigned char *)body, .size = size,
		.learned = true,
	};
	page->request_size = get(page, target, true);
}

void bench_visit_ask(struct bench_visit *visit, uint64_t due)
{
	visit->due = due;
	visit->ready = 0;
	visit->asking = true;
	visit->made = visit->closing = false;
	visit->headed = visit->page->bare;
	visit->from = 0;
	visit->to = SIZE_MAX;
	visit->sent = visit->got = 0;
	visit->wrong = NULL;
	if (!visit->headed)
		reply_init(&visit->head);
}

static bool over(struct bench_visit *visit, enum bench_end end)
{
	visit->end = end;
	return true;
}

static bool wrong(struct bench_visit *visit, enum bench_end end,
		  const char *why)
{
	visit->wrong = why;
	return over(visit, end);
}

static enum bench_end end_of(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return BENCH_REFUSED;
	case ETIMEDOUT:
		return BENCH_LATE;
	default:
		return BENCH_RESET;
	}
}

bool bench_visit_send(struct bench_visit *visit)
{
	const struct bench_page *page = visit->page;
	const char *request = page->request ?: page->get;

	while (visit->sent < page->request_size) {
		ssize_t n = send(visit->fd, request + visit->sent,
				 page->request_size - visit->sent,
				 MSG_NOSIGNAL);

		if (n < 0)
			return errno != EAGAIN && over(visit, end_of(errno));
		if (!visit->ready)
			visit->ready = bench_clock(CLOCK_MONOTONIC);
		visit->sent += (size_t)n;
	}
	return false;
}

/*
 * Allocate memory for a page that isn't known yet, and that this answer defines.
 * Returns true on failure, which ends the request.
 */
static bool learn(struct bench_visit *visit, size_t size)
{
	struct bench_page *page = visit->page;

	if (size > BODY_MAX)
		return wrong(visit, BENCH_LENGTH, "the page is too large");
	free(page->body);
	page->body = malloc(size + 1);
	page->size = size;
	return !page->body && wrong(visit, BENCH_UNSENT, "out of memory");
}

/*
 * The head is complete: learn or check the page's size. True: the request has
 * ended.
 */
static bool read_head(struct bench_visit *visit)
{
	const struct reply *head = &visit->head;

	visit->headed = true;
	if (head->status != 200)
		return wrong(visit, BENCH_STATUS,
			     "the answer isn't HTTP/1.1 200");
	if (!head->has_length)
		return wrong(visit, BENCH_HEAD,
			     "the answer has no Content-Length");
	visit->closing = !head->keep_alive;
	if (!visit->page->learned)
		return learn(visit, head->length);
	return head->length != visit->page->size &&
	       wrong(visit, BENCH_LENGTH,
		     "the answer's length differs from the page's");
}

/*
 * Consume bytes of the head; *used is their number. True: the request has
 * ended.
 */
static bool take_head(struct bench_visit *visit, const char *data, size_t n,
		      size_t *used)
{
	struct reply *head = &visit->head;

	*used = reply_parse(head, data, n);
	if (head->size > BENCH_HEAD_MAX)
		return wrong(visit, BENCH_HEAD,
			     "the answer's head has no end");
	if (head->wrong)
		return wrong(visit, BENCH_HEAD, head->wrong);
	return head->complete && read_head(visit);
}

/* Do the received bytes differ from the page, in the part that is compared? */
static bool differ(const struct bench_visit *visit, const char *data, size_t n)
{
	size_t from = visit->from > visit->got ? visit->from : visit->got;
	size_t to = visit->to < visit->got + n ? visit->to : visit->got + n;

	return from < to && memcmp(visit->page->body + from,
				   data + (from - visit->got), to - from) != 0;
}

/*
 * Consume received bytes. True: the answer is wrong, so the request has ended.
 */
static bool take(struct bench_visit *visit, const char *data, size_t n)
{
	struct bench_page *page = visit->page;
	size_t used = 0;

	if (!visit->headed && take_head(visit, data, n, &used))
		return true;
	data += used;
	n -= used;
	if (n > page->size - visit->got)
		return wrong(visit, BENCH_LENGTH,
			     "more bytes came than were requested");
	if (!n)
		return false;	/* the body may not be allocated yet */
	if (!page->learned)
		memcpy(page->body + visit->got, data, n);
	else if (differ(visit, data, n))
		return wrong(visit, BENCH_BODY, "the answer's body differs "
						"from the page");
	visit->got += n;
	return false;
}

static bool complete(const struct bench_visit *visit)
{
	return visit->headed && visit->got == visit->page->size;
}

bool bench_visit_go(struct bench_visit *visit)
{
	static _Thread_local char data[1 << 16];

	if (bench_visit_send(visit))
		return true;
	while (!complete(visit)) {
		ssize_t n = recv(visit->fd, data, sizeof(data), 0);

		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0)
			return over(visit, n ? end_of(errno) : BENCH_CLOSED);
		if (take(visit, data, (size_t)n))
			return true;
	}
	/* Pages of a trace are shared by threads, which only read them. */
	if (!visit->page->learned)
		visit->page->learned = true;
	return over(visit, BENCH_ANSWERED);
}

bool bench_visit_wait(struct bench_visit *visit, int ms)
{
	struct pollfd ready = { .fd = visit->fd };

	do {
		ready.events = visit->sent < visit->page->request_size ?
				       POLLOUT : POLLIN;
		if (poll(&ready, 1, ms) <= 0)
			return false;
	} while (!bench_visit_go(visit));
	return true;
}

const char *bench_visit_failure(const struct bench_visit *visit)
{
	static const char *const names[BENCH_ENDS] = {
		[BENCH_LATE] = "Connection timed out",
		[BENCH_REFUSED] = "Connection refused",
		[BENCH_RESET] = "Connection reset by peer",
		[BENCH_CLOSED] = "the server closed the connection",
	};

	return visit->wrong ?: names[visit->end];
}
