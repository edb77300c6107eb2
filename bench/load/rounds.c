/* SPDX-License-Identifier: MIT */
/*
 * bench --raw rounds: a server's processor time per answer. A round is one
 * request on each connection, followed by all answers. The setting pid is the
 * server's process, whose processor clock is read before and after the rounds.
 * So neither other processes nor a slow client affect the result. On loopback
 * the client should share a core with the server (core=N), so that every round
 * is one batch. With conns=new each round makes new connections, which count
 * for the server's time.
 *
 * A single wrong answer ends the measurement.
 *
 * If an answer is longer than a socket's buffer, the kernel sends the rest in
 * the client's time, after the client has read the beginning. So for long
 * answers the sum of the server's and the client's time must be compared.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/cases.h"
#include "bench/raw/loop.h"
#include "peer.h"
#include "bench/raw/report.h"

#define SECOND		1000000000ULL
#define PATIENCE_MS	10000
#define WARM_UP		50	/* rounds */

struct rounds {
	const struct bench_settings *settings;
	struct bench_peer *peers;
	struct bench_question question;
	uint32_t count;		/* number of peers made */
	uint64_t made;		/* rounds made, including the warm-up */
	bool anew;		/* make a connection for each request */
	clockid_t clock;	/* clock of the server's processor time */
};

static int rounds_fail(const struct bench_peer *peer, const char *what)
{
	fprintf(stderr, "flexsc: bench: rounds: connection %u, after %llu "
		"answers: %s\n", peer->number + 1,
		(unsigned long long)peer->answers, what);
	return 1;
}

static int rounds_ask(struct rounds *rounds, struct bench_peer *peer)
{
	int err = rounds->anew ? bench_peer_connect(peer) : 0;
	const char *wrong;

	if (err)
		return bench_failed("rounds: connecting", err);
	wrong = bench_peer_ask(peer, 0);
	return wrong ? rounds_fail(peer, wrong) : 0;
}

static int rounds_take(struct rounds *rounds, struct bench_peer *peer)
{
	const char *wrong = bench_peer_wait(peer, PATIENCE_MS,
					    "no answer for 10 seconds");

	if (wrong)
		return rounds_fail(peer, wrong);
	if (rounds->anew)
		bench_peer_close(peer);
	return 0;
}

static int rounds_make_one(struct rounds *rounds)
{
	/*
	 * The first answer over HTTP becomes the page that all other answers
	 * must equal.
	 */
	uint32_t alone = !rounds->made;

	for (uint32_t i = 0; i < alone; i++)
		if (rounds_ask(rounds, &rounds->peers[i]) ||
		    rounds_take(rounds, &rounds->peers[i]))
			return 1;
	for (uint32_t i = alone; i < rounds->count; i++)
		if (rounds_ask(rounds, &rounds->peers[i]))
			return 1;
	for (uint32_t i = alone; i < rounds->count; i++)
		if (rounds_take(rounds, &rounds->peers[i]))
			return 1;
	rounds->made++;
	return 0;
}

static int rounds_connect(struct rounds *rounds)
{
	const struct bench_settings *settings = rounds->settings;

	while (rounds->count < (uint32_t)settings->connections) {
		uint32_t i = rounds->count++;
		int err = bench_peer_init(&rounds->peers[i], &rounds->question,
					  i);

		if (!err && !rounds->anew)
			err = bench_peer_connect(&rounds->peers[i]);
		if (err)
			return bench_failed("rounds: connecting", err);
	}
	for (int i = 0; i < WARM_UP; i++)
		if (rounds_make_one(rounds))
			return 1;
	return 0;
}

/*
 * Has the number of requests in the setting count been reached, or is the time
 * over?
 */
static bool rounds_over(const struct rounds *rounds, uint64_t end)
{
	uint64_t wanted = (uint64_t)rounds->settings->count;

	return wanted ? (rounds->made - WARM_UP) * rounds->count >= wanted :
			bench_clock(CLOCK_MONOTONIC) >= end;
}

static int rounds_measure(struct rounds *rounds)
{
	uint64_t length = (uint64_t)rounds->settings->seconds * SECOND;
	uint64_t end, before, client, made;
	double us, both_us;
	struct bench_series series = { "cpu_us", &us, 1 };
	struct bench_series both = { "both_us", &both_us, 1 };

	if (rounds_connect(rounds))
		return 1;
	before = bench_clock(rounds->clock);
	client = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
	end = bench_clock(CLOCK_MONOTONIC) + length;
	while (!rounds_over(rounds, end))
		if (rounds_make_one(rounds))
			return 1;
	made = rounds->made - WARM_UP;
	before = bench_clock(rounds->clock) - before;
	client = bench_clock(CLOCK_PROCESS_CPUTIME_ID) - client;
	us = (double)before / 1000 / (double)(made * rounds->count);
	both_us = (double)(before + client) / 1000 /
		  (double)(made * rounds->count);
	bench_report_begin("rounds", rounds->settings);
	bench_report_series(&series);
	bench_report_series(&both);
	bench_report_counts();
	bench_report_count("rounds", (double)made);
	bench_report_count("answers", (double)(made * rounds->count));
	/*
	 * Report the warm-up's requests as well, because tools that count the
	 * server's calls count them.
	 */
	bench_report_count("warmed", (double)(rounds->made * rounds->count));
	bench_report_end();
	return 0;
}

static int rounds_prepare(struct rounds *rounds)
{
	const struct bench_settings *settings = rounds->settings;
	const char *conns = settings->conns ? settings->conns : "kept";
	int err;

	if (!settings->port || !settings->pid) {
		fputs("flexsc: bench: rounds: missing port=N or pid=N\n", stderr);
		return 1;
	}
	rounds->anew = bench_is(conns, "new");
	if (!rounds->anew && !bench_is(conns, "kept")) {
		fputs("flexsc: bench: rounds: conns: give new or kept\n",
		      stderr);
		return 1;
	}
	err = clock_getcpuclockid((pid_t)settings->pid, &rounds->clock);
	if (err)
		return bench_failed("rounds: the server's clock", -err);
	if (bench_question_init(&rounds->question, "rounds", settings) ||
	    bench_pin(settings->core))
		return 1;
	rounds->peers = calloc((size_t)settings->connections,
			       sizeof(*rounds->peers));
	return rounds->peers ? 0 : bench_failed("rounds", -ENOMEM);
}

int bench_rounds(const struct bench_settings *settings)
{
	struct rounds rounds = { .settings = settings };
	int err = rounds_prepare(&rounds) || rounds_measure(&rounds);

	for (uint32_t i = 0; i < rounds.count; i++)
		bench_peer_fini(&rounds.peers[i]);
	free(rounds.peers);
	bench_question_fini(&rounds.question);
	return err;
}
