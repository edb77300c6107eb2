/* SPDX-License-Identifier: MIT */
/*
 * A web server with one thread, which is notified of events in one of several
 * ways, the models (events.h). It is the server of SEND, section 4.3: events
 * put connections on one of two queues, one for new connections and one for
 * others. The server takes connections from the queues, new ones first; when
 * both are empty it waits for events. flexsc study overload compares the
 * models.
 *
 * 	http-events [--events MODEL] [--work US] [--backlog N] [--address IP]
 * 		    [--admission none|age] [--age MS] [PORT]
 * 	http-events --models
 *
 * Pages are /1k to /1024k. A request takes US microseconds to compute. What the
 * server does with more connections than it can serve:
 *
 * 	none	it serves them in their order
 * 	age	it accepts no more while the oldest one that isn't served yet has
 * 		waited for MS milliseconds
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/servers/service.h"
#include "events.h"

#define CONNECTIONS_MAX	(1 << 17)
#define MS		1000000ULL

enum admission { NONE, AGE };

struct queue {
	int first, last;	/* -1: the queue is empty */
};

static const struct model *const models[] = {
	&model_epoll, &model_send, &model_ps2, &model_ps1,
};

#define MODELS	(sizeof(models) / sizeof(models[0]))

static struct {
	const struct model *model;
	const char *address;
	int port, backlog;
	unsigned int work_us;
	enum admission admission;
	uint64_t age;		/* ns */
} options = {
	.model = &model_epoll, .address = "127.0.0.1", .backlog = 128,
	.age = 200 * MS,
};

struct connection *server_connections;
int server_limit;

static struct queue fresh = { -1, -1 }, others = { -1, -1 };
static bool admitting = true;
static bool full;	/* no descriptor is left */

uint64_t server_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The queues. */

static void push(struct queue *queue, int fd)
{
	server_connections[fd].queued = true;
	server_connections[fd].next = -1;
	if (queue->first < 0)
		queue->first = fd;
	else
		server_connections[queue->last].next = fd;
	queue->last = fd;
}

static int pop(struct queue *queue)
{
	int fd = queue->first;

	if (fd >= 0) {
		queue->first = server_connections[fd].next;
		server_connections[fd].queued = false;
	}
	return fd;
}

void server_new(int fd, uint64_t since)
{
	struct connection *c = &server_connections[fd];

	c->open = true;
	c->over = c->watched = c->last = false;
	c->since = since;
	c->head = c->page = 0;
	http_in_init(&c->in);
	push(&fresh, fd);
}

void server_ready(int fd)
{
	struct connection *c = &server_connections[fd];

	if (c->open && !c->queued)
		push(&others, fd);
}

/* Accepting and closing connections. */

static void admit(bool yes)
{
	admitting = yes;
	options.model->admit(yes);
}

void server_accept(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		if (fd < server_limit)
			server_new(fd, server_clock());
		else
			close(fd);
	}
	if (errno == EMFILE || errno == ENFILE) {
		full = true;
		admit(false);
	}
}

static void drop(int fd)
{
	server_connections[fd].open = false;
	options.model->close(fd);
	if (full) {
		full = false;
		admit(true);
	}
}

/*
 * Admission by age, with hysteresis: accept again when the age has fallen to
 * half.
 */
static void look_at_age(void)
{
	uint64_t waited = 0;

	if (fresh.first >= 0)
		waited = server_clock() -
			 server_connections[fresh.first].since;
	if (admitting && waited > options.age)
		admit(false);
	else if (!admitting && !full && waited <= options.age / 2)
		admit(true);
}

static void hold(void)
{
	if (options.model->hold)
		options.model->hold();
}

static void release(void)
{
	if (options.model->release)
		options.model->release();
}

static int take(void)
{
	int fd;

	hold();
	if (options.admission == AGE)
		look_at_age();
	fd = pop(&fresh);
	if (fd < 0)
		fd = pop(&others);
	release();
	return fd;
}

static void again(int fd)
{
	hold();
	server_ready(fd);
	release();
}

/*
 * An event that came meanwhile may have enqueued the connection, so it may be
 * closed only when it is dequeued.
 */
static void finish(int fd)
{
	hold();
	if (server_connections[fd].queued)
		server_connections[fd].over = true;
	else
		drop(fd);
	release();
}

static void serve(int fd)
{
	enum serve how = SERVE_OVER;

	if (!server_connections[fd].over)
		how = connection_serve(options.model, fd);
	if (how == SERVE_OVER)
		finish(fd);
	else if (how == SERVE_AGAIN)
		again(fd);
}

static void run(void)
{
	for (;;) {
		int fd = take();

		if (fd >= 0)
			serve(fd);
		else
			options.model->wait();
	}
}

/* The start. */

static void fail(const char *what)
{
	fprintf(stderr, "http-events: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void allow_connections(void)
{
	struct rlimit limit = { CONNECTIONS_MAX, CONNECTIONS_MAX };

	/* root may raise the hard limit. */
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	server_limit = (int)limit.rlim_cur;
	/* Only entries of used descriptors take memory. */
	server_connections = mmap(NULL, (size_t)server_limit *
				  sizeof(struct connection),
				  PROT_READ | PROT_WRITE, MAP_PRIVATE |
				  MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (server_connections == MAP_FAILED)
		fail("memory");
}

static int listen_there(void)
{
	int listener = service_listen("http-events", options.address,
				   (uint16_t)options.port, options.backlog);

	if (fcntl(listener, F_SETFL, O_NONBLOCK))
		fail("listener");
	return listener;
}

static void wrong(const char *option, const char *value)
{
	fprintf(stderr, "http-events: %s: invalid value \"%s\"\n", option, value);
	exit(2);
}

static int number(const char *option, const char *value, long max)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (end == value || *end || n < 0 || n > max)
		wrong(option, value);
	return (int)n;
}

static void choose_model(const char *name)
{
	for (size_t i = 0; i < MODELS; i++) {
		if (!strcmp(models[i]->name, name)) {
			options.model = models[i];
			return;
		}
	}
	wrong("--events", name);
}

static void choose_admission(const char *name)
{
	static const char *const names[] = { "none", "age" };

	for (int i = NONE; i <= AGE; i++) {
		if (!strcmp(names[i], name)) {
			options.admission = (enum admission)i;
			return;
		}
	}
	wrong("--admission", name);
}

static void print_models(void)
{
	for (size_t i = 0; i < MODELS; i++) {
		const struct model *model = models[i];
		const char *by = model->by ? model->by() : "the kernel";

		if (by)
			printf("%s\t%s\t%s\t%s\t%s\n", model->name,
			       model->delivery, model->notification,
			       model->accepting, by);
	}
	exit(0);
}

static void parse(int argc, char **argv)
{
	static const struct option known[] = {
		{ "events", required_argument, NULL, 'e' },
		{ "work", required_argument, NULL, 'w' },
		{ "backlog", required_argument, NULL, 'b' },
		{ "address", required_argument, NULL, 'i' },
		{ "admission", required_argument, NULL, 'a' },
		{ "age", required_argument, NULL, 'm' },
		{ "models", no_argument, NULL, 'l' },
		{ },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'e')
			choose_model(optarg);
		else if (c == 'w')
			options.work_us = (unsigned int)
				number("--work", optarg, 1000000);
		else if (c == 'b')
			options.backlog = number("--backlog", optarg, 65535);
		else if (c == 'i')
			options.address = optarg;
		else if (c == 'a')
			choose_admission(optarg);
		else if (c == 'm')
			options.age = MS * (uint64_t)
				number("--age", optarg, 3600000);
		else if (c == 'l')
			print_models();
		else
			exit(2);
	}
	if (optind < argc)
		options.port = number("PORT", argv[optind], 65535);
}

int main(int argc, char **argv)
{
	int listener;

	parse(argc, argv);
	allow_connections();
	connection_begin(options.work_us);
	listener = listen_there();
	if (!options.model->begin(listener))
		return 1;
	run();
}
