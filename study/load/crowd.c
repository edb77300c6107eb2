/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "crowd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench/raw/loop.h"

#define SECOND		1000000000ULL
#define PATIENCE	(15 * SECOND)	/* wait at the end if clients have no time-out */
#define PATIENCE_MS	5000		/* wait for the first answer of each page */
#define PAUSE		1000000ULL	/* ns to wait after a failure to connect */
#define STARTS		64	/* maximum of requests begun before events are checked */
#define EVENTS		128
#define SAMPLE		64	/* bytes of a body that are usually compared */
#define WHOLE		64	/* one body in this many is compared entirely */
#define NEVER		UINT64_MAX
#define GONE		(EPOLLRDHUP | EPOLLHUP | EPOLLERR)

static uint64_t now_ns(void)
{
	return bench_clock(CLOCK_MONOTONIC);
}

int bench_crowd_init(struct bench_crowd *crowd, bool order)
{
	size_t count = order ? crowd->arrivals.count : 0;

	crowd->random = 1;
	crowd->tally = calloc(1, sizeof(struct bench_tally));
	crowd->order = order ? calloc(count, sizeof(double)) : NULL;
	if (!crowd->tally || (order && !crowd->order))
		return -ENOMEM;
	return bench_connections_init(&crowd->connections);
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
	bench_agenda_fini(&crowd->agenda);
	bench_connections_fini(&crowd->connections);
	for (size_t i = 0; i < crowd->page_count; i++)
		bench_page_fini(&crowd->pages[i]);
	free(crowd->tally);
	free(crowd->order);
}

/* Requests that have begun. */

/*
 * Choose the bytes of a file to compare. Usually these are few, because a
 * client that compares all bytes would need more time than many servers.
 */
static void choose(struct bench_crowd *crowd, struct bench_visit *visit)
{
	uint64_t chance = bench_random(&crowd->random);
	size_t size = visit->page->size;

	if (chance % WHOLE == 0 || size <= SAMPLE)
		return;
	visit->from = (chance >> 16) % (size - SAMPLE + 1);
	visit->to = visit->from + SAMPLE;
}

/* Begin a request that is due. */
static void ask(struct bench_crowd *crowd, struct bench_visit *visit,
		uint64_t due)
{
	bench_visit_ask(visit, due);
	if (crowd->trace)
		choose(crowd, visit);
	visit->older = crowd->newest;
	visit->newer = NULL;
	*(crowd->newest ? &crowd->newest->newer : &crowd->oldest) = visit;
	crowd->newest = visit;
}

/* Count a request that has ended, by visit->end. */
static void count(struct bench_crowd *crowd, struct bench_visit *visit,
		  uint64_t now)
{
	struct bench_tally *tally = crowd->tally;
	uint64_t due = visit->due;

	if (crowd->timeout && now - due > crowd->timeout)
		visit->end = BENCH_LATE;
	if (visit->end == BENCH_ANSWERED)
		bench_tally_answered(tally, now, visit->page->size);
	bench_tally_end(tally, due, now, visit->end);
	if (visit->end != BENCH_ANSWERED || due < tally->from)
		return;
	if (visit->made)
		bench_times_add(&tally->connect, visit->ready - due);
	bench_times_add(&tally->exchange, now - visit->ready);
	tally->bytes += visit->page->size;
	if (crowd->order)
		crowd->order[crowd->order_count++] = (double)(now - due) / 1000;
}

static void end(struct bench_crowd *crowd, struct bench_visit *visit,
		uint64_t now)
{
	count(crowd, visit, now);
	if (visit->wrong && !crowd->first_wrong) {
		crowd->first_wrong = visit->page;
		crowd->first_why = visit->wrong;
	}
	if (visit->wrong && !crowd->trace)
		crowd->wrong = visit->wrong;
	visit->asking = false;
	*(visit->older ? &visit->older->newer : &crowd->oldest) = visit->newer;
	*(visit->newer ? &visit->newer->older : &crowd->newest) = visit->older;
}

/* Clients. */

/* Remove a client, and keep its memory for a later one. */
static void leave(struct bench_crowd *crowd, struct bench_visit *visit,
		  uint64_t now)
{
	struct bench_tally *tally = crowd->tally;
	bool answered = visit->end == BENCH_ANSWERED;
	bool failed = !answered && visit->end != BENCH_CUT;

	tally->done += answered;
	tally->failed += failed;
	tally->unasked += failed ? visit->left : 0;
	bench_connections_close(&crowd->connections, visit);
	visit->newer = crowd->spare;
	crowd->spare = visit;
	crowd->clients--;
	/* After a failure to connect, no new client takes the place for a while. */
	crowd->freed = visit->end == BENCH_REFUSED ||
		       visit->end == BENCH_UNSENT ? now + PAUSE : now;
}

/* Let the client think. It keeps its connection, unless that was closed. */
static void think(struct bench_crowd *crowd, struct bench_visit *visit,
		  uint64_t now)
{
	if (visit->closing)
		bench_connections_close(&crowd->connections, visit);
	visit->due = now + visit->page->think;
	visit->page++;
	visit->left--;
	if (!bench_agenda_add(&crowd->agenda, visit)) {
		visit->newer = crowd->spare;
		crowd->spare = visit;
		crowd->wrong = "out of memory";
	}
}

/* Handle the end of a request. */
static void pass(struct bench_crowd *crowd, struct bench_visit *visit)
{
	uint64_t now = now_ns();

	end(crowd, visit, now);
	if (visit->end == BENCH_ANSWERED && visit->left)
		think(crowd, visit, now);
	else
		leave(crowd, visit, now);
}

/*
 * Send a request over the client's connection or a new one. A request that
 * begins after its client has given up makes no connection.
 */
static void send_request(struct bench_crowd *crowd, struct bench_visit *visit)
{
	int err = 0;

	if (crowd->timeout && now_ns() - visit->due > crowd->timeout) {
		visit->end = BENCH_LATE;
		pass(crowd, visit);
		return;
	}
	if (visit->fd < 0) {
		err = bench_connections_open(&crowd->connections, visit);
		visit->made = !err;
	}
	if (err)
		visit->end = err == -ECONNREFUSED ? BENCH_REFUSED :
						    BENCH_UNSENT;
	/*
	 * Only send: the answer to a new request can't have arrived yet.
	 */
	if (err || bench_visit_send(visit))
		pass(crowd, visit);
}

static void handle(struct bench_crowd *crowd, const struct epoll_event *event)
{
	struct bench_connections *connections = &crowd->connections;
	int fd = event->data.fd;
	struct bench_visit *visit = connections->by_fd[fd];

	if (visit && visit->asking) {
		if (!bench_visit_go(visit))
			return;
		/*
		 * The same event may report the answer and the server's close
		 * right after it.
		 */
		visit->closing |= !!(event->events & GONE);
		pass(crowd, visit);
		return;
	}
	/*
	 * Without a pending request, bytes or an end of file mean that the
	 * connection is lost: close it.
	 */
	if (!visit || !(event->events & (EPOLLIN | GONE)))
		return;
	bench_connections_close(connections, visit);
	crowd->tally->lost++;
}

/* Time. */

/* The time when the next client comes. */
static uint64_t arrival_due(const struct bench_crowd *crowd)
{
	uint64_t due = bench_arrivals_due(&crowd->arrivals);

	if (!crowd->places || due == NEVER)
		return due;
	return crowd->clients < crowd->places ? crowd->freed : NEVER;
}

/* The time when the next request is due, of a new or a thinking client. */
static uint64_t next_due(const struct bench_crowd *crowd)
{
	uint64_t due = arrival_due(crowd), thought;

	thought = bench_agenda_due(&crowd->agenda);
	if (thought < due)
		due = thought;
	return crowd->length && due >= crowd->tally->until ? NEVER : due;
}

/* Make a client at its first page. NULL: out of memory. */
static struct bench_visit *arrive(struct bench_crowd *crowd)
{
	struct bench_visit *visit = crowd->spare;
	uint64_t number = crowd->arrivals.made;

	if (visit)
		crowd->spare = visit->newer;
	else
		visit = malloc(sizeof(*visit));
	if (!visit)
		return NULL;
	visit->fd = -1;
	visit->left = 0;
	visit->page = crowd->trace ?
		bench_trace_session(crowd->trace, number, &visit->left) :
		&crowd->pages[number % crowd->page_count];
	crowd->clients++;
	crowd->tally->begun++;
	bench_arrivals_pass(&crowd->arrivals);
	return visit;
}

/* The next client whose request is due. */
static struct bench_visit *next(struct bench_crowd *crowd)
{
	if (bench_agenda_due(&crowd->agenda) < arrival_due(crowd))
		return bench_agenda_take(&crowd->agenda);
	return arrive(crowd);
}

static void begin(struct bench_crowd *crowd, uint64_t due)
{
	struct bench_visit *visit = next(crowd);

	if (!visit) {
		crowd->wrong = "out of memory";
		return;
	}
	ask(crowd, visit, due);
	send_request(crowd, visit);
}

/* The time when the oldest request's client gives up, or is cut off. */
static uint64_t deadline(const struct bench_crowd *crowd)
{
	uint64_t until = crowd->tally->until, due, end;

	if (!crowd->oldest)
		return NEVER;
	due = crowd->oldest->due;
	if (crowd->timeout)
		end = due + crowd->timeout;
	else
		end = (due > until ? due : until) + PATIENCE;
	return crowd->cut && until < end ? until : end;
}

static void give_up(struct bench_crowd *crowd)
{
	bool cut = crowd->cut && now_ns() >= crowd->tally->until;

	while (crowd->oldest && deadline(crowd) <= now_ns()) {
		crowd->oldest->end = cut ? BENCH_CUT : BENCH_LATE;
		pass(crowd, crowd->oldest);
	}
}

static void begin_due(struct bench_crowd *crowd)
{
	for (int i = 0; i < STARTS && !crowd->wrong; i++) {
		uint64_t due = next_due(crowd);
		uint64_t now = now_ns();

		if (due > now)
			break;
		if (due >= crowd->tally->from)
			bench_times_add(&crowd->tally->behind, now - due);
		begin(crowd, due);
		give_up(crowd);
	}
}

/*
 * Wait for events until a time; poll before sleeping. Returns the number of
 * events.
 */
static int wait(struct bench_crowd *crowd, struct epoll_event *events,
		uint64_t until)
{
	int epoll = crowd->connections.epoll, n = 0;
	uint64_t begin = now_ns(), now = begin, idle = begin;
	struct timespec span = { };

	while (!n && now < until && now - begin < crowd->spin) {
		n = epoll_pwait2(epoll, events, EVENTS, &span, NULL);
		now = now_ns();
		idle = n ? idle : now;
	}
	crowd->tally->spun += idle - begin;
	if (n > 0)
		return n;
	if (until > now) {
		span.tv_sec = (time_t)((until - now) / SECOND);
		span.tv_nsec = (long)((until - now) % SECOND);
	}
	return epoll_pwait2(epoll, events, EVENTS, &span, NULL);
}

static void wait_for_events(struct bench_crowd *crowd)
{
	uint64_t until = next_due(crowd);
	struct epoll_event events[EVENTS];
	int n;

	if (until > deadline(crowd))
		until = deadline(crowd);
	if (until == NEVER)
		return;		/* the last request has just ended */
	n = wait(crowd, events, until);
	/*
	 * A client without think time sends its next request before other
	 * answers are read, so that the server always has work.
	 */
	for (int i = 0; i < n; i++) {
		handle(crowd, &events[i]);
		begin_due(crowd);
	}
}

static const char *learn(struct bench_crowd *crowd, struct bench_page *page)
{
	struct bench_connections *connections = &crowd->connections;
	struct bench_visit visit = { .page = page };
	const char *wrong = NULL;

	bench_visit_ask(&visit, 0);
	visit.fd = bench_route_connect(&connections->route,
				       connections->begun++, false, false);
	if (visit.fd < 0)
		return strerror(-visit.fd);
	if (!bench_visit_wait(&visit, PATIENCE_MS))
		wrong = "no answer to the first request";
	close(visit.fd);
	return wrong ?: bench_visit_failure(&visit);
}

const char *bench_crowd_learn(struct bench_crowd *crowd)
{
	const char *wrong = NULL;

	for (size_t i = 0; i < crowd->page_count && !wrong; i++)
		wrong = learn(crowd, &crowd->pages[i]);
	return wrong;
}

/* End the run: remove clients that think. */
static void end_all(struct bench_crowd *crowd)
{
	struct bench_visit *visit;

	while ((visit = bench_agenda_take(&crowd->agenda))) {
		bench_connections_close(&crowd->connections, visit);
		visit->newer = crowd->spare;
		crowd->spare = visit;
	}
}

/* The time for which clients come, if it is known. */
static uint64_t length(const struct bench_crowd *crowd)
{
	if (crowd->length || crowd->places)
		return crowd->length;
	return crowd->arrivals.count * SECOND / crowd->arrivals.rate;
}

const char *bench_crowd_run(struct bench_crowd *crowd, uint64_t begin)
{
	struct bench_arrivals *arrivals = &crowd->arrivals;
	struct bench_tally *tally = crowd->tally;

	arrivals->begin = crowd->freed = begin;
	tally->from = begin + crowd->warm_up;
	tally->until = begin + length(crowd);
	while (!crowd->wrong && (crowd->oldest || next_due(crowd) != NEVER)) {
		/* End late requests first, which frees connections for new ones. */
		give_up(crowd);
		begin_due(crowd);
		wait_for_events(crowd);
	}
	end_all(crowd);
	/*
	 * A trace without a length: measure until the last answer, because sessions are
	 * still running when the last session has begun.
	 */
	if (crowd->trace && !crowd->length && tally->last > tally->until)
		tally->until = tally->last;
	return crowd->wrong;
}
