/* SPDX-License-Identifier: MIT */
/*
 * The protocols of a service manager such as systemd: sockets that it passes
 * (sd_listen_fds(3)), and messages to it (sd_notify(3)).
 */
#ifndef SERVE_SYSTEMD_H
#define SERVE_SYSTEMD_H

#include <stdbool.h>

#define SYSTEMD_SOCKETS	64

struct systemd_sockets {
	unsigned int count;
	int fds[SYSTEMD_SOCKETS];
	int metrics;		/* the socket with the name "metrics", or -1 */
};

/*
 * Find the sockets that were passed to this process, if any. The service
 * manager keeps them open, too. False: a socket is unusable, after a message.
 */
bool systemd_sockets(struct systemd_sockets *sockets);

/* Send "READY=1" or another message, if there is a service manager. */
void systemd_notify(const char *message);

#endif /* SERVE_SYSTEMD_H */
