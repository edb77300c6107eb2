/* SPDX-License-Identifier: MIT */
/*
 * Several loops: an echo server with a loop on each of some threads. They share
 * one listener, from which each takes the clients that it has time for; nothing
 * else is shared, so nothing is locked.
 *
 *	loops THREADS	prints its port, serves until its input ends
 */
#include <arpa/inet.h>
#include <errno.h>
#include <flexsc/default.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOPS_MAX	64

struct client {
	struct flexsc_cb cb;
	int fd;
	char bytes[4096];
};

static struct flexsc_loop *loops[LOOPS_MAX];
static pthread_barrier_t begun;
static int listener;

static void received(struct flexsc_cb *cb);

/* Functions without "loop" in their names mean this thread's own. */
static void receive(struct client *client)
{
	client->cb.callback = received;
	flexsc_recv(&client->cb, client->fd, client->bytes,
		    sizeof(client->bytes), 0);
}

static void sent(struct flexsc_cb *cb)
{
	if (cb->ret < 0) {
		flexsc_close(NULL, ((struct client *)cb->arg)->fd);
		free(cb->arg);
		return;
	}
	receive(cb->arg);
}

static void received(struct flexsc_cb *cb)
{
	struct client *client = cb->arg;

	if (cb->ret <= 0) {
		flexsc_close(NULL, client->fd);
		free(client);
		return;
	}
	cb->callback = sent;
	flexsc_send(cb, client->fd, client->bytes, (size_t)cb->ret,
		    MSG_NOSIGNAL);
}

static void accepted(struct flexsc_cb *cb)
{
	struct client *client = cb->ret < 0 ? NULL : malloc(sizeof(*client));

	if (client) {
		*client = (struct client){ .cb.arg = client,
					   .fd = (int)cb->ret };
		receive(client);
	}
	if (cb->ret != -ECANCELED)
		flexsc_accept4(cb, listener, NULL, NULL, SOCK_CLOEXEC);
}

static void *run(void *loop)
{
	struct flexsc_cb cb = { .callback = accepted };

	/* A loop is its maker's, and this thread's default. */
	if (!flexsc_init())
		*(struct flexsc_loop **)loop = flexsc_loop_default();
	pthread_barrier_wait(&begun);
	if (!flexsc_loop_default())
		return NULL;
	flexsc_accept4(&cb, listener, NULL, NULL, SOCK_CLOEXEC);
	flexsc_main_loop();
	/* Ends what is pending: the accept, and clients' calls. */
	flexsc_fini();
	return NULL;
}

static int listen_somewhere(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(addr);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&addr, size) ||
	    listen(listener, 128) ||
	    getsockname(listener, (struct sockaddr *)&addr, &size))
		return 1;
	printf("%d\n", ntohs(addr.sin_port));
	return fflush(stdout);
}

int main(int argc, char **argv)
{
	int n = argc == 2 ? atoi(argv[1]) : 0;
	pthread_t threads[LOOPS_MAX];

	if (n < 1 || n > LOOPS_MAX || listen_somewhere())
		return 1;
	pthread_barrier_init(&begun, NULL, (unsigned int)n + 1);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, run, &loops[i]))
			return 1;
	pthread_barrier_wait(&begun);
	while (getchar() != EOF)
		;
	for (int i = 0; i < n; i++) {
		/* From any thread. */
		flexsc_loop_stop(loops[i]);
		pthread_join(threads[i], NULL);
	}
	return 0;
}
