/* SPDX-License-Identifier: MIT */
/*
 * Accepting clients. listener_open() and the two functions for names run before
 * any worker, the rest on the worker's thread.
 *
 * When a client connects while the worker is full, the worker closes the
 * connection that has been idle for the longest time. If no connection is idle,
 * the worker answers the new client 503 at once. That connection lingers so
 * that the answer arrives, unless its place is needed. When the process runs
 * out of descriptors or memory, the worker closes a lingering or an idle
 * connection. It accepts again when a connection has been closed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/un.h>

#include <flexsc/flexsc.h>

#include "connection.h"
#include "listener.h"

#define PAUSE	(CLOCK_SECOND / 20)

static void complain(const char *address, const char *port, const char *what,
		     const char *advice, const char *option)
{
	fprintf(stderr, "flexsc: serve: %s port %s: %s%s%s\n", address, port,
		what, advice, option);
}

/* The backlog is INT_MAX: the kernel limits it to net.core.somaxconn. */
static int listen_on(const struct addrinfo *info, bool shared)
{
	int fd = socket(info->ai_family,
			info->ai_socktype | SOCK_CLOEXEC, info->ai_protocol);
	int one = 1, error;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* Accepted sockets inherit this option. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if ((!shared || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one,
				   sizeof(one)) == 0) &&
	    bind(fd, info->ai_addr, info->ai_addrlen) == 0 &&
	    listen(fd, INT_MAX) == 0)
		return fd;
	error = errno;
	close(fd);
	return -error;
}

int listener_open(const char *address, const char *port, bool shared,
		  const char *option)
{
	struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *info;
	int rc = getaddrinfo(address, port, &hints, &info), fd;

	if (rc) {
		complain(address, port, gai_strerror(rc), "", "");
		return -1;
	}
	fd = listen_on(info, shared);
	freeaddrinfo(info);
	if (fd >= 0)
		return fd;
	complain(address, port, strerror(-fd),
		 fd == -EADDRINUSE ? "; choose another one with " :
		 fd == -EACCES ? "; ports below 1024 need root or "
				 "CAP_NET_BIND_SERVICE" :
		 fd == -EADDRNOTAVAIL ? "; this machine doesn't have that "
					"address" : "",
		 fd == -EADDRINUSE ? option : "");
	return -1;
}

/* Write "unix:/run/name" if the socket is a local one. */
static bool local_name(int fd, char *name, size_t size)
{
	struct sockaddr_un address = { 0 };
	socklen_t length = sizeof(address);

	getsockname(fd, (struct sockaddr *)&address, &length);
	if (address.sun_family != AF_UNIX)
		return false;
	snprintf(name, size, "unix:%.*s", (int)sizeof(address.sun_path),
		 address.sun_path);
	return true;
}

static void names(int fd, char *host, size_t host_size, char *port,
		  size_t port_size)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);

	getsockname(fd, (struct sockaddr *)&address, &length);
	getnameinfo((struct sockaddr *)&address, length, host, host_size, port,
		    port_size, NI_NUMERICHOST | NI_NUMERICSERV);
}

void listener_port(int fd, char *port, size_t size)
{
	names(fd, NULL, 0, port, size);
}

void listener_name(int fd, char *name, size_t size)
{
	char host[64] = "?", port[8] = "?";

	if (local_name(fd, name, size))
		return;
	names(fd, host, sizeof(host), port, sizeof(port));
	snprintf(name, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host,
		 port);
}

static void on_pause(struct flexsc_cb *cb)
{
	struct listener *l = cb->arg;

	l->paused = false;
	listener_resume(l);
}

/* Stop accepting for now: the process is out of descriptors or memory. */
static void pause_accepting(struct listener *l)
{
	if (l->paused || l->closed)
		return;
	clients_shed(l->clients);
	l->paused = flexsc_loop_timer(l->clients->env->loop, &l->pause,
				      PAUSE) == 0;
}

/* Handle an accept4()'s result: a client's socket, or an error. */
static void take_client(struct listener *l, int64_t ret,
			const struct sockaddr_storage *peer)
{
	struct clients *all = l->clients;

	switch (ret) {
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -ENOBUFS:
	case -ENOSPC:
	case -EINVAL:
	case -EBADF:
		pause_accepting(l);
		break;
	default:
		/*
		 * Ignore any other error: it concerns a single client, which
		 * has gone.
		 */
		if (ret >= 0)
			connection_start(all, (int)ret, peer,
					 !clients_make_place(all));
	}
}

/*
 * Is there room for one more client? If not, close a lingering connection, if
 * any. listener_freed() is called when that connection has been closed.
 */
static bool has_room(struct listener *l)
{
	if (clients_have_room(l->clients, l->posted))
		return true;
	clients_make_room(l->clients);
	return false;
}

static void on_accept(struct flexsc_cb *cb)
{
	struct listener_accept *a = cb->arg;
	struct listener *l = a->listener;

	a->posted = false;
	l->posted--;
	take_client(l, cb->ret, &a->peer);
	if (!l->closed)
		listener_resume(l);
	else if (!l->posted)
		l->clients->left(l->clients);
}

static bool post(struct listener *l, struct listener_accept *a)
{
	struct clients *all = l->clients;
	struct sockaddr *peer = NULL;
	socklen_t *length = NULL;

	if (log_enabled(&all->env->log)) {
		peer = (struct sockaddr *)&a->peer;
		length = &a->length;
		a->length = sizeof(a->peer);
	}
	if (flexsc_loop_accept4(all->env->loop, &a->cb, l->fd, peer, length,
				SOCK_CLOEXEC) != 0)
		return false;
	a->posted = true;
	l->posted++;
	return true;
}

void listener_init(struct listener *l, struct clients *all, int fd)
{
	unsigned int i;

	*l = (struct listener){
		.clients = all,
		.fd = fd,
		.pause = { .callback = on_pause, .arg = l },
	};
	for (i = 0; i < LISTENER_ACCEPTS; i++) {
		l->accepts[i].listener = l;
		l->accepts[i].cb = (struct flexsc_cb){
			.callback = on_accept,
			.arg = &l->accepts[i],
		};
	}
}

void listener_resume(struct listener *l)
{
	unsigned int i;

	if (l->paused || l->closed)
		return;
	for (i = 0; i < LISTENER_ACCEPTS; i++) {
		if (!has_room(l))
			return;
		if (!l->accepts[i].posted && !post(l, &l->accepts[i])) {
			pause_accepting(l);
			return;
		}
	}
}

void listener_freed(struct listener *l)
{
	if (l->paused)
		flexsc_loop_cancel(l->clients->env->loop, &l->pause);
	else
		listener_resume(l);
}

void listener_close(struct listener *l)
{
	unsigned int i;

	l->closed = true;
	flexsc_loop_cancel(l->clients->env->loop, &l->pause);
	for (i = 0; i < LISTENER_ACCEPTS; i++)
		flexsc_loop_cancel(l->clients->env->loop, &l->accepts[i].cb);
	/*
	 * Keep a passed socket open for new clients: they wait there until
	 * another server accepts them.
	 */
	if (!l->clients->env->settings->passed)
		shutdown(l->fd, SHUT_RDWR);
}

void listener_fini(struct listener *l)
{
	close(l->fd);
}
