/* SPDX-License-Identifier: MIT */
/*
 * bench --raw load: a server's clients. Each connection sends a request, waits
 * for the answer, checks it, and sends the next request. So the number of
 * pending requests equals the number of connections.
 *
 * A warm-up begins when each connection has had an answer, so that the server
 * has made its threads. After the warm-up, answers and their times are counted.
 * From then on a connection that gets no answer for two seconds, is closed, or
 * gets a wrong answer ends the measurement.
 *
 * With greet=1 a connection gets its first answer before the next connection is
 * made, because a loaded server may make its threads very late. With greet=0
 * all connections begin at once. Use greet=0 if flexsc run limits the server to
 * few entries, because each idle client occupies an entry.
 *
 * The connections are divided among threads. Each thread has an epoll set and
 * the state of its connections. struct load has the threads' shared state.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench/cases.h"
#include "histogram.h"
#include "bench/raw/loop.h"
#include "peer.h"
#include "bench/raw/report.h"

#define SECOND		1000000000ULL
#define WARM_UP		(3 * SECOND / 10)
#define PATIENCE	(2 * SECOND)
#define PATIENCE_FIRST	(10 * SECOND)	/* the server may have to make a thread first */
#define NEVER		UINT64_MAX
#define STALLED		"no answer for 2 seconds"
#define LOOK_MS		200	/* ms between checks for late answers */
#define EVENTS		256
#define OTHER_FDS	64

struct load {
	const struct bench_settings *settings;
	struct bench_question question;
	/*
	 * Answers are counted between these times of CLOCK_MONOTONIC, in ns.
	 * Both are NEVER until count_from() stores them, once. It does so
	 * WARM_UP before "begin", early enough for the relaxed loads of at().
	 */
	_Atomic uint64_t begin, end;
	/*
	 * Relaxed: they publish nothing. Joining the threads publishes their
	 * results.
	 */
	atomic_uint_fast32_t silent;	/* connections that have had no answer yet */
	atomic_uint_fast32_t open;	/* connections that wait for their last answer */
	atomic_bool failed;	/* a thread has failed and printed a message */
};

struct client {
	struct load *load;
	pthread_t thread;
	int epoll;
	struct bench_peer *peers;
	size_t count;
	uint64_t answers;	/* number of all answers */
	struct bench_histogram *times;	/* times of counted answers */
};

static void fail(struct client *client, const struct bench_peer *peer,
		 const char *what)
{
	if (atomic_exchange(&client->load->failed, true))
		return;
	fprintf(stderr, "flexsc: bench: load: connection %u of %ld, after %llu "
		"answers: %s\n", peer->number + 1,
		client->load->settings->connections,
		(unsigned long long)peer->answers, what);
}

static uint64_t at(_Atomic uint64_t *time)
{
	return atomic_load_explicit(time, memory_order_relaxed);
}

static void count_from(struct load *load, uint64_t begin)
{
	uint64_t length = (uint64_t)load->settings->seconds * SECOND;

	atomic_store(&load->end, begin + length);
	atomic_store(&load->begin, begin);
}

/*
 * Count an answer, and send the next request. Returns NULL or an error message.
 */
static const char *answered(struct client *client, struct bench_peer *peer)
{
	uint64_t now = bench_clock(CLOCK_MONOTONIC);
	struct load *load = client->load;

	client->answers++;
	if (now >= at(&load->begin) && now < at(&load->end))
		bench_histogram_add(client->times, now - peer->visit.due);
	if (peer->answers == 1 && atomic_fetch_sub(&load->silent, 1) == 1)
		count_from(load, now + WARM_UP);
	if (now >= at(&load->end) && !peer->over) {
		peer->over = true;
		atomic_fetch_sub(&load->open, 1);
	}
	return bench_peer_ask(peer, now);
}

/* Handle a connection's event: continue its request or its answer. */
static void handle(struct client *client, struct bench_peer *peer)
{
	bool done;
	const char *wrong = bench_peer_go(peer, &done);

	if (done && !wrong)
		wrong = answered(client, peer);
	if (wrong)
		fail(client, peer, wrong);
}

static void look(struct client *client, uint64_t now)
{
	for (size_t i = 0; i < client->count; i++) {
		struct bench_peer *peer = &client->peers[i];

		if (now - peer->visit.due >
		    (peer->answers ? PATIENCE : PATIENCE_FIRST)) {
			fail(client, peer, peer->answers ?
			     STALLED : "no answer for 10 seconds");
			return;
		}
	}
}

/*
 * Run a thread's connections until the end, and then until each has had one more
 * answer. Otherwise an answer that was due before the end, but never comes, would
 * go unnoticed. All threads continue until every connection has this answer,
 * because with few entries a silent connection may keep the server from answering
 * others.
 */
static void *run_client(void *arg)
{
	struct client *client = arg;
	struct load *load = client->load;
	uint64_t now = bench_clock(CLOCK_MONOTONIC), looked = now;
	struct epoll_event events[EVENTS];

	while (atomic_load_explicit(&load->open, memory_order_relaxed) &&
	       !atomic_load_explicit(&load->failed, memory_order_relaxed)) {
		int n = epoll_wait(client->epoll, events, EVENTS, LOOK_MS);

		for (int i = 0; i < n; i++)
			handle(client, events[i].data.ptr);
		now = bench_clock(CLOCK_MONOTONIC);
		if (now - looked > LOOK_MS * 1000000ULL) {
			look(client, now);
			looked = now;
		}
	}
	return NULL;
}

/* Connections. */

/*
 * Make one exchange on a connection, and wait for it. Returns NULL or an error
 * message.
 */
static const char *greet(struct bench_peer *peer)
{
	const char *wrong = bench_peer_ask(peer, bench_clock(CLOCK_MONOTONIC));

	return wrong ?: bench_peer_wait(peer, PATIENCE / 1000000, STALLED);
}

static int add(struct client *client, struct bench_peer *peer, uint32_t number)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = peer,
	};
	const struct bench_settings *settings = client->load->settings;
	int err = bench_peer_init(peer, &client->load->question, number);
	const char *wrong;

	if (!err)
		err = bench_peer_connect(peer);
	if (err)
		return bench_failed("load: connecting", err);
	/*
	 * The first answer over HTTP becomes the page that all other answers
	 * must equal.
	 */
	wrong = settings->greet || !peer->visit.page->learned ?
			greet(peer) : NULL;
	wrong = wrong ?: bench_peer_ask(peer, bench_clock(CLOCK_MONOTONIC));
	if (wrong) {
		fail(client, peer, wrong);
		return 1;
	}
	if (epoll_ctl(client->epoll, EPOLL_CTL_ADD, peer->visit.fd, &event))
		return bench_failed("load: epoll", -errno);
	return 0;
}

static int init_client(struct client *client, struct load *load, size_t count)
{
	client->load = load;
	client->peers = calloc(count, sizeof(*client->peers));
	client->times = bench_memory(1, sizeof(*client->times));
	client->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (client->epoll < 0)
		return bench_failed("load: epoll", -errno);
	return client->peers && client->times ?
		       0 : bench_failed("load", -ENOMEM);
}

static void fini_client(struct client *client)
{
	for (size_t i = 0; i < client->count; i++)
		bench_peer_fini(&client->peers[i]);
	if (client->epoll >= 0)
		close(client->epoll);
	free(client->peers);
	free(client->times);
}

static int connect_all(struct client *clients, size_t threads, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct client *client = &clients[i % threads];
		/*
		 * Count the peer before it is made, because fini_client() has
		 * to clean up even if making it fails.
		 */
		struct bench_peer *peer = &client->peers[client->count++];

		peer->visit.fd = -1;
		if (add(client, peer, i))
			return 1;
	}
	return 0;
}

/* The measurement. */

static int run(struct client *clients, size_t threads, struct load *load)
{
	uint64_t now = bench_clock(CLOCK_MONOTONIC);
	size_t started = 0;
	int err = 0;

	load->begin = load->end = NEVER;
	load->open = (uint_fast32_t)load->settings->connections;
	for (size_t i = 0; i < threads; i++) {
		for (size_t j = 0; j < clients[i].count; j++) {
			struct bench_peer *peer = &clients[i].peers[j];

			/*
			 * Restart the clock: the time for connecting isn't the
			 * server's delay.
			 */
			peer->visit.due = now;
			load->silent += !peer->answers;
		}
	}
	if (!load->silent)
		count_from(load, now + WARM_UP);
	while (!err && started < threads) {
		struct client *client = &clients[started];

		err = pthread_create(&client->thread, NULL, run_client, client);
		started += !err;
	}
	if (err) {
		atomic_store(&load->failed, true);
		bench_failed("load: threads", -err);
	}
	while (started)
		pthread_join(clients[--started].thread, NULL);
	return atomic_load(&load->failed);
}

static void report_at(const char *name, const struct bench_histogram *times,
		      double share)
{
	double us = bench_histogram_at(times, share) / 1000;
	struct bench_series series = { name, &us, 1 };

	bench_report_series(&series);
}

static void report(struct client *clients, size_t threads,
		   const struct load *load)
{
	struct bench_histogram *times = clients[0].times;
	uint64_t answers = clients[0].answers;
	double rate;
	struct bench_series series = { "requests_per_s", &rate, 1 };

	for (size_t i = 1; i < threads; i++) {
		bench_histogram_merge(times, clients[i].times);
		answers += clients[i].answers;
	}
	rate = (double)times->total / (double)load->settings->seconds;
	bench_report_begin("load", load->settings);
	bench_report_series(&series);
	report_at("p50_us", times, 0.5);
	report_at("p90_us", times, 0.9);
	report_at("p99_us", times, 0.99);
	report_at("p999_us", times, 0.999);
	bench_report_counts();
	bench_report_count("requests", (double)times->total);
	bench_report_count("answers", (double)answers);
	bench_report_end();
}

static int measure(struct client *clients, size_t threads, struct load *load)
{
	size_t count = (size_t)load->settings->connections;

	for (size_t i = 0; i < threads; i++)
		if (init_client(&clients[i], load, count / threads + 1))
			return 1;
	if (connect_all(clients, threads, (uint32_t)count) ||
	    run(clients, threads, load))
		return 1;
	report(clients, threads, load);
	return 0;
}

static int run_clients(struct load *load, long threads)
{
	struct client *clients = calloc((size_t)threads, sizeof(*clients));
	int err;

	if (!clients)
		return bench_failed("load", -ENOMEM);
	for (long i = 0; i < threads; i++)
		clients[i].epoll = -1;
	err = measure(clients, (size_t)threads, load);
	for (long i = 0; i < threads; i++)
		fini_client(&clients[i]);
	free(clients);
	return err;
}

int bench_load(const struct bench_settings *settings)
{
	long threads = settings->threads < settings->connections ?
			       settings->threads : settings->connections;
	struct load load = { .settings = settings };
	int err;

	if (settings->rate || settings->trace) {
		fputs("flexsc: bench: load: rate and trace need flexsc study "
		      "--raw load\n", stderr);
		return 1;
	}
	if (!settings->port) {
		fputs("flexsc: bench: load: missing port=N\n", stderr);
		return 1;
	}
	if (bench_allow("load", (size_t)settings->connections + OTHER_FDS))
		return 1;
	err = bench_question_init(&load.question, "load", settings) ||
	      run_clients(&load, threads);
	bench_question_fini(&load.question);
	return err;
}
