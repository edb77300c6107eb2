/* SPDX-License-Identifier: MIT */
/*
 * An echo server: a coroutine for each connection. One that says nothing for a
 * minute is closed; SIGINT ends the server, and its connections with it.
 *
 *	echo PORT	on the loopback device
 */
#include <flexsc/flexsc.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <netinet/in.h>
#include <sys/socket.h>

using namespace std::chrono_literals;

static flexsc::task<> serve(flexsc::loop &loop, int fd, std::stop_token stop)
{
	std::array<std::byte, 4096> buffer;

	for (;;) {
		auto got = co_await loop.recv(fd, buffer).within(60s).until(stop);

		if (got.ret <= 0)
			break;
		if (!co_await loop.send(fd, std::span(buffer).first(
						    static_cast<size_t>(got.ret)),
					MSG_NOSIGNAL))
			break;
	}
	co_await loop.close(fd);
}

static flexsc::task<> listen(flexsc::loop &loop, uint16_t port,
			     std::stop_token stop)
{
	sockaddr_in address{};
	int on = 1;
	auto made = co_await loop.call<FLEXSC_NR_socket>(
		AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	auto fd = static_cast<int>(made.value_or_throw());

	address.sin_family = AF_INET;
	address.sin_port = htons(port);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	(co_await loop.call<FLEXSC_NR_bind>(fd, &address, sizeof(address)))
		.value_or_throw();
	(co_await loop.call<FLEXSC_NR_listen>(fd, SOMAXCONN)).value_or_throw();
	while (!stop.stop_requested()) {
		auto got = co_await loop.accept(fd, nullptr, nullptr,
						SOCK_CLOEXEC).until(stop);

		if (got)
			loop.spawn(serve(loop, static_cast<int>(got.ret), stop));
	}
	co_await loop.close(fd);
}

static flexsc::task<> end_on_signal(flexsc::loop &loop, std::stop_source stop)
{
	co_await loop.signal(SIGINT);
	stop.request_stop();
}

int main(int argc, char **argv)
try {
	if (argc != 2)
		return 2;
	std::stop_source stop;
	flexsc::loop loop;

	loop.spawn(end_on_signal(loop, stop));
	loop.spawn(listen(loop, static_cast<uint16_t>(std::atoi(argv[1])),
			  stop.get_token()));
	loop.run();
	return 0;
} catch (const std::exception &error) {
	std::fprintf(stderr, "echo: %s\n", error.what());
	return 1;
}
