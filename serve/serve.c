/* SPDX-License-Identifier: MIT */
/*
 * "flexsc serve": serves the files below a folder. The first worker runs on the
 * main thread, each other one on a thread of its own. Workers share nothing
 * while they handle requests.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>

#include <flexsc/loop.h>

#include "cmd/command.h"
#include "lib/base/cores.h"
#include "metrics.h"
#include "systemd.h"
#include "worker.h"
#include "http/mime.h"

/* Descriptors used by a worker, libc and the shell. */
#define OWN_FDS		8
#define OTHER_FDS	32

/*
 * Maximum number of clients per loop that may be refused at the same time. If
 * descriptors are few, REFUSED_LEAST applies instead of REFUSED_MOST.
 */
#define REFUSED_MOST	64
#define REFUSED_LEAST	8

struct team_member {
	struct worker worker;
	pthread_t thread;
	const struct settings *settings;
	int socket;
	int core;		/* the processor; -1: any */
	int rc;
	sem_t ready;	/* posted once the worker runs, or has failed */
	sem_t leave;	/* posted to let the thread end: no other thread will
			 * access its worker */
};

/* Returns the nth processor that this process may use; -1: it has fewer. */
static int nth_core(unsigned int n)
{
	cpu_set_t set;
	int core;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return -1;
	for (core = 0; core < 8 * (int)sizeof(set); core++)
		if (CPU_ISSET(core, &set) && n-- == 0)
			return core;
	return -1;
}

static void pin(int core)
{
	cpu_set_t set;

	if (core < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	/* Pinning is only an optimisation, so ignore a failure. */
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		;
}

static void *run_member(void *arg)
{
	struct team_member *m = arg;

	pin(m->core);
	m->rc = worker_init(&m->worker, m->settings, m->socket, false);
	sem_post(&m->ready);
	if (m->rc == 0) {
		m->rc = worker_run(&m->worker);
		/*
		 * This worker failed: stop all workers. Otherwise clients would
		 * wait at its socket for ever.
		 */
		if (m->rc)
			kill(getpid(), SIGTERM);
		wait_for(&m->leave);
	}
	worker_fini(&m->worker);
	return NULL;
}

/*
 * Give each loop one of the service manager's sockets. If there are more loops
 * than sockets, several loops share a socket.
 */
static bool use_sockets(struct team_member *team, const struct settings *s,
			const struct systemd_sockets *sockets)
{
	unsigned int i, n = sockets->count;

	if (n > s->loops) {
		fprintf(stderr, "flexsc: serve: %u sockets were passed, but "
				"each needs a loop; use -j %u\n", n, n);
		return false;
	}
	for (i = 0; i < s->loops; i++) {
		team[i].socket = i < n ? sockets->fds[i] :
				 fcntl(sockets->fds[i % n], F_DUPFD_CLOEXEC, 0);
		if (team[i].socket < 0) {
			fprintf(stderr, "flexsc: serve: can't duplicate a "
					"socket: %s\n", strerror(errno));
			return false;
		}
	}
	return true;
}

/* Open all sockets. The first one determines the port. */
static bool open_sockets(struct team_member *team, const struct settings *s)
{
	const char *port = s->port;
	char found[8];
	unsigned int i;

	for (i = 0; i < s->loops; i++) {
		team[i].socket = listener_open(s->address, port, s->loops > 1,
					       "-p");
		if (team[i].socket < 0)
			return false;
		if (i == 0) {
			listener_port(team[0].socket, found, sizeof(found));
			port = found;
		}
	}
	return true;
}

/*
 * Start the threads of all workers but the first. Returns the number of workers
 * that exist then, the first one included.
 */
static unsigned int start_others(struct team_member *team,
				 const struct settings *s)
{
	unsigned int i;
	int rc;

	for (i = 1; i < s->loops; i++) {
		sem_init(&team[i].ready, 0, 0);
		sem_init(&team[i].leave, 0, 0);
		rc = pthread_create(&team[i].thread, NULL, run_member,
				    &team[i]);
		if (rc) {
			fprintf(stderr, "flexsc: serve: can't make a thread "
					"for a loop: %s\n",
				strerror(rc));
			break;
		}
		wait_for(&team[i].ready);
		if (team[i].rc) {
			pthread_join(team[i].thread, NULL);
			break;
		}
	}
	return i;
}

static void announce(const struct team_member *team, const struct settings *s,
		     int metrics_fd)
{
	const struct flexsc_loop *loop = team->worker.env.loop;
	const char *why = flexsc_loop_why(loop);
	const char *reason = why ? strstr(why, ": ") : NULL;
	char name[80];

	listener_name(team->socket, name, sizeof(name));
	/* "uring: the reason"; or, of the engine uring itself, why it doesn't poll */
	if (why && strcmp(flexsc_loop_engine(loop), "uring") == 0)
		fprintf(stderr, "flexsc: --kernel-cores %s: %s\n",
			s->kernel_cores, why);
	else if (reason)
		fprintf(stderr, "flexsc: using engine %s, because %.*s doesn't "
				"work here: %s\n", flexsc_loop_engine(loop),
			(int)(reason - why), why, reason + 2);
	if (team->worker.env.no_openat2)
		fprintf(stderr, "flexsc: openat2() doesn't work here (%s): "
				"opening a file takes one call for each part "
				"of its path\n",
			strerror(team->worker.env.no_openat2));
	if (metrics_fd >= 0) {
		char place[80];

		listener_name(metrics_fd, place, sizeof(place));
		fprintf(stderr, "metrics on http://%s" METRICS_PATH "\n", place);
	}
	fprintf(stderr, "serving %s on http://%s/ with engine %s, %u loop%s\n",
		s->root, name, flexsc_loop_engine(loop), s->loops,
		s->loops > 1 ? "s" : "");
	systemd_notify("READY=1");
}

/* Run all workers; returns 0 or the first error. */
static int run_team(struct team_member *team, const struct settings *s,
		    int metrics_fd)
{
	struct metrics metrics;
	unsigned int n, i;
	int rc;

	n = start_others(team, s);
	rc = n < s->loops ? -EAGAIN : 0;
	if (rc == 0) {
		pin(team[0].core);
		rc = worker_init(&team[0].worker, s, team[0].socket, true);
	}
	for (i = 1; i < n && rc == 0; i++)
		team[i - 1].worker.next = &team[i].worker;
	if (rc == 0 && !metrics_start(&metrics, metrics_fd, &team[0].worker))
		rc = -EAGAIN;
	if (rc == 0) {
		log_file_close(s->log_file);
		announce(team, s, metrics_fd);
		rc = worker_run(&team[0].worker);
		metrics_stop(&metrics);
	}
	for (i = 1; i < n; i++) {
		if (rc)
			worker_ask_stop(&team[i].worker);
		sem_post(&team[i].leave);
		pthread_join(team[i].thread, NULL);
		rc = rc ? rc : team[i].rc;
	}
	if (team[0].worker.env.loop)
		worker_fini(&team[0].worker);
	return rc;
}

/* Open --metrics [ADDRESS:]PORT. False: after a message. */
static bool open_metrics(const char *place, int *fd)
{
	const char *colon = strrchr(place, ':');
	const char *port = colon ? colon + 1 : place;
	char address[256] = "127.0.0.1", *end;
	const char *from = place;
	size_t length = colon ? (size_t)(colon - place) : 0;

	if (strtoul(port, &end, 10) > 65535 || end == port || *end ||
	    *port < '0' || *port > '9' || length >= sizeof(address) ||
	    (colon && !length)) {
		fprintf(stderr, "flexsc: serve: --metrics %s: give a port, such "
				"as 9100, or an address and a port, such as "
				"[::1]:9100\n", place);
		return false;
	}
	/* Remove the brackets around an IPv6 address. */
	if (length > 2 && from[0] == '[' && from[length - 1] == ']') {
		from++;
		length -= 2;
	}
	if (length) {
		memcpy(address, from, length);
		address[length] = '\0';
	}
	*fd = listener_open(address, port, false, "--metrics");
	return *fd >= 0;
}

static int serve(const struct settings *s,
		 const struct systemd_sockets *sockets)
{
	struct team_member *team = calloc(s->loops, sizeof(*team));
	int rc = -1, metrics_fd = sockets->metrics;
	unsigned int i;

	if (!team) {
		fprintf(stderr, "flexsc: %s\n", strerror(ENOMEM));
		return -ENOMEM;
	}
	for (i = 0; i < s->loops; i++) {
		team[i].settings = s;
		team[i].core = s->loops > 1 ? nth_core(i) : -1;
	}
	if ((!s->metrics || open_metrics(s->metrics, &metrics_fd)) &&
	    (s->passed ? use_sockets(team, s, sockets) : open_sockets(team, s)))
		rc = run_team(team, s, metrics_fd);
	free(team);
	return rc;
}

/*
 * Limit the number of clients to what the descriptors suffice for: each client
 * needs one, and its request another. Otherwise clients would be accepted whose
 * files couldn't be opened.
 */
static void fit_descriptors(struct settings *s)
{
	struct rlimit limit;
	rlim_t others = OTHER_FDS + s->cache +
			(rlim_t)(OWN_FDS + REFUSED_LEAST) * s->loops;
	rlim_t needed = others + 2 * (rlim_t)s->max_connections;
	rlim_t wanted = needed + (rlim_t)(REFUSED_MOST - REFUSED_LEAST) * s->loops;
	rlim_t most;

	s->max_refused = REFUSED_MOST;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= wanted)
		return;
	s->max_refused = REFUSED_LEAST;
	if (limit.rlim_cur >= needed)
		return;
	most = limit.rlim_cur > others + 2 ? (limit.rlim_cur - others) / 2 : 1;
	s->max_connections = most;
	fprintf(stderr, "flexsc: limited to %u clients, because only %llu "
		"descriptors are allowed; raise ulimit -n\n",
		s->max_connections, (unsigned long long)limit.rlim_cur);
}

/*
 * Restrict this process to the cores that --kernel-cores doesn't list, so that all loops
 * run there. False: after a message.
 */
static bool leave_kernel_cores(const char *list)
{
	char why[120];
	cpu_set_t rest;

	if (!list)
		return true;
	if (!flexsc__cores_split(list, &rest, why, sizeof(why))) {
		if (!sched_setaffinity(0, sizeof(rest), &rest))
			return true;
		snprintf(why, sizeof(why), "sched_setaffinity: %s",
			 strerror(errno));
	}
	fprintf(stderr, "flexsc: serve: --kernel-cores %s: %s\n", list, why);
	return false;
}

static bool open_files(struct settings *s)
{
	int rc;

	s->root_fd = open(s->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->root_fd < 0) {
		fprintf(stderr, "flexsc: serve: %s: %s\n", s->root,
			strerror(errno));
		return false;
	}
	rc = log_open(s->log_file, s->log);
	if (rc)
		fprintf(stderr, "flexsc: serve: access log %s: %s\n", s->log,
			strerror(-rc));
	return rc == 0;
}

static void close_files(struct settings *s)
{
	if (s->log_file->dropped)
		fprintf(stderr, "flexsc: access log %s: %llu lines were lost\n",
			s->log_file->name,
			(unsigned long long)s->log_file->dropped);
	log_file_close(s->log_file);
	close(s->root_fd);
}

int command_serve(int argc, char **argv)
{
	struct systemd_sockets sockets;
	struct log_file log_file;
	struct settings settings;
	int rc = settings_parse(&settings, argc, argv);

	if (rc >= 0)
		return rc;
	if (!leave_kernel_cores(settings.kernel_cores))
		return 2;
	settings.log_file = &log_file;
	if (!systemd_sockets(&sockets) || !open_files(&settings))
		return 1;
	settings.passed = sockets.count > 0;
	fit_descriptors(&settings);
	mime_load();
	/*
	 * Ignore SIGPIPE: if the log is a pipe whose reader has gone, a write
	 * must fail instead of ending the server.
	 */
	signal(SIGPIPE, SIG_IGN);
	rc = serve(&settings, &sockets);
	close_files(&settings);
	return rc ? 1 : 0;
}
