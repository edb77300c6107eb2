/* SPDX-License-Identifier: MIT */
/*
 * Clients of an HTTP server on this host. Each client has one persistent connection,
 * and requests the files of a folder in turn. Each response has to be the file, byte
 * for byte.
 *
 *	kmod-http PORT CLIENTS REQUESTS FOLDER FILE...
 *
 * REQUESTS is the number per client. Prints how many responses were correct. The
 * status is 0 if all were.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define PATIENCE_S	60	/* limit for any wait: a guest may be slow */
#define STACK		(256 * 1024)

struct file {
	const char *name;
	char *data;
	size_t size;
};

static struct file *files;
static unsigned int file_count, requests;
static uint16_t port;
static atomic_uint right;

static void read_file(struct file *file, const char *folder, const char *name)
{
	char path[4096];
	FILE *stream;
	size_t room = 0;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	stream = fopen(path, "re");
	if (!stream)
		err(2, "%s", path);
	file->name = name;
	for (int byte; (byte = getc(stream)) != EOF; file->size++) {
		if (file->size == room) {
			room = room * 2 + 4096;
			file->data = realloc(file->data, room);
			if (!file->data)
				err(2, "%s", path);
		}
		file->data[file->size] = (char)byte;
	}
	fclose(stream);
}

static FILE *connect_to_server(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct timeval limit = { .tv_sec = PATIENCE_S };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return NULL;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) ?
		       NULL : fdopen(fd, "r");
}

/* Is the response correct: status 200, the file's length, and its bytes? */
static bool is_answered(FILE *server, const struct file *file)
{
	static const char field[] = "Content-Length: ";
	char line[1024];
	long length = -1;

	if (!fgets(line, sizeof(line), server) ||
	    strncmp(line, "HTTP/1.1 200 ", 13) != 0)
		return false;
	while (fgets(line, sizeof(line), server) && *line != '\r')
		if (!strncmp(line, field, sizeof(field) - 1))
			length = strtol(line + sizeof(field) - 1, NULL, 10);
	if (length != (long)file->size)
		return false;
	for (size_t i = 0; i < file->size; i++)
		if (getc_unlocked(server) != (unsigned char)file->data[i])
			return false;
	return true;
}

static void *run_client(void *arg)
{
	const unsigned int number = (unsigned int)(uintptr_t)arg;
	FILE *server = connect_to_server();

	for (unsigned int i = 0; server && i < requests; i++) {
		const struct file *file = &files[(number + i) % file_count];

		dprintf(fileno(server), "GET /%s HTTP/1.1\r\nHost: guest\r\n\r\n",
			file->name);
		if (!is_answered(server, file)) {
			warnx("client %u, request %u, /%s: the response is wrong",
			     number, i, file->name);
			break;
		}
		atomic_fetch_add(&right, 1);
	}
	if (server)
		fclose(server);
	return NULL;
}

static void run_clients(unsigned int count)
{
	pthread_t *threads = calloc(count, sizeof(*threads));
	unsigned int started = 0;
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	while (threads && started < count &&
	       !pthread_create(&threads[started], &attr, run_client,
			       (void *)(uintptr_t)started))
		started++;
	while (started)
		pthread_join(threads[--started], NULL);
}

int main(int argc, char **argv)
{
	unsigned int clients;

	if (argc < 6)
		errx(2, "usage: kmod-http PORT CLIENTS REQUESTS FOLDER FILE...");
	port = (uint16_t)atoi(argv[1]);
	clients = (unsigned int)atoi(argv[2]);
	requests = (unsigned int)atoi(argv[3]);
	file_count = (unsigned int)argc - 5;
	files = calloc(file_count, sizeof(*files));
	signal(SIGPIPE, SIG_IGN);
	for (unsigned int i = 0; files && i < file_count; i++)
		read_file(&files[i], argv[4], argv[5 + i]);
	run_clients(clients);
	printf("%u of %u responses were correct\n", atomic_load(&right),
	       clients * requests);
	return atomic_load(&right) != clients * requests;
}
