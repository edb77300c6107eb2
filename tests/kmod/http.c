/* SPDX-License-Identifier: MIT */
/*
 * Clients of an HTTP server on this host, as many as are wanted and each with a
 * connection that it keeps. They ask for the files of a folder in turn, and
 * each answer has to be the file, byte for byte.
 *
 *	kmod-http PORT CLIENTS REQUESTS FOLDER FILE...
 *
 * REQUESTS is what each of them asks for. Ends with how many answers were right
 * in all, and the status says whether all were.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define HEAD_MAX	4096U
#define PATIENCE_S	60	/* for anything: a guest may be slow */
#define CLIENTS_MAX	4096U
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

/* The files. */

static char *read_file(const char *folder, const char *name, size_t *size)
{
	struct stat stat;
	char path[4096];
	char *data;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat))
		return NULL;
	*size = (size_t)stat.st_size;
	data = malloc(*size + 1);
	if (data && read(fd, data, *size) != stat.st_size)
		data = NULL;
	close(fd);
	return data;
}

static bool read_files(const char *folder, char **names, unsigned int count)
{
	files = calloc(count, sizeof(*files));
	file_count = count;
	for (unsigned int i = 0; files && i < count; i++) {
		struct file *file = &files[i];

		file->name = names[i];
		file->data = read_file(folder, names[i], &file->size);
		if (file->data)
			continue;
		fprintf(stderr, "kmod-http: %s/%s: %s\n", folder, names[i],
			strerror(errno));
		return false;
	}
	return files;
}

static size_t largest(void)
{
	size_t size = 0;

	for (unsigned int i = 0; i < file_count; i++)
		if (files[i].size > size)
			size = files[i].size;
	return size;
}

/* A client. */

static int connect_to_server(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct timeval limit = { .tv_sec = PATIENCE_S };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

static const char *ask(int fd, const char *name)
{
	char text[512];
	int size = snprintf(text, sizeof(text),
			    "GET /%s HTTP/1.1\r\nHost: guest\r\n\r\n", name);

	return send(fd, text, (size_t)size, MSG_NOSIGNAL) == size ?
		       NULL : strerror(errno);
}

/* What its head says, which ends with an empty line; -1: it isn't right. */
static long length_of(const char *head)
{
	static const char field[] = "\r\nContent-Length: ";
	const char *length = strstr(head, field);

	if (strncmp(head, "HTTP/1.1 200 ", 13) != 0 || !length)
		return -1;
	return strtol(length + sizeof(field) - 1, NULL, 10);
}

/* The whole of an answer, and no more; NULL, or what is wrong with it. */
static const char *receive(int fd, char *answer, size_t room,
			   const struct file *file)
{
	size_t got = 0, wanted = 0, head = 0;
	char *end;

	while (!wanted || got < wanted) {
		ssize_t n = recv(fd, answer + got, room - got, 0);

		if (n <= 0)
			return n ? strerror(errno) : "the server closed it";
		got += (size_t)n;
		answer[got] = '\0';
		end = wanted ? NULL : strstr(answer, "\r\n\r\n");
		if (!end)
			continue;
		head = (size_t)(end + 4 - answer);
		if (length_of(answer) != (long)file->size)
			return "it isn't 200, or of another length";
		wanted = head + file->size;
	}
	if (got > wanted || memcmp(answer + head, file->data, file->size) != 0)
		return "it isn't the file";
	return NULL;
}

static void *run_client(void *arg)
{
	const unsigned int number = (unsigned int)(uintptr_t)arg;
	const size_t room = HEAD_MAX + largest();
	char *answer = malloc(room + 1);
	int fd = connect_to_server();
	const char *wrong = fd < 0 ? strerror(errno) : NULL;

	for (unsigned int i = 0; answer && !wrong && i < requests; i++) {
		const struct file *file = &files[(number + i) % file_count];

		wrong = ask(fd, file->name);
		if (!wrong)
			wrong = receive(fd, answer, room, file);
		if (!wrong)
			atomic_fetch_add(&right, 1);
		else
			fprintf(stderr, "kmod-http: client %u, request %u, "
				"/%s: %s\n", number, i, file->name, wrong);
	}
	if (fd >= 0)
		close(fd);
	free(answer);
	return NULL;
}

/* All of them. */

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
	pthread_attr_destroy(&attr);
	free(threads);
}

int main(int argc, char **argv)
{
	unsigned long clients;

	if (argc < 6) {
		fputs("usage: kmod-http PORT CLIENTS REQUESTS FOLDER FILE...\n",
		      stderr);
		return 2;
	}
	port = (uint16_t)strtoul(argv[1], NULL, 10);
	clients = strtoul(argv[2], NULL, 10);
	requests = (unsigned int)strtoul(argv[3], NULL, 10);
	if (clients > CLIENTS_MAX ||
	    !read_files(argv[4], argv + 5, (unsigned int)argc - 5))
		return 2;
	run_clients((unsigned int)clients);
	printf("%u of %lu answers were right\n", atomic_load(&right),
	       clients * requests);
	return atomic_load(&right) != clients * requests;
}
