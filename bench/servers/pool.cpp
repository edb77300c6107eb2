/* SPDX-License-Identifier: MIT */
/*
 * A server with a listener and a pool of threads. The listener waits in epoll, and
 * enqueues each connection that has something to read. A thread of the pool dequeues it,
 * answers by calls that block, and arms it in epoll again. A connection has one owner at
 * a time: EPOLLONESHOT disarms it until its thread arms it.
 *
 *	http-pool [PORT [ADDRESS [THREADS]]]
 */
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

extern "C" {
#include "service.h"
}

namespace {

constexpr int THREADS = 32, EVENTS = 64;

struct Connection {
	explicit Connection(int fd) : fd(fd) { service.begin(&c); }
	~Connection() { close(fd); }

	int fd;
	struct buffers c;
};

std::mutex mutex;
std::condition_variable filled;
std::deque<Connection *> waiting;	/* guarded by "mutex" */
int epoll;

bool arm(Connection *connection, int operation)
{
	epoll_event event = {};

	event.events = EPOLLIN | EPOLLONESHOT;
	event.data.ptr = connection;
	return epoll_ctl(epoll, operation, connection->fd, &event) == 0;
}

/* Returns false if the connection has ended. */
bool flush(int fd, struct buffers &c)
{
	while (c.begin < c.end) {
		ssize_t n = send(fd, c.out + c.begin, c.end - c.begin,
				 MSG_NOSIGNAL);

		if (n < 0)
			return false;
		c.begin += static_cast<size_t>(n);
	}
	return !c.last;
}

bool serve(int fd, struct buffers &c)
{
	size_t size;
	char *to = service.room(&c, &size);
	ssize_t n = recv(fd, to, size, 0);

	if (n <= 0)
		return false;
	service.answer(&c, static_cast<size_t>(n));
	while (c.end) {
		if (!flush(fd, c))
			return false;
		service.answer(&c, 0);
	}
	return true;
}

void work()
{
	for (;;) {
		std::unique_lock lock(mutex);
		filled.wait(lock, [] { return !waiting.empty(); });
		Connection *connection = waiting.front();
		waiting.pop_front();
		lock.unlock();
		if (!serve(connection->fd, connection->c) ||
		    !arm(connection, EPOLL_CTL_MOD))
			delete connection;
	}
}

void accept_one(int listener)
{
	int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	auto *connection = new Connection(fd);
	if (!arm(connection, EPOLL_CTL_ADD))
		delete connection;
}

void enqueue(Connection *connection)
{
	{
		std::lock_guard lock(mutex);
		waiting.push_back(connection);
	}
	filled.notify_one();
}

} // namespace

int main(int argc, char **argv)
{
	int port = argc > 1 ? atoi(argv[1]) : 0;
	int listener = service_listen("http-pool", argc > 2 ? argv[2] : "127.0.0.1",
				      static_cast<uint16_t>(port), 4096);
	epoll_event events[EVENTS], event = {};

	event.events = EPOLLIN;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event)) {
		perror("http-pool");
		return 1;
	}
	for (int left = argc > 3 ? atoi(argv[3]) : THREADS; left > 0; left--)
		std::thread(work).detach();
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				enqueue(static_cast<Connection *>(events[i].data.ptr));
			else
				accept_one(listener);
		}
	}
}
