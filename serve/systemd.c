/* SPDX-License-Identifier: MIT */
/*
 * The protocols of systemd.h (sockets that are passed, and messages to the
 * manager) consist of environment variables and plain system calls, so
 * libsystemd isn't needed. The sockets are found before there are threads.
 */
#define _GNU_SOURCE
#include "systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The first descriptor that the protocol passes: SD_LISTEN_FDS_START. */
#define FIRST	3

/* Returns the variable's number; 0 if it is missing or not a number. */
static unsigned long number(const char *variable)
{
	const char *text = secure_getenv(variable);
	char *end;
	unsigned long n;

	if (!text || *text < '0' || *text > '9')
		return 0;
	n = strtoul(text, &end, 10);
	return *end ? 0 : n;
}

static bool has_option(int fd, int option, int value)
{
	socklen_t length = sizeof(int);
	int found;

	return getsockopt(fd, SOL_SOCKET, option, &found, &length) == 0 &&
	       found == value;
}

/*
 * Check a passed socket, and set the options that listener_open() sets on its
 * own sockets.
 */
static bool adopt(int fd)
{
	int one = 1, flags = fcntl(fd, F_GETFL);

	if (!has_option(fd, SO_TYPE, SOCK_STREAM) ||
	    !has_option(fd, SO_ACCEPTCONN, 1)) {
		fprintf(stderr, "flexsc: serve: the passed descriptor %d is not "
				"a listening stream socket; use ListenStream= "
				"and Accept=no\n", fd);
		return false;
	}
	/* Clear O_NONBLOCK: accept4() has to wait for clients, not to fail. */
	if (flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* Accepted sockets inherit this option; it fails for AF_UNIX. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return true;
}

bool systemd_sockets(struct systemd_sockets *s)
{
	const char *name = secure_getenv("LISTEN_FDNAMES") ?: "";
	unsigned long i, n = number("LISTEN_FDS");

	*s = (struct systemd_sockets){ .metrics = -1 };
	/*
	 * Ignore variables that this process has inherited, but that were meant
	 * for another process.
	 */
	if (number("LISTEN_PID") != (unsigned long)getpid())
		return true;
	if (n > SYSTEMD_SOCKETS) {
		fprintf(stderr, "flexsc: serve: %lu sockets were passed, but "
				"at most %d can be used\n", n, SYSTEMD_SOCKETS);
		return false;
	}
	for (i = 0; i < n; i++) {
		size_t length = strcspn(name, ":");
		int fd = FIRST + (int)i;

		if (!adopt(fd))
			return false;
		if (length == 7 && memcmp(name, "metrics", 7) == 0)
			s->metrics = fd;
		else
			s->fds[s->count++] = fd;
		name += length;
		name += *name == ':';
	}
	return true;
}

static int send_to(const char *name, const char *message)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(name);
	ssize_t sent;
	int fd;

	if (length >= sizeof(address.sun_path))
		return ENAMETOOLONG;
	memcpy(address.sun_path, name, length);
	/* An abstract address begins with a zero. */
	if (*name == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	sent = sendto(fd, message, strlen(message), MSG_NOSIGNAL,
		      (struct sockaddr *)&address,
		      offsetof(struct sockaddr_un, sun_path) + length);
	length = sent < 0 ? errno : 0;
	close(fd);
	return (int)length;
}

void systemd_notify(const char *message)
{
	const char *name = secure_getenv("NOTIFY_SOCKET");
	int error;

	if (!name || !*name)
		return;
	error = send_to(name, message);
	if (error)
		fprintf(stderr, "flexsc: serve: can't notify %s: %s\n", name,
			strerror(error));
}
