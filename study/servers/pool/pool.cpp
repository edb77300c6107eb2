/* SPDX-License-Identifier: MIT */
/*
 * An HTTP server with a listener and a pool of threads. The listener waits in epoll, and
 * enqueues connections that have something to read. A thread of the pool dequeues a
 * connection, answers what has come, and arms the connection in epoll again. Each answer
 * is a page of 1 KiB. Nothing in this file knows of FlexSC.
 *
 *	http-pool [ADDRESS [THREADS]]
 *
 * It prints its port. A connection belongs to one thread at a time: EPOLLONESHOT disarms
 * it until that thread arms it again.
 */
#include <arpa/inet.h>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <netinet/tcp.h>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr int THREADS = 32, BACKLOG = 4096, EVENTS = 64;
constexpr size_t PAGE = 1024, HEAD_MAX = 8192;

struct Connection {
	int fd;
	std::string input;
};

class Queue {
public:
	void push(Connection *connection)
	{
		{
			std::lock_guard lock(mutex);
			waiting.push_back(connection);
		}
		filled.notify_one();
	}

	Connection *pop()
	{
		std::unique_lock lock(mutex);

		filled.wait(lock, [this] { return !waiting.empty(); });
		Connection *first = waiting.front();
		waiting.pop_front();
		return first;
	}

private:
	std::mutex mutex;
	std::condition_variable filled;
	std::deque<Connection *> waiting;
};

int epoll;
Queue queue;
std::string answer;

bool arm(Connection *connection, int operation)
{
	epoll_event event = {};

	event.events = EPOLLIN | EPOLLONESHOT;
	event.data.ptr = connection;
	return epoll_ctl(epoll, operation, connection->fd, &event) == 0;
}

void drop(Connection *connection)
{
	close(connection->fd);
	delete connection;
}

bool send_all(int fd, const std::string &text)
{
	size_t sent = 0;

	while (sent < text.size()) {
		ssize_t n = send(fd, text.data() + sent, text.size() - sent,
				 MSG_NOSIGNAL);
		if (n < 0)
			return false;
		sent += static_cast<size_t>(n);
	}
	return true;
}

/* Answer each request that has come whole. False: the connection is over. */
bool serve(Connection &connection)
{
	char buffer[4096];
	ssize_t n = recv(connection.fd, buffer, sizeof(buffer), 0);

	if (n <= 0)
		return false;
	connection.input.append(buffer, static_cast<size_t>(n));
	for (;;) {
		size_t end = connection.input.find("\r\n\r\n");
		if (end == std::string::npos)
			return connection.input.size() < HEAD_MAX;
		connection.input.erase(0, end + 4);
		if (!send_all(connection.fd, answer))
			return false;
	}
}

void work()
{
	for (;;) {
		Connection *connection = queue.pop();
		if (!serve(*connection) || !arm(connection, EPOLL_CTL_MOD))
			drop(connection);
	}
}

int listen_on(const char *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1;
	sockaddr_in name = {};
	socklen_t length = sizeof(name);

	name.sin_family = AF_INET;
	name.sin_addr.s_addr = inet_addr(address);
	/* Accepted connections inherit it. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(fd, reinterpret_cast<sockaddr *>(&name), length) ||
	    listen(fd, BACKLOG) ||
	    getsockname(fd, reinterpret_cast<sockaddr *>(&name), &length)) {
		perror("http-pool");
		exit(1);
	}
	printf("%u\n", ntohs(name.sin_port));
	fflush(stdout);
	return fd;
}

void accept_all(int listener)
{
	int fd;

	while ((fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0) {
		auto *connection = new Connection{fd, {}};

		if (!arm(connection, EPOLL_CTL_ADD))
			drop(connection);
	}
}

} // namespace

int main(int argc, char **argv)
{
	int listener = listen_on(argc > 1 ? argv[1] : "127.0.0.1");
	int threads = argc > 2 ? atoi(argv[2]) : THREADS;
	epoll_event events[EVENTS] = {}, event = {};
	std::string page = "A page of a pool's thread.\n";

	page.resize(PAGE, 'x');
	answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
		 std::to_string(PAGE) + "\r\n\r\n" + page;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	event.events = EPOLLIN;
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event)) {
		perror("http-pool");
		return 1;
	}
	for (int i = 0; i < threads; i++)
		std::thread(work).detach();
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				queue.push(static_cast<Connection *>(events[i].data.ptr));
			else
				accept_all(listener);
		}
	}
}
