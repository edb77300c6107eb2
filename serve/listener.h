/* SPDX-License-Identifier: MIT */
/*
 * The listening socket of a worker.
 */
#ifndef SERVE_LISTENER_H
#define SERVE_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include <sys/socket.h>

#include <flexsc/call.h>

/* Calls of accept4() that wait at once. */
#define LISTENER_ACCEPTS	8

struct clients;
struct listener;

struct listener_accept {
	struct flexsc_cb cb;
	struct listener *listener;
	bool posted;
	socklen_t length;
	struct sockaddr_storage peer;
};

struct listener {
	struct clients *clients;
	int fd;
	unsigned int posted;
	bool paused;
	bool closed;
	struct flexsc_cb pause;
	struct listener_accept accepts[LISTENER_ACCEPTS];
};

/*
 * A socket that listens on address and port, which may be "0". shared: other
 * loops will listen there, too. Returns it, or -1 after a message.
 */
int listener_open(const char *address, const char *port, bool shared);

/* "127.0.0.1:8080", with what port 0 became. */
void listener_name(int fd, char *name, size_t size);

/* The port alone. */
void listener_port(int fd, char *port, size_t size);

void listener_init(struct listener *listener, struct clients *clients, int fd);

/* Accept, as far as there is room for clients. The worker has its loop. */
void listener_resume(struct listener *listener);

/* A client has gone: there is room, and a descriptor. */
void listener_freed(struct listener *listener);

void listener_close(struct listener *listener);

void listener_fini(struct listener *listener);

#endif /* SERVE_LISTENER_H */
