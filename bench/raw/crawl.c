/* SPDX-License-Identifier: MIT */
/*
 * bench --raw crawl: a program that opens, reads, hashes and closes many small files,
 * as backup programs and indexers do. The files are in the page cache, so the program
 * needs only processor time: in the kernel for its calls, in user mode for hashing.
 *
 * 	plain		one thread, plain calls
 * 	divided		two threads, on core and cores; each has half of the files
 * 	an engine	one thread; "batch" files are open at a time
 *
 * With a client it is a file server: it also sends each file through a UNIX socket to a
 * thread on the client's core, which discards what it receives.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <flexsc/flexsc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/cases.h"
#include "loop.h"
#include "report.h"

#define NAME	24

struct crawl {
	const struct bench_settings *settings;
	size_t bytes;
	long files;
	char folder[32];
	char (*names)[NAME];
	int fd;			/* of the folder */
	uint64_t expected;	/* sum of the files' hashes */
	uint64_t wrong;		/* number of failed calls */
	struct flexsc_loop *loop;
	long next;		/* the library: the next file to open */
	uint64_t sum;
	int socket[2];		/* the server's and the client's end, or -1 */
	pthread_t client;
};

/* A file that is open at the moment, and what the library needs for its calls. */
struct visit {
	struct flexsc_cb cb;
	struct crawl *crawl;
	int fd;
	unsigned char *content;
};

/* FNV-1a, by words, "passes" times: what an indexer does with a file's content. */
static uint64_t hashed(const struct crawl *crawl, const unsigned char *content)
{
	uint64_t hash = 14695981039346656037U, word;

	for (long pass = 0; pass < crawl->settings->passes; pass++)
		for (size_t i = 0; i + sizeof(word) <= crawl->bytes;
		     i += sizeof(word)) {
			memcpy(&word, content + i, sizeof(word));
			hash = (hash ^ word) * 1099511628211U;
		}
	return hash;
}

/* The client. */

#define RECEIVE		(1U << 18)

static void *receive_all(void *arg)
{
	const struct crawl *crawl = arg;
	char *buffer = malloc(RECEIVE);

	bench_pin(crawl->settings->client);
	while (buffer && recv(crawl->socket[1], buffer, RECEIVE, 0) > 0)
		;
	free(buffer);
	/* A server that still sends fails with EPIPE. */
	shutdown(crawl->socket[1], SHUT_RDWR);
	return NULL;
}

static int start_client(struct crawl *crawl)
{
	int err;

	if (crawl->settings->client < 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, crawl->socket))
		return bench_failed("socketpair", -errno);
	err = pthread_create(&crawl->client, NULL, receive_all, crawl);
	return err ? bench_failed("client", -err) : 0;
}

static void end_client(struct crawl *crawl)
{
	if (crawl->client) {
		shutdown(crawl->socket[0], SHUT_RDWR);
		pthread_join(crawl->client, NULL);
	}
	for (unsigned int i = 0; i < 2; i++)
		if (crawl->socket[i] >= 0)
			close(crawl->socket[i]);
}

static bool is_sent(const struct crawl *crawl)
{
	return crawl->socket[0] >= 0;
}

/* Plain calls. */

struct half {
	struct crawl *crawl;
	long first, end, core;
	uint64_t sum, wrong;
};

static void *visit_plainly(void *arg)
{
	struct half *half = arg;
	struct crawl *crawl = half->crawl;
	unsigned char *content = malloc(crawl->bytes);

	half->wrong += !content || bench_pin(half->core);
	for (long i = half->first; content && i < half->end; i++) {
		int fd = openat(crawl->fd, crawl->names[i], O_RDONLY | O_CLOEXEC);

		half->wrong += read(fd, content, crawl->bytes) !=
			       (ssize_t)crawl->bytes;
		half->sum += hashed(crawl, content);
		if (is_sent(crawl))
			half->wrong += send(crawl->socket[0], content, crawl->bytes,
					    MSG_NOSIGNAL) != (ssize_t)crawl->bytes;
		half->wrong += close(fd) != 0;
	}
	free(content);
	return NULL;
}

static void round_plain(struct crawl *crawl)
{
	struct half all = { .crawl = crawl, .end = crawl->files, .core = -1 };

	visit_plainly(&all);
	crawl->sum += all.sum;
	crawl->wrong += all.wrong;
}

static void round_divided(struct crawl *crawl)
{
	struct half second = {
		.crawl = crawl, .first = crawl->files / 2, .end = crawl->files,
		.core = atol(crawl->settings->cores),
	};
	struct half first = { .crawl = crawl, .end = second.first, .core = -1 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, visit_plainly, &second)) {
		crawl->wrong++;
		return;
	}
	visit_plainly(&first);
	pthread_join(thread, NULL);
	crawl->sum += first.sum + second.sum;
	crawl->wrong += first.wrong + second.wrong;
}

/* Posted calls: open, read, perhaps send, close, then the next file. */

static void opened(struct flexsc_cb *cb);

static void open_next(struct visit *visit)
{
	struct crawl *crawl = visit->crawl;

	if (crawl->next == crawl->files)
		return;
	visit->cb.callback = opened;
	flexsc_loop_openat(crawl->loop, &visit->cb, crawl->fd,
			   crawl->names[crawl->next++], O_RDONLY | O_CLOEXEC, 0);
}

static void was_closed(struct flexsc_cb *cb)
{
	struct visit *visit = cb->arg;

	visit->crawl->wrong += cb->ret != 0;
	open_next(visit);
}

static void close_it(struct visit *visit)
{
	visit->cb.callback = was_closed;
	flexsc_loop_close(visit->crawl->loop, &visit->cb, visit->fd);
}

static void was_sent(struct flexsc_cb *cb)
{
	struct visit *visit = cb->arg;

	visit->crawl->wrong += cb->ret != (int64_t)visit->crawl->bytes;
	close_it(visit);
}

static void was_read(struct flexsc_cb *cb)
{
	struct visit *visit = cb->arg;
	struct crawl *crawl = visit->crawl;

	crawl->wrong += cb->ret != (int64_t)crawl->bytes;
	if (is_sent(crawl)) {
		cb->callback = was_sent;
		flexsc_loop_send(crawl->loop, cb, crawl->socket[0], visit->content,
				 crawl->bytes, MSG_NOSIGNAL);
	} else {
		close_it(visit);
	}
	crawl->sum += hashed(crawl, visit->content);
}

static void opened(struct flexsc_cb *cb)
{
	struct visit *visit = cb->arg;

	visit->fd = (int)cb->ret;
	cb->callback = was_read;
	flexsc_loop_read(visit->crawl->loop, cb, visit->fd, visit->content,
			 visit->crawl->bytes);
}

static struct visit *visits_of(struct crawl *crawl)
{
	size_t count = (size_t)crawl->settings->batch;
	struct visit *visits = bench_memory(count, sizeof(*visits));
	unsigned char *content = bench_memory(count, crawl->bytes);

	if (!visits || !content) {
		free(visits);
		free(content);
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		visits[i].crawl = crawl;
		visits[i].cb.arg = &visits[i];
		visits[i].content = content + i * crawl->bytes;
	}
	return visits;
}

static void round_posted(struct crawl *crawl, struct visit *visits)
{
	crawl->next = 0;
	for (long i = 0; i < crawl->settings->batch; i++)
		open_next(&visits[i]);
	flexsc_loop_run(crawl->loop);
}

/* The files. */

static int make_file(struct crawl *crawl, long i, unsigned char *content)
{
	uint64_t seed = (uint64_t)i + 1;
	int fd;

	for (size_t at = 0; at < crawl->bytes; at++)
		content[at] = (unsigned char)bench_random(&seed);
	snprintf(crawl->names[i], NAME, "%ld", i);
	fd = openat(crawl->fd, crawl->names[i],
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, content, crawl->bytes) != (ssize_t)crawl->bytes) {
		close(fd);
		return -ENOSPC;
	}
	crawl->expected += hashed(crawl, content);
	return close(fd) ? -errno : 0;
}

static int make_files(struct crawl *crawl)
{
	unsigned char *content = malloc(crawl->bytes);
	int err = content ? 0 : -ENOMEM;

	snprintf(crawl->folder, sizeof(crawl->folder), "/var/tmp/flexsc-XXXXXX");
	if (!err && !mkdtemp(crawl->folder))
		err = -errno;
	if (!err)
		crawl->fd = open(crawl->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (long i = 0; !err && i < crawl->files; i++)
		err = make_file(crawl, i, content);
	free(content);
	return err ? bench_failed(crawl->folder, err) : 0;
}

static void remove_files(struct crawl *crawl)
{
	if (crawl->fd < 0)
		return;
	for (long i = 0; i < crawl->files; i++)
		unlinkat(crawl->fd, crawl->names[i], 0);
	close(crawl->fd);
	rmdir(crawl->folder);
}

static int measure(struct crawl *crawl, struct visit *visits,
		   struct bench_series *series)
{
	for (long rep = -1; rep < crawl->settings->reps; rep++) {
		uint64_t begin = bench_clock(CLOCK_MONOTONIC), end;

		crawl->sum = 0;
		if (visits)
			round_posted(crawl, visits);
		else if (bench_is(crawl->settings->variant, "divided"))
			round_divided(crawl);
		else
			round_plain(crawl);
		end = bench_clock(CLOCK_MONOTONIC);
		crawl->wrong += crawl->sum != crawl->expected;
		/* The first repetition is a warm-up. */
		if (rep >= 0)
			bench_series_add(series, (double)(end - begin) /
						 (double)crawl->files);
	}
	if (crawl->wrong)
		fprintf(stderr, "%s: crawl: %llu wrong results\n", bench_who,
			(unsigned long long)crawl->wrong);
	return crawl->wrong != 0;
}

static void report(const struct crawl *crawl, const struct bench_series *series)
{
	bench_report_begin("crawl", crawl->settings);
	bench_report_series(series);
	bench_report_counts();
	if (crawl->loop)
		bench_report_stats(crawl->loop);
	bench_report_end();
}

static int run(struct crawl *crawl)
{
	const struct bench_settings *settings = crawl->settings;
	struct visit *visits = NULL;
	struct bench_series series;
	int err;

	if (bench_is(settings->variant, "divided") && !settings->cores) {
		fprintf(stderr, "%s: crawl: variant=divided: give cores=CORE, "
			"the second thread's core\n", bench_who);
		return 1;
	}
	if (bench_is(settings->variant, "plain") ||
	    bench_is(settings->variant, "divided")) {
		err = bench_pin(settings->core);
	} else {
		err = bench_loop_create(&crawl->loop, settings);
		visits = err ? NULL : visits_of(crawl);
		err |= !visits;
	}
	err = err || bench_series_init(&series, "ns_per_file", settings);
	if (!err) {
		err = measure(crawl, visits, &series);
		if (!err)
			report(crawl, &series);
		bench_series_fini(&series);
	}
	flexsc_loop_destroy(crawl->loop);
	if (visits)
		free(visits[0].content);
	free(visits);
	return err;
}

int bench_crawl(const struct bench_settings *settings)
{
	struct crawl crawl = {
		.settings = settings,
		.bytes = (size_t)settings->bytes,
		.files = settings->outstanding,
		.fd = -1,
		.socket = { -1, -1 },
	};
	int err = 1;

	crawl.names = bench_memory((size_t)crawl.files, NAME);
	if (crawl.names && !make_files(&crawl) && !start_client(&crawl))
		err = run(&crawl);
	end_client(&crawl);
	remove_files(&crawl);
	free(crawl.names);
	return err;
}
