/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "visit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "bench/load/head.h"
#include "bench/raw/loop.h"

#define BODY_MAX	(64U << 20)

static size_t request(struct bench_page *page, const char *target, bool kept)
{
	return (size_t)snprintf(page->request, sizeof(page->request),
				"GET %s HTTP/1.1\r\nHost: bench\r\n%s\r\n",
				target, kept ? "" : "Connection: close\r\n");
}

void bench_page_init(struct bench_page *page, uint32_t kib, bool kept)
{
	char target[16] = "/";

	if (kib)
		snprintf(target, sizeof(target), "/%uk", kib);
	*page = (struct bench_page){ .class = BENCH_NO_CLASS };
	page->request_size = request(page, target, kept);
}

void bench_page_fini(struct bench_page *page)
{
	free(page->body);
}

void bench_page_of(struct bench_page *page, const char *target,
		   const struct bench_file *file)
{
	*page = (struct bench_page){
		.body = (unsigned char *)file->body, .size = file->size,
		.learned = true, .class = file->class,
	};
	page->request_size = request(page, target, true);
}

void bench_visit_ask(struct bench_visit *visit, uint64_t due)
{
	visit->due = due;
	visit->ready = 0;
	visit->asking = true;
	visit->made = visit->closing = visit->headed = false;
	visit->from = 0;
	visit->to = SIZE_MAX;
	visit->sent = visit->head_size = visit->got = 0;
	visit->wrong = NULL;
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

	while (visit->sent < page->request_size) {
		ssize_t n = send(visit->fd, page->request + visit->sent,
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

/* Have room for a page that is learned. True: there is none, and it is over. */
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

/* The head is complete: learn or check the page's size. True: it is over. */
static bool read_head(struct bench_visit *visit)
{
	long size = bench_head_length(visit->head, visit->head_size);

	if (!bench_head_is_right(visit->head, visit->head_size))
		return wrong(visit, BENCH_STATUS,
			     "the answer isn't HTTP/1.1 200");
	if (size < 0)
		return wrong(visit, BENCH_HEAD,
			     "the answer has no Content-Length");
	visit->closing = bench_head_closes(visit->head, visit->head_size);
	if (!visit->page->learned)
		return learn(visit, (size_t)size);
	return (size_t)size != visit->page->size &&
	       wrong(visit, BENCH_LENGTH,
		     "the answer's length isn't the page's");
}

/*
 * Take what belongs to the head; *used: how much that is. True: it is over.
 */
static bool take_head(struct bench_visit *visit, const char *data, size_t n,
		      size_t *used)
{
	size_t room = BENCH_HEAD_MAX - visit->head_size;
	size_t size, before = visit->head_size;

	*used = n < room ? n : room;
	memcpy(visit->head + before, data, *used);
	visit->head_size += *used;
	size = bench_head_size(visit->head, visit->head_size);
	if (!size)
		return visit->head_size == BENCH_HEAD_MAX &&
		       wrong(visit, BENCH_HEAD,
			     "the answer's head doesn't end");
	visit->headed = true;
	*used = size - before;
	visit->head_size = size;
	return read_head(visit);
}

/* Are the bytes that came others than the page's, where they are compared? */
static bool differ(const struct bench_visit *visit, const char *data, size_t n)
{
	size_t from = visit->from > visit->got ? visit->from : visit->got;
	size_t to = visit->to < visit->got + n ? visit->to : visit->got + n;

	return from < to && memcmp(visit->page->body + from,
				   data + (from - visit->got), to - from) != 0;
}

/* True: it is over, for the answer is wrong. */
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
			     "more came than was asked for");
	if (!n)
		return false;	/* and the body may have no memory yet */
	if (!page->learned)
		memcpy(page->body + visit->got, data, n);
	else if (differ(visit, data, n))
		return wrong(visit, BENCH_BODY, "the answer isn't the page");
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
	/* Threads share pages of a trace, and only read them. */
	if (!visit->page->learned)
		visit->page->learned = true;
	return over(visit, BENCH_ANSWERED);
}
