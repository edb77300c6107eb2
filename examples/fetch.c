/* SPDX-License-Identifier: MIT */
/*
 * Resolves a name without stopping the loop, connects, and prints what the
 * server sends first. Shows deadlines, cancellation and signals.
 *
 * 	fetch HOST PORT SECONDS		Ctrl-C ends it early
 *
 * Each step has a callback, and may end early for three reasons: it failed, it
 * took too long (-ETIME), or it was cancelled (-ECANCELED, -EINTR).
 */
#include <flexsc/default.h>
#include <flexsc/netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND	1000000000ULL

static struct flexsc_getaddrinfo query;
static struct flexsc_cb step, interrupt;
static uint64_t patience;
static char answer[4096];
static int fd = -1, status = 1, stopping;

/* The next step is posted: start its deadline. */
static void wait_for(void (*callback)(struct flexsc_cb *cb))
{
	step.callback = callback;
	flexsc_deadline(&step, patience);
}

/* Did the last step succeed? If not, only the signal is still pending. */
static int worked(const char *what)
{
	if (step.ret >= 0 && !stopping)
		return 1;
	fprintf(stderr, "%s: %s\n", what,
		query.error  ? gai_strerror(query.error) :
		step.ret < 0 ? strerror((int)-step.ret) :
			       "interrupted");
	return 0;
}

static void received(struct flexsc_cb *cb)
{
	if (!worked("receiving"))
		return;
	fwrite(answer, 1, (size_t)cb->ret, stdout);
	status = 0;
}

static void connected(struct flexsc_cb *cb)
{
	if (!worked("connecting"))
		return;
	flexsc_recv(cb, fd, answer, sizeof(answer), 0);
	wait_for(received);
}

static void resolved(struct flexsc_cb *cb)
{
	const struct addrinfo *found = query.result;

	if (!worked("resolving"))
		return;
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	flexsc_connect(cb, fd, found->ai_addr, (int)found->ai_addrlen);
	wait_for(connected);
}

/* The callback of the pending step still runs, and reports the result. */
static void interrupted(struct flexsc_cb *cb)
{
	(void)cb;
	/* The signal isn't pending any more, so undo flexsc_unref(). */
	flexsc_ref();
	/*
	 * The step may be complete already; then the next one has to be
	 * cancelled.
	 */
	stopping = 1;
	flexsc_cancel(&step);
}

int main(int argc, char **argv)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };

	if (argc != 4 || flexsc_init())
		return 1;
	patience = strtoull(argv[3], NULL, 10) * SECOND;
	interrupt.callback = interrupted;
	flexsc_signal(&interrupt, SIGINT);
	/* A pending signal alone must not keep the loop running. */
	flexsc_unref();
	flexsc_loop_getaddrinfo(flexsc_loop_default(), &step, &query, argv[1], argv[2],
				&hints);
	wait_for(resolved);
	flexsc_main_loop();
	if (query.result)
		freeaddrinfo(query.result);
	if (fd >= 0)
		close(fd);
	return status;
}
