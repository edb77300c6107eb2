/* SPDX-License-Identifier: MIT */
/*
 * bench --raw rounds: what a server's answer costs in processor time. A round
 * is one request on each connection, and then the answer to each. The setting
 * pid is the server's process, whose own clock is read before the rounds and
 * after: neither other processes nor a client that is slower than the server
 * change the figure. On loopback client and server best share a core (core=N),
 * so that every round is one batch. With conns=new each round has connections of
 * its own, which the server's time includes.
 *
 * One wrong answer ends the measurement.
 *
 * Of an answer that is longer than a socket's buffer, the kernel sends the rest
 * in the client's time, when the client has taken the beginning. So of long
 * answers the sum of the server's and the client's time is what counts.
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
	uint32_t count;		/* peers made */
	uint64_t made;		/* rounds, with those to warm up */
	bool anew;		/* each request has a connection of its own */
	clockid_t clock;	/* the server's processor time */
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
	/* The first answer over HTTP is the page that all others have to be. */
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

/* Were as many requests made as the setting count says, or is the time over? */
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
	/* The warm-up's, too: a tool that counts the server's calls counts them. */
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
		fputs("flexsc: bench: rounds: give port=N and pid=N\n", stderr);
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
