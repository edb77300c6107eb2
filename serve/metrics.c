/* SPDX-License-Identifier: MIT */
/*
 * Runs on a thread of its own, with plain system calls, except for
 * metrics_start() and metrics_stop(). The thread serves one client at a time and
 * only for CLIENT_TIME, so a stuck client can't block others for long. Of the
 * workers it reads only their counters.
 */
#define _GNU_SOURCE
#include "metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <flexsc/flexsc.h>
#include <flexsc/stats.h>

#include "exposition.h"
#include "worker.h"
#include "http/clock.h"
#include "http/request.h"
#include "http/response.h"

#define CLIENT_TIME	(2 * CLOCK_SECOND)
#define PAUSE		100	/* milliseconds, when accept4() fails */
#define REQUEST_MAX	8192

/*
 * Wait until fd is ready, at most until the clock_ticks() value "until" (0: no
 * limit). False: the time is over, or the thread has to end.
 */
static bool ready(const struct metrics *m, int fd, short events, uint64_t until)
{
	struct pollfd fds[] = {
		{ .fd = m->stop, .events = POLLIN },
		{ .fd = fd, .events = events },
	};
	uint64_t now = clock_ticks();
	int timeout = -1;

	if (until)
		timeout = until > now ? (int)((until - now) / 1000000) + 1 : 0;
	return poll(fds, 2, timeout) > 0 && !fds[0].revents;
}

static void send_all(const struct metrics *m, int fd, const char *p,
		     size_t length, uint64_t until)
{
	while (length && ready(m, fd, POLLOUT, until)) {
		ssize_t n = send(fd, p, length, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return;
		if (n > 0) {
			p += n;
			length -= (size_t)n;
		}
	}
}

static uint64_t sum(const struct metrics *m, size_t offset)
{
	const struct worker *w;
	uint64_t n = 0;

	for (w = m->first; w; w = w->next)
		n += counts_read((const void *)((const char *)&w->env.counts +
						offset));
	return n;
}

#define SUM(m, field)	sum(m, offsetof(struct counts, field))

static void write_server(const struct metrics *m, FILE *out)
{
	const struct log_file *log = m->first->env.settings->log_file;
	uint64_t closed;

	exposition_family(out, "flexsc_serve_responses",
			  "responses, complete or cut off", false);
	for (unsigned int i = 0; i < COUNTS_CLASSES; i++)
		fprintf(out, "flexsc_serve_responses_total{code=\"%uxx\"} %"
			PRIu64 "\n", i + 1,
			sum(m, offsetof(struct counts, responses) +
			       i * sizeof(uint64_t)));
	exposition_family(out, "flexsc_serve_sent_bytes",
			  "bytes of responses, with their heads", false);
	fprintf(out, "flexsc_serve_sent_bytes_total %" PRIu64 "\n",
		SUM(m, sent));
	exposition_family(out, "flexsc_serve_connections_accepted",
			  "connections accepted", false);
	/*
	 * Read "closed" before "accepted", so that the difference can't be
	 * negative.
	 */
	closed = SUM(m, closed);
	fprintf(out, "flexsc_serve_connections_accepted_total %" PRIu64 "\n",
		SUM(m, accepted));
	exposition_family(out, "flexsc_serve_connections", "connections now",
			  true);
	fprintf(out, "flexsc_serve_connections %" PRIu64 "\n",
		SUM(m, accepted) - closed);
	exposition_family(out, "flexsc_serve_log_lines_dropped",
			  "lines of the log that could not be written", false);
	fprintf(out, "flexsc_serve_log_lines_dropped_total %" PRIu64 "\n",
		counts_read(&log->dropped));
}

static void write_loops(const struct metrics *m, FILE *out)
{
	unsigned int n = m->first->env.settings->loops;
	struct flexsc_stats_page *pages = calloc(n, sizeof(*pages));
	const struct worker *w;

	if (!pages)
		return;
	n = 0;
	for (w = m->first; w; w = w->next) {
		struct flexsc_stats_page *page = &pages[n++];

		page->tid = w->tid;
		snprintf(page->engine, sizeof(page->engine), "%s",
			 flexsc_loop_engine(w->env.loop));
		flexsc_loop_stats(w->env.loop, &page->stats,
				  sizeof(page->stats));
	}
	exposition_loops(out, pages, n);
	free(pages);
}

static void send_counters(const struct metrics *m, int fd, bool head_only,
			  uint64_t until)
{
	char *body = NULL, head[256];
	size_t length = 0;
	FILE *out = open_memstream(&body, &length);
	int n;

	if (!out)
		return;
	write_server(m, out);
	write_loops(m, out);
	if (fclose(out) == 0) {
		n = snprintf(head, sizeof(head),
			     "HTTP/1.1 200 OK\r\nServer: flexsc\r\n"
			     "Content-Type: text/plain; version=0.0.4; "
			     "charset=utf-8\r\nContent-Length: %zu\r\n"
			     "Connection: close\r\n\r\n", length);
		send_all(m, fd, head, (size_t)n, until);
		if (!head_only)
			send_all(m, fd, body, length, until);
	}
	free(body);
}

static bool names_metrics(const struct request *r, const char *head)
{
	const char *target = head + r->target.at;
	size_t length = r->target.length;
	const char *query = memchr(target, '?', length);

	if (query)
		length = (size_t)(query - target);
	return length == strlen(METRICS_PATH) &&
	       memcmp(target, METRICS_PATH, length) == 0;
}

static void answer(const struct metrics *m, int fd, const struct request *r,
		   const char *head, int status, uint64_t until)
{
	const struct response_detail detail = { 0 };
	char text[2 * RESPONSE_MESSAGE_MAX];
	struct response response = { .status = status };
	struct clock clock = { 0 };

	response.head_only = r->method == HTTP_HEAD;
	if (!status && r->method != HTTP_GET && r->method != HTTP_HEAD)
		response.status = 405;
	else if (!status && !names_metrics(r, head))
		response.status = 404;
	if (!response.status) {
		send_counters(m, fd, response.head_only, until);
		return;
	}
	clock_update(&clock);
	response.clock = &clock;
	send_all(m, fd, text, (size_t)(response_message(&response, text,
							&detail) - text),
		 until);
}

static void serve_client(const struct metrics *m, int fd)
{
	const struct limits limits = { .head = REQUEST_MAX / 2 };
	uint64_t until = clock_ticks() + CLIENT_TIME;
	size_t have = 0, used = 0;
	char head[REQUEST_MAX];
	struct request r;
	int rc;

	request_init(&r, &limits);
	do {
		ssize_t n;

		if (!ready(m, fd, POLLIN, until))
			return;
		n = recv(fd, head + have, sizeof(head) - have, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			rc = REQUEST_HEAD;
			continue;
		}
		if (n <= 0)
			return;
		rc = request_parse(&r, head, have, have + (size_t)n, &used);
		have = used;
	} while (rc < REQUEST_READY && have < sizeof(head));
	answer(m, fd, &r, head, rc >= 400 ? rc : rc == REQUEST_READY ? 0 : 431,
	       until);
}

static void *run(void *arg)
{
	const struct metrics *m = arg;

	while (ready(m, m->fd, POLLIN, 0)) {
		int fd = accept4(m->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0) {
			serve_client(m, fd);
			close(fd);
		} else if (errno == EMFILE || errno == ENFILE ||
			   errno == ENOMEM || errno == ENOBUFS) {
			/*
			 * Leave the client in the queue, and try again after a
			 * pause.
			 */
			poll(&(struct pollfd){ .fd = m->stop, .events = POLLIN },
			     1, PAUSE);
		}
	}
	return NULL;
}

/*
 * Create the thread with all signals blocked, because a signal would interrupt
 * its calls.
 */
static int create_thread(struct metrics *m)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&m->thread, NULL, run, m);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

bool metrics_start(struct metrics *m, int fd, const struct worker *first)
{
	int rc;

	*m = (struct metrics){ .first = first, .fd = fd, .stop = -1 };
	if (fd < 0)
		return true;
	/*
	 * The client may leave between poll() and accept4(). Then accept4()
	 * must fail instead of waiting for the next client.
	 */
	fcntl(fd, F_SETFL, O_NONBLOCK);
	m->stop = eventfd(0, EFD_CLOEXEC);
	rc = m->stop < 0 ? errno : create_thread(m);
	if (rc == 0)
		return true;
	fprintf(stderr, "flexsc: serve: can't make a thread for the metrics: "
			"%s\n", strerror(rc));
	if (m->stop >= 0)
		close(m->stop);
	m->fd = -1;
	return false;
}

void metrics_stop(struct metrics *m)
{
	if (m->fd < 0)
		return;
	eventfd_write(m->stop, 1);
	pthread_join(m->thread, NULL);
	close(m->stop);
}
