/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "command.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "http/mime.h"

#define THREADS_MAX	32768U
#define STACK_BYTES	(256U << 10)

/* The counters of all threads, in memory shared by the copies. */
struct threads {
	atomic_uint count;
	struct web_thread threads[THREADS_MAX] __attribute__((aligned(64)));
};

static struct threads *threads;
static const char *program = "web";
static FILE *stats;

void command_complain(const char *what, int error)
{
	fprintf(stderr, "%s: %s: %s\n", program, what, strerror(error));
}

static _Noreturn void die(const char *what, int error)
{
	command_complain(what, error);
	exit(1);
}

/* Options. */

static const char *stats_path;
static unsigned int timeout = 30;

static struct command_option common[] = {
	{ .name = "port", .max = 65535 },
	{ .name = "bind" },
	COMMAND_NUMBER("timeout", &timeout, 1, 86400),
	{ .name = "stats", .text = &stats_path },
	{ 0 },
};

static const struct command_option *
option_find(const struct command_option *o, const char *name)
{
	while (o->name && strcmp(o->name, name) != 0)
		o++;
	return o->name ? o : NULL;
}

static void option_set(const struct command_option *o, const char *value)
{
	unsigned long n;
	char *end;

	if (o->text) {
		*o->text = value;
		return;
	}
	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || end == value || *end || *value == '-' || n < o->min ||
	    n > o->max) {
		fprintf(stderr, "%s: --%s %s: give a number from %u to %u\n",
			program, o->name, value, o->min, o->max);
		exit(2);
	}
	*o->number = (unsigned int)n;
}

static _Noreturn void no_option(const char *name)
{
	fprintf(stderr, "%s: %s: no such option\n", program, name);
	exit(2);
}

/* Parse an option and the value that follows it. */
static void option_parse(const struct command_option *options, int *i,
			 char **argv)
{
	const char *name = argv[*i] + 2, *value = argv[++*i];
	const struct command_option *o;

	o = option_find(common, name) ?: option_find(options, name);
	if (!o)
		no_option(name - 2);
	if (!value) {
		fprintf(stderr, "%s: --%s: the value is missing\n", program, name);
		exit(2);
	}
	option_set(o, value);
}

static const char *arguments(const struct command_option *options, int argc,
			     char **argv)
{
	const char *folder = NULL;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--", 2)) {
			option_parse(options, &i, argv);
		} else if (*argv[i] == '-') {
			no_option(argv[i]);
		} else if (folder) {
			fprintf(stderr, "%s: expected only one folder\n", program);
			exit(2);
		} else {
			folder = argv[i];
		}
	}
	if (!folder) {
		fprintf(stderr, "%s: missing folder; try %s .\n", program,
			program);
		exit(2);
	}
	return folder;
}

/* Raise the limit of descriptors as far as allowed. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Block the signals that command_wait() waits for. */
static void block_signals(sigset_t *set, bool copies)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	if (copies)
		sigaddset(set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, set, NULL);
}

static void command_init(struct command *c, const char *folder)
{
	allow_descriptors();
	c->web = (struct web){
		.root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.timeout = timeout * CLOCK_SECOND,
		.limits = { .head = WEB_HEAD_MAX, .body = 1 << 20 },
		.how = {
			/*
			 * O_NONBLOCK: opening a pipe must not wait for a
			 * writer.
			 */
			.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
		},
	};
	if (c->web.root < 0)
		die(folder, errno);
	threads = mmap(NULL, sizeof(*threads), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (threads == MAP_FAILED)
		die("memory", errno);
	if (stats_path)
		stats = fopen(stats_path, "we");
	if (stats_path && !stats)
		die(stats_path, errno);
	mime_load();
}

void command_parse(struct command *c, const char *name,
		   const struct command_option *options, int argc, char **argv)
{
	sigset_t set;

	*c = (struct command){ .program = name, .address = "127.0.0.1" };
	program = name;
	common[0].number = &c->port;
	common[1].text = &c->address;
	command_init(c, arguments(options, argc, argv));
	block_signals(&set, true);
	signal(SIGPIPE, SIG_IGN);
}

/* Sockets. */

/* The backlog is limited by net.core.somaxconn only. */
static int listener(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) ||
	    listen(fd, INT_MAX))
		return -1;
	return fd;
}

int command_listen(struct command *c)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)c->port),
	};
	socklen_t length = sizeof(address);
	char where[64];
	int fd;

	if (!inet_aton(c->address, &address.sin_addr)) {
		fprintf(stderr, "%s: --bind %s: give an IPv4 address\n",
			program, c->address);
		exit(2);
	}
	snprintf(where, sizeof(where), "%s:%u", inet_ntoa(address.sin_addr),
		 c->port);
	fd = listener(&address);
	if (fd < 0 || getsockname(fd, (struct sockaddr *)&address, &length))
		die(where, errno);
	c->port = ntohs(address.sin_port);
	printf("%u\n", c->port);
	fflush(stdout);
	return fd;
}

/* Threads, and the end of the process. */

struct web_thread *command_thread(void)
{
	unsigned int n = atomic_fetch_add(&threads->count, 1);

	return n < THREADS_MAX ? &threads->threads[n] : NULL;
}

void command_start(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	err = pthread_create(&thread, &attr, run, arg);
	if (!err)
		return;
	command_complain("threads", err);
	_exit(1);
}

static unsigned int thread_count(void)
{
	unsigned int n = atomic_load(&threads->count);

	return n < THREADS_MAX ? n : THREADS_MAX;
}

static uint64_t sum(size_t offset)
{
	unsigned int n = thread_count();
	uint64_t all = 0;

	for (unsigned int i = 0; i < n; i++) {
		const char *counts = (char *)&threads->threads[i].counts;

		all += __atomic_load_n((const uint64_t *)(counts + offset),
				       __ATOMIC_RELAXED);
	}
	return all;
}

static void write_stats(void)
{
	static const struct {
		const char *name;
		size_t offset;
	} fields[] = {
#define FIELD(name, field) { name, offsetof(struct web_counts, field) }
		FIELD("requests", requests),
		FIELD("connections", connections),
		FIELD("receive", calls[WEB_RECEIVE]),
		FIELD("send", calls[WEB_SEND]),
		FIELD("file", calls[WEB_FILE]),
		FIELD("close", calls[WEB_CLOSE]),
		FIELD("waits", waits),
		FIELD("watches", watches),
		FIELD("again", again),
		FIELD("handed", handed),
#undef FIELD
	};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		fprintf(stats, "%s\"%s\": %llu", i ? ", " : "{",
			fields[i].name,
			(unsigned long long)sum(fields[i].offset));
	fputs("}\n", stats);
	if (fclose(stats))
		die(stats_path, errno);
}

_Noreturn void command_wait(bool copies)
{
	sigset_t set;
	int signo;

	block_signals(&set, copies);
	sigwait(&set, &signo);
	if (stats)
		write_stats();
	if (signo == SIGCHLD)
		fprintf(stderr, "%s: a copy has ended\n", program);
	_exit(signo == SIGCHLD);
}
