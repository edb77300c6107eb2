/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "crowd.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loop.h"

#define SECOND		1000000000ULL
#define DELAY		(SECOND / 10)	/* before the first request is due */
#define PATIENCE	(15 * SECOND)	/* after the last, with no time-out */
#define PATIENCE_MS	5000		/* with the first answer of each page */
#define STARTS		64	/* requests begun between looks for events */
#define EVENTS		128

static uint64_t now_ns(void)
{
	return bench_clock(CLOCK_MONOTONIC);
}

int bench_crowd_init(struct bench_crowd *crowd, bool order)
{
	size_t count = order ? crowd->arrivals.count : 0;

	crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
	crowd->by_fd = calloc(BENCH_FDS_MAX, sizeof(struct bench_visit *));
	crowd->idle = calloc(crowd->connections_max, sizeof(int));
	crowd->tally = calloc(1, sizeof(struct bench_tally));
	crowd->order = order ? calloc(count, sizeof(double)) : NULL;
	return crowd->epoll < 0 || !crowd->by_fd || !crowd->idle ||
	       !crowd->tally || (order && !crowd->order) ? -ENOMEM : 0;
}

static void free_visits(struct bench_visit *visit)
{
	while (visit) {
		struct bench_visit *newer = visit->newer;

		free(visit);
		visit = newer;
	}
}

void bench_crowd_fini(struct bench_crowd *crowd)
{
	free_visits(crowd->oldest);
	free_visits(crowd->spare);
	for (size_t i = 0; i < crowd->page_count; i++)
		bench_page_fini(&crowd->pages[i]);
	if (crowd->epoll >= 0)
		close(crowd->epoll);
	free(crowd->by_fd);
	free(crowd->idle);
	free(crowd->tally);
	free(crowd->order);
}

/* Requests that have begun. */

static struct bench_visit *begin_visit(struct bench_crowd *crowd, uint64_t due)
{
	struct bench_visit *visit = crowd->spare;

	if (visit)
		crowd->spare = visit->newer;
	else
		visit = malloc(sizeof(*visit));
	if (!visit)
		return NULL;
	*visit = (struct bench_visit){
		.older = crowd->newest, .due = due, .fd = -1,
		.page = &crowd->pages[crowd->turn++],
	};
	if (crowd->turn == crowd->page_count)
		crowd->turn = 0;
	*(crowd->newest ? &crowd->newest->newer : &crowd->oldest) = visit;
	crowd->newest = visit;
	if (!crowd->waiting)
		crowd->waiting = visit;
	return visit;
}

static void end_visit(struct bench_crowd *crowd, struct bench_visit *visit,
		      enum bench_end end)
{
	uint64_t now = now_ns();

	if (crowd->timeout && now - visit->due > crowd->timeout)
		end = BENCH_LATE;
	if (end == BENCH_ANSWERED && visit->due >= crowd->tally->from) {
		bench_times_add(&crowd->tally->connect,
				visit->connected - visit->due);
		crowd->tally->bytes += visit->page->size;
		if (crowd->order)
			crowd->order[crowd->order_count++] =
				(double)(now - visit->due) / 1000;
	}
	bench_tally_end(crowd->tally, visit->due, now, end);
	if (visit == crowd->waiting)
		crowd->waiting = visit->newer;
	*(visit->older ? &visit->older->newer : &crowd->oldest) = visit->newer;
	*(visit->newer ? &visit->newer->older : &crowd->newest) = visit->older;
	visit->newer = crowd->spare;
	crowd->spare = visit;
}

/* Connections. */

static void drop(struct bench_crowd *crowd, int fd)
{
	close(fd);
	crowd->by_fd[fd] = NULL;
	crowd->connections--;
}

/* An idle connection, or a new one; or -errno. */
static int take_connection(struct bench_crowd *crowd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	int fd;

	if (crowd->idle_count)
		return crowd->idle[--crowd->idle_count];
	if (crowd->connections == crowd->connections_max)
		return -EMFILE;
	fd = bench_route_connect(&crowd->route, crowd->begun++);
	if (fd < 0)
		return fd;
	event.data.fd = fd;
	if ((unsigned int)fd >= BENCH_FDS_MAX ||
	    epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, fd, &event)) {
		close(fd);
		return -EMFILE;
	}
	crowd->connections++;
	return fd;
}

static void go(struct bench_crowd *crowd, struct bench_visit *visit)
{
	enum bench_end end;
	const char *wrong;
	int fd = visit->fd;

	if (!bench_visit_go(visit, &end, &wrong))
		return;
	if (wrong)
		crowd->wrong = wrong;
	end_visit(crowd, visit, end);
	if (crowd->kept && end == BENCH_ANSWERED) {
		crowd->by_fd[fd] = NULL;
		crowd->idle[crowd->idle_count++] = fd;
	} else {
		drop(crowd, fd);
	}
}

/* Have the oldest request that waits begin, if there is a connection for it. */
static bool begin_waiting(struct bench_crowd *crowd)
{
	struct bench_visit *visit = crowd->waiting;
	int fd = take_connection(crowd);

	if (fd < 0 && crowd->kept && crowd->connections)
		return false;
	if (fd < 0) {
		end_visit(crowd, visit, fd == -ECONNREFUSED ? BENCH_REFUSED :
							  BENCH_UNSENT);
		return true;
	}
	crowd->waiting = visit->newer;
	visit->fd = fd;
	crowd->by_fd[fd] = visit;
	go(crowd, visit);
	return true;
}

/* An idle connection has an event: it is at its end. */
static void lose(struct bench_crowd *crowd, int fd)
{
	for (size_t i = 0; i < crowd->idle_count; i++) {
		if (crowd->idle[i] != fd)
			continue;
		crowd->idle[i] = crowd->idle[--crowd->idle_count];
		drop(crowd, fd);
		return;
	}
}

static void handle(struct bench_crowd *crowd, const struct epoll_event *event)
{
	int fd = event->data.fd;

	if (crowd->by_fd[fd])
		go(crowd, crowd->by_fd[fd]);
	else if (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		lose(crowd, fd);
}

/* Time. */

static void begin_due(struct bench_crowd *crowd)
{
	for (int i = 0; i < STARTS; i++) {
		uint64_t due = bench_arrivals_due(&crowd->arrivals);
		uint64_t now = now_ns();

		if (due > now)
			break;
		if (due >= crowd->tally->from)
			bench_times_add(&crowd->tally->behind, now - due);
		if (!begin_visit(crowd, due))
			crowd->wrong = "out of memory";
		bench_arrivals_pass(&crowd->arrivals);
		while (crowd->waiting && begin_waiting(crowd))
			;
	}
	while (crowd->waiting && begin_waiting(crowd))
		;
}

/* When the oldest request's client gives up. */
static uint64_t deadline(const struct bench_crowd *crowd)
{
	if (!crowd->oldest)
		return UINT64_MAX;
	return crowd->timeout ? crowd->oldest->due + crowd->timeout :
				crowd->tally->until + PATIENCE;
}

static void give_up(struct bench_crowd *crowd)
{
	while (crowd->oldest && deadline(crowd) <= now_ns()) {
		int fd = crowd->oldest->fd;

		end_visit(crowd, crowd->oldest, BENCH_LATE);
		if (fd >= 0)
			drop(crowd, fd);
	}
}

static void wait_for_events(struct bench_crowd *crowd)
{
	uint64_t until = bench_arrivals_due(&crowd->arrivals), now = now_ns();
	struct timespec span = { };
	struct epoll_event events[EVENTS];
	int n;

	if (until > deadline(crowd))
		until = deadline(crowd);
	if (until == UINT64_MAX)
		return;		/* the last request ended just now */
	if (until > now) {
		span.tv_sec = (time_t)((until - now) / SECOND);
		span.tv_nsec = (long)((until - now) % SECOND);
	}
	n = epoll_pwait2(crowd->epoll, events, EVENTS, &span, NULL);
	for (int i = 0; i < n; i++)
		handle(crowd, &events[i]);
}

/* Every page once, before the load, so that its answers can be checked. */
static const char *learn(struct bench_crowd *crowd, struct bench_page *page)
{
	struct bench_visit visit = { .page = page };
	struct pollfd ready = { .events = POLLIN };
	enum bench_end end = BENCH_LATE;
	const char *wrong = NULL;

	visit.fd = bench_route_connect(&crowd->route, crowd->begun++);
	if (visit.fd < 0)
		return strerror(-visit.fd);
	ready.fd = visit.fd;
	while (!bench_visit_go(&visit, &end, &wrong)) {
		ready.events = visit.sent < page->request_size ? POLLOUT :
								 POLLIN;
		if (poll(&ready, 1, PATIENCE_MS) <= 0)
			break;
	}
	close(visit.fd);
	if (wrong || page->learned)
		return wrong;
	return end == BENCH_REFUSED ? strerror(ECONNREFUSED) :
				      "no answer to the first request";
}

const char *bench_crowd_run(struct bench_crowd *crowd)
{
	uint64_t begin;

	for (size_t i = 0; i < crowd->page_count; i++) {
		const char *wrong = learn(crowd, &crowd->pages[i]);

		if (wrong)
			return wrong;
	}
	begin = now_ns() + DELAY;
	crowd->arrivals.begin = begin;
	crowd->tally->from = begin + crowd->warm_up;
	crowd->tally->until = begin + crowd->arrivals.count * SECOND /
				  crowd->arrivals.rate;
	while (!crowd->wrong &&
	       (crowd->oldest || crowd->arrivals.made < crowd->arrivals.count)) {
		begin_due(crowd);
		give_up(crowd);
		wait_for_events(crowd);
	}
	return crowd->wrong;
}
