/* SPDX-License-Identifier: MIT */
/*
 * A server's threads end, as those of Apache's worker do: one thread accepts
 * under a lock that is shared between processes, workers take connections from
 * a queue, main reads a pipe. A byte there ends them all, in whatever call they
 * are: a signal interrupts who accepts, a broadcast wakes who waits for work,
 * clients have gone from who polls a connection, and main joins everybody.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "threads.h"

#define WORKERS	6
#define SERVERS	2U	/* their listeners want one lock */
#define ROUNDS	MANY(60U)
#define QUEUE	64

struct server {
	pthread_t main, listener, workers[WORKERS];
	pthread_mutex_t lock;
	pthread_cond_t more;
	int queue[QUEUE], queued;
	int pipe[2];
	atomic_bool ends;
	atomic_bool listener_ended;
};

static pthread_mutex_t *turn;
static struct sockaddr_in address;
static int listening;
static atomic_bool clients_end;

static void ignore(int signo)
{
	(void)signo;
}

static void set_hangup(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	CHECK_EQ(pthread_sigmask(how, &set, NULL), 0);
}

/* Until the client leaves. */
static void echo(int fd)
{
	struct pollfd set = { .fd = fd, .events = POLLIN };
	char data[16];
	ssize_t n;

	while (poll(&set, 1, 10000) == 1) {
		n = read(fd, data, sizeof(data));
		if (n <= 0 || send(fd, data, (size_t)n, MSG_NOSIGNAL) != n)
			break;
	}
	close(fd);
}

static int next_connection(struct server *s)
{
	int fd = -1;

	pthread_mutex_lock(&s->lock);
	while (!s->queued && !atomic_load(&s->ends))
		pthread_cond_wait(&s->more, &s->lock);
	if (s->queued)
		fd = s->queue[--s->queued];
	pthread_mutex_unlock(&s->lock);
	return fd;
}

static void *work(void *arg)
{
	int fd;

	while ((fd = next_connection(arg)) >= 0)
		echo(fd);
	return NULL;
}

static void put(struct server *s, int fd)
{
	pthread_mutex_lock(&s->lock);
	if (s->queued < QUEUE)
		s->queue[s->queued++] = fd;
	else
		close(fd);
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
}

static void *listens(void *arg)
{
	struct server *s = arg;
	int fd;

	set_hangup(SIG_UNBLOCK);
	while (!atomic_load(&s->ends)) {
		CHECK_EQ(pthread_mutex_lock(turn), 0);
		fd = atomic_load(&s->ends) ? -1 : accept(listening, NULL, NULL);
		CHECK_EQ(pthread_mutex_unlock(turn), 0);
		if (fd >= 0)
			put(s, fd);
	}
	atomic_store(&s->listener_ended, true);
	return NULL;
}

static void *serve(void *arg)
{
	struct server *s = arg;
	char byte;

	set_hangup(SIG_BLOCK);
	for (unsigned int i = 0; i < WORKERS; i++)
		s->workers[i] = start(work, s);
	s->listener = start(listens, s);
	CHECK_EQ(read(s->pipe[0], &byte, 1), 1);
	atomic_store(&s->ends, true);
	pthread_mutex_lock(&s->lock);
	pthread_cond_broadcast(&s->more);
	pthread_mutex_unlock(&s->lock);
	/* One that comes just before accept() interrupts nothing. */
	while (!atomic_load(&s->listener_ended)) {
		CHECK_EQ(pthread_kill(s->listener, SIGHUP), 0);
		usleep(2000);
	}
	join(s->listener);
	for (unsigned int i = 0; i < WORKERS; i++)
		join(s->workers[i]);
	return NULL;
}

static void *ask(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	const struct timeval patience = { .tv_usec = 50000 };
	char byte;

	while (!atomic_load(&clients_end)) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		CHECK(fd >= 0);
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			   sizeof(patience));
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
			CHECK_EQ(errno, 0);
		for (int i = rand_r(&seed) % 3; i > 0; i--)
			if (send(fd, "x", 1, MSG_NOSIGNAL) != 1 ||
			    recv(fd, &byte, 1, 0) != 1)
				break;
		close(fd);
	}
	return NULL;
}

static void prepare(void)
{
	struct sigaction action = { .sa_handler = ignore };
	pthread_mutexattr_t attr;

	CHECK_EQ(sigaction(SIGHUP, &action, NULL), 0);
	turn = mmap(NULL, sizeof(*turn), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(turn != MAP_FAILED);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	CHECK_EQ(pthread_mutex_init(turn, &attr), 0);
	listening = listening_socket(&address, 0, 100);
}

/* Those that nobody has accepted. */
static void drain(void)
{
	struct pollfd set = { .fd = listening, .events = POLLIN };

	while (poll(&set, 1, 0) == 1)
		close(accept(listening, NULL, NULL));
}

static void begin(struct server *s)
{
	*s = (struct server){ .queued = 0 };
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->more, NULL);
	CHECK_EQ(pipe(s->pipe), 0);
	s->main = start(serve, s);
}

static void end(struct server *s)
{
	join(s->main);
	while (s->queued)
		close(s->queue[--s->queued]);
	close(s->pipe[0]);
	close(s->pipe[1]);
}

TEST_LIMIT(all_threads_of_a_server_end_when_it_is_told_to, 60)
{
	static struct server servers[SERVERS];
	unsigned int seed = 1;
	pthread_t clients[2];

	prepare();
	for (uintptr_t i = 0; i < ROUNDS; i++) {
		atomic_store(&clients_end, false);
		for (unsigned int j = 0; j < SERVERS; j++)
			begin(&servers[j]);
		for (uintptr_t j = 0; j < 2; j++)
			clients[j] = start(ask, (void *)(2 * i + j + 1));
		usleep((useconds_t)rand_r(&seed) % 4000);
		for (unsigned int j = 0; j < SERVERS; j++)
			CHECK_EQ(write(servers[j].pipe[1], "!", 1), 1);
		atomic_store(&clients_end, true);
		for (unsigned int j = 0; j < SERVERS; j++)
			end(&servers[j]);
		join_all(clients, 2);
		drain();
	}
}
