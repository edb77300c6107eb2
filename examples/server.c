/* SPDX-License-Identifier: MIT */
/*
 * A file server, after the server of "Exception-Less System Calls for Event-Driven
 * Servers" (USENIX ATC 2011, figure 4). It sends each client the file whose name the
 * client sends. docs/tutorial/first-program.md builds it step by step.
 *
 *	server PORT; then: echo README.md | nc -N 127.0.0.1 PORT
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <flexsc/default.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int listener;

struct client {
	struct flexsc_cb cb;
	int socket, file;
	char name[1024];
};

static void finish(struct client *client)
{
	if (client->file >= 0)
		flexsc_close(NULL, client->file);
	flexsc_close(NULL, client->socket);
	free(client);
}

static void sent(struct flexsc_cb *cb)
{
	struct client *client = cb->arg;

	if (cb->ret > 0)
		flexsc_sendfile(cb, client->socket, client->file, NULL, 1 << 20);
	else
		finish(client);
}

static void opened(struct flexsc_cb *cb)
{
	struct client *client = cb->arg;

	client->file = (int)cb->ret;
	cb->callback = sent;
	if (client->file >= 0)
		flexsc_sendfile(cb, client->socket, client->file, NULL, 1 << 20);
	else
		finish(client);
}

static void named(struct flexsc_cb *cb)
{
	static struct open_how how = { .resolve = RESOLVE_BENEATH };
	struct client *client = cb->arg;

	if (cb->ret <= 0) {
		finish(client);
		return;
	}
	client->name[strcspn(client->name, "\r\n")] = '\0';
	cb->callback = opened;
	flexsc_openat2(cb, AT_FDCWD, client->name, &how, sizeof(how));
}

static void accepted(struct flexsc_cb *cb)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client || cb->ret < 0) {
		fputs("server: accepting failed\n", stderr);
		free(client);
		return;
	}
	client->cb.callback = named;
	client->cb.arg = client;
	client->socket = (int)cb->ret;
	client->file = -1;
	flexsc_accept(cb, listener, NULL, NULL);
	flexsc_read(&client->cb, client->socket, client->name,
		    sizeof(client->name) - 1);
	flexsc_deadline(&client->cb, 10000000000);
}

int main(int argc, char **argv)
{
	struct flexsc_cb cb = { .callback = accepted };
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	int on = 1;

	signal(SIGPIPE, SIG_IGN);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&address, size) ||
	    listen(listener, 128) ||
	    getsockname(listener, (struct sockaddr *)&address, &size)) {
		perror("server");
		return 1;
	}
	printf("listening on port %d\n", ntohs(address.sin_port));
	fflush(stdout);
	if (flexsc_init())
		return 1;
	flexsc_accept(&cb, listener, NULL, NULL);
	return flexsc_main_loop() < 0;
}
