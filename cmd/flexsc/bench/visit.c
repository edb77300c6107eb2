/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "visit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "loop.h"

#define BODY_MAX	(64U << 20)

void bench_page_init(struct bench_page *page, uint32_t kib, bool kept)
{
	char target[16] = "";

	if (kib)
		snprintf(target, sizeof(target), "%uk", kib);
	*page = (struct bench_page){ };
	page->request_size = (size_t)snprintf(
		page->request, sizeof(page->request),
		"GET /%s HTTP/1.1\r\nHost: bench\r\n%s\r\n", target,
		kept ? "" : "Connection: close\r\n");
}

void bench_page_fini(struct bench_page *page)
{
	free(page->body);
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

/* False: there is no room, or the end. */
static bool push(struct bench_visit *visit, int *err)
{
	const struct bench_page *page = visit->page;

	*err = 0;
	while (visit->sent < page->request_size) {
		ssize_t n = send(visit->fd, page->request + visit->sent,
				 page->request_size - visit->sent,
				 MSG_NOSIGNAL);

		if (n < 0) {
			*err = errno == EAGAIN ? 0 : errno;
			return false;
		}
		if (!visit->connected)
			visit->connected = bench_clock(CLOCK_MONOTONIC);
		visit->sent += (size_t)n;
	}
	return true;
}

/* The head is complete: learn or check the page's size. */
static const char *read_head(struct bench_visit *visit)
{
	static const char status[] = "HTTP/1.1 200 ";
	static const char field[] = "\r\nContent-Length: ";
	struct bench_page *page = visit->page;
	const char *length = strstr(visit->head, field);
	unsigned long size;

	if (strncmp(visit->head, status, sizeof(status) - 1) != 0)
		return "the answer isn't HTTP/1.1 200";
	if (!length)
		return "the answer has no Content-Length";
	size = strtoul(length + sizeof(field) - 1, NULL, 10);
	if (page->learned)
		return size == page->size ?
			       NULL : "the answer's length isn't the page's";
	if (size > BODY_MAX)
		return "the page is too large";
	free(page->body);
	page->body = malloc(size + 1);
	page->size = size;
	return page->body ? NULL : "out of memory";
}

/* Take what belongs to the head; how much that is. */
static size_t take_head(struct bench_visit *visit, const char *data, size_t n,
			const char **wrong)
{
	size_t room = BENCH_HEAD_MAX - 1 - visit->head_size;
	size_t more = n < room ? n : room;
	char *end;

	memcpy(visit->head + visit->head_size, data, more);
	visit->head[visit->head_size + more] = '\0';
	end = strstr(visit->head, "\r\n\r\n");
	if (!end) {
		visit->head_size += more;
		if (visit->head_size == BENCH_HEAD_MAX - 1)
			*wrong = "the answer's head doesn't end";
		return more;
	}
	visit->headed = true;
	more = (size_t)(end + 4 - visit->head) - visit->head_size;
	visit->head_size += more;
	*wrong = read_head(visit);
	return more;
}

static const char *take(struct bench_visit *visit, const char *data, size_t n)
{
	struct bench_page *page = visit->page;
	const char *wrong = NULL;
	size_t used;

	if (!visit->headed) {
		used = take_head(visit, data, n, &wrong);
		data += used;
		n -= used;
	}
	if (wrong || !n)
		return wrong;
	if (n > page->size - visit->got)
		return "more came than was asked for";
	if (!page->learned)
		memcpy(page->body + visit->got, data, n);
	else if (memcmp(page->body + visit->got, data, n) != 0)
		return "the answer isn't the page";
	visit->got += n;
	return NULL;
}

static bool complete(struct bench_visit *visit)
{
	return visit->headed && visit->got == visit->page->size;
}

bool bench_visit_go(struct bench_visit *visit, enum bench_end *end,
		    const char **wrong)
{
	static char data[1 << 16];
	ssize_t n;
	int err;

	*wrong = NULL;
	if (!push(visit, &err)) {
		*end = end_of(err);
		return err;
	}
	while (!complete(visit)) {
		n = recv(visit->fd, data, sizeof(data), 0);
		if (n < 0 && errno == EAGAIN)
			return false;
		*end = n < 0 ? end_of(errno) : BENCH_CLOSED;
		if (n <= 0)
			return true;
		*wrong = take(visit, data, (size_t)n);
		if (*wrong)
			return true;
	}
	visit->page->learned = true;
	*end = BENCH_ANSWERED;
	return true;
}
