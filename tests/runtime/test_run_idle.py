# SPDX-License-Identifier: MIT
"""A waiting thread uses no processor time, in whatever state its connection is.

Program.stop() checks that for every program of the other tests.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from pathlib import Path

import pytest

from fixtures import PATIENCE, busy
from programs import CARRIED, Program, at_once, compiled, started

# A thread for each connection, each of which waits in another kind of call.
SOURCE = """
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int wait_by_epoll(int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
	int set = epoll_create1(0), n;

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	n = epoll_wait(set, &event, 1, -1);
	close(set);
	return n;
}

static void *serve(void *arg)
{
	int fd = (int)(long)arg, way = fd % 5;
	struct pollfd set = { fd, POLLIN, 0 };
	struct timeval long_time = { 3600, 0 };
	char data[65536];
	long n;

	if (way == 1)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &long_time,
			   sizeof(long_time));
	for (;;) {
		if (way == 2)
			poll(&set, 1, -1);
		else if (way == 3)
			wait_by_epoll(fd);
		n = way == 4 ? read(fd, data, sizeof(data)) :
			       recv(fd, data, sizeof(data), 0);
		if (n <= 0 || send(fd, data, n, MSG_NOSIGNAL) != n)
			break;
	}
	close(fd);
	return NULL;
}

static void *takes(void *arg)
{
	int listener = *(int *)arg, fd;
	pthread_t thread;

	for (;;) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			usleep(100000);
		else if (pthread_create(&thread, NULL, serve,
					(void *)(long)fd))
			return NULL;
		else
			pthread_detach(thread);
	}
}

int main(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t thread;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&at, size) ||
	    listen(listener, 200) ||
	    getsockname(listener, (struct sockaddr *)&at, &size))
		return 1;
	printf("%d\\n", ntohs(at.sin_port));
	fflush(stdout);
	pthread_create(&thread, NULL, takes, &listener);
	takes(&listener);
}
"""
RESET = struct.pack("ii", 1, 0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("idle")
    return compiled(folder, SOURCE, "-pthread")


def visit(port: int, i: int, kept: list[socket.socket]) -> None:
    """One peer: it stays, or leaves in one of several ways."""
    peer = socket.create_connection(("127.0.0.1", port), PATIENCE)
    keep = i % 2 == 0
    with contextlib.suppress(ConnectionError, BlockingIOError, TimeoutError):
        for _ in range(i % 3):
            peer.sendall(b"x" * 100)
            peer.recv(100)
        match i % 7:
            case 0:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            case 1:
                peer.shutdown(socket.SHUT_WR)
            case 2:
                peer.send(b"!", socket.MSG_OOB)
            case 3:
                peer.setblocking(False)
                while True:
                    peer.send(b"y" * 65536)
            case 4:
                peer.shutdown(socket.SHUT_RD)
                peer.send(b"z")
            case _:
                pass
    if keep:
        kept.append(peer)
    else:
        peer.close()


def visits(port: int, first: int, kept: list[socket.socket]) -> None:
    for i in range(first, 112, 8):
        visit(port, i, kept)


@pytest.mark.parametrize("way", ("native", *CARRIED))
def test_connections_in_any_state_are_waited_for(
    way: str, server: str, tmp_path: Path
) -> None:
    """Connections that are half closed, reset, full, or have urgent data."""
    with started(Program(way, [server], tmp_path / "log")) as program:
        program.wait_until(lambda: program.output().endswith("\n"))
        port = int(program.output())
        kept: list[socket.socket] = []
        for _ in range(2):
            at_once(8, lambda i: visits(port, i, kept))
            assert not busy([program.process.pid])
        for peer in kept:
            peer.close()
        assert not busy([program.process.pid])
