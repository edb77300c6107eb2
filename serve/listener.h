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

/* Number of concurrent accept4() calls. */
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
 * Return a socket that listens on "address" and "port", or -1 after printing a
 * message. With port "0" the kernel chooses one. shared: sockets of other loops
 * will listen on the same port. option: name of the command's option for the
 * port, for the message.
 */
int listener_open(const char *address, const char *port, bool shared,
		  const char *option);

/*
 * Write "127.0.0.1:8080", with the port that the kernel chose for 0, or
 * "unix:PATH".
 */
void listener_name(int fd, char *name, size_t size);

/* Write the port alone. */
void listener_port(int fd, char *port, size_t size);

void listener_init(struct listener *listener, struct clients *clients, int fd);

/* Accept while there is room for clients. The worker's loop must exist. */
void listener_resume(struct listener *listener);

/*
 * Called when a connection was closed, so that its room and its descriptor are
 * free.
 */
void listener_freed(struct listener *listener);

void listener_close(struct listener *listener);

void listener_fini(struct listener *listener);

#endif /* SERVE_LISTENER_H */
