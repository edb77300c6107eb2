/* SPDX-License-Identifier: MIT */
/*
 * The server of "Exception-Less System Calls for Event-Driven Servers" (USENIX
 * ATC 2011, figure 4), almost literally: it sends back the file that a client
 * names in a line, and hangs up.
 *
 *	server PORT; then: echo README.md | nc 127.0.0.1 PORT
 *
 * Each callback is a stage, started by the system call that the stage before
 * it posted. No descriptor is non-blocking, nothing here waits.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <flexsc/default.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILE_LEN	(1 << 20)

struct conn {
	struct flexsc_cb event;
	int fd;
	int file;
	char buf[1024];
};

static struct conn master;

static void conn_accepted(struct flexsc_cb *cb);
static void data_read(struct flexsc_cb *cb);
static void file_opened(struct flexsc_cb *cb);
static void file_sent(struct flexsc_cb *cb);

static int bind_and_listen(const char *port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(fd, 128)) {
		perror("server");
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	if (argc != 2 || flexsc_init())
		return 1;
	/* Not performance critical, do synchronously. */
	master.fd = bind_and_listen(argv[1]);
	/* Prepare accept. */
	master.event.callback = conn_accepted;
	master.event.arg = &master;
	flexsc_accept(&master.event, master.fd, NULL, NULL);
	/* Jump to event loop. */
	return flexsc_main_loop();
}

/* Called when accept() returns. */
static void conn_accepted(struct flexsc_cb *cb)
{
	int fd = (int)cb->ret;
	struct conn *c = fd >= 0 ? calloc(1, sizeof(*c)) : NULL;

	/* Issue another accept on the master socket. */
	flexsc_accept(cb, master.fd, NULL, NULL);
	if (!c)
		return;
	c->fd = fd;
	c->event.callback = data_read;
	c->event.arg = c;
	flexsc_read(&c->event, c->fd, c->buf, sizeof(c->buf) - 1);
}

static void data_read(struct flexsc_cb *cb)
{
	struct conn *c = cb->arg;

	/* Read of 0 means connection closed. */
	if (cb->ret <= 0) {
		flexsc_close(NULL, c->fd);
		free(c);
		return;
	}
	c->buf[cb->ret] = '\0';
	c->buf[strcspn(c->buf, "\r\n")] = '\0';
	cb->callback = file_opened;
	flexsc_openat(cb, AT_FDCWD, c->buf, O_RDONLY, 0);
}

static void file_opened(struct flexsc_cb *cb)
{
	struct conn *c = cb->arg;

	c->file = (int)cb->ret;
	cb->callback = file_sent;
	/* Issue asynchronous sendfile. */
	flexsc_sendfile(cb, c->fd, c->file, NULL, FILE_LEN);
}

static void file_sent(struct flexsc_cb *cb)
{
	struct conn *c = cb->arg;

	/* No callback necessary to handle close. */
	flexsc_close(NULL, c->file);
	flexsc_close(NULL, c->fd);
	free(c);
}
