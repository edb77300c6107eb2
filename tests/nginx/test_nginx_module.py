# SPDX-License-Identifier: MIT
"""What nginx answers with the module. The same nginx without the module is the oracle.

nginxes.py describes how both get the same requests.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from fixtures import PATIENCE, eventually, state
from nginxes import (
    BIG,
    CLIENTS,
    CORES,
    FEATURES,
    SMALL,
    Connection,
    Nginx,
    ask_one,
    burst,
    crowd,
    installed_one,
    request,
    stopped,
    timeless,
)
from programs import compiled, installed

FILES = ["/small", "/empty", "/page.html", "/32k", "/32k1", "/with.html"]
PLACES = ["/gzip", "/slow", "/proxy", "/ssi", "/sub", "/direct", "/threads", "/copied"]
PLACES += ["/unsent"]
ODD = ["/none", "/folder", "/folder/", "/list/", "/pipe", "/closed", "/link", "/try/"]
ODD += ["/word/", "/forbidden/", "/small/", "/cached/none", "/cached/folder"]
ODD += ["/gzip/ready.html", "/missing.html", "/small?query", "/cached/closed", "/big"]
ASKED = [request(place + file) for place in ("", "/cached") for file in FILES]
ASKED += [
    request(place + file) for place in PLACES for file in ("/small", "/with.html")
]
ASKED += [request(target) for target in ODD]
for place in ("", "/cached", "/copied"):
    for headers in (
        ["Range: bytes=10-19"],
        ["Range: bytes=0-1,5-6,1000-"],
        ["Range: bytes=5000-"],
        ["Range: bytes=-7"],
        ["If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"],
        ["If-None-Match: *"],
        ["Content-Length: 3", "", "abc"],
    ):
        ask = request(f"{place}/small", "GET", *headers)
        ASKED.append(ask[:-4] if headers[-1] == "abc" else ask)
ASKED += [
    request("/gzip/page.html", "GET", "Accept-Encoding: gzip"),
    request("/gzip/ready.html", "GET", "Accept-Encoding: gzip"),
    request("/gzip/page.html", "GET", "Accept-Encoding: gzip", "Range: bytes=1-5"),
    request("/small", "POST", "Content-Length: 0"),
    request("/small", "PUT", "Content-Length: 0"),
]
LAST = ["/small", "/cached/small", "/big", "/none", "/empty", "/slow/32k", "/folder"]
CLOSING = [request(target, "GET", "Connection: close") for target in LAST]
for place in ("", "/cached", "/copied"):
    CLOSING.append(request(f"{place}/small", "GET", 'If-Match: "other"'))
    since = "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT"
    CLOSING.append(request(f"{place}/small", "GET", since))
CLOSING.append(request("/%00"))
HEADS = [request(place + "/small", "HEAD") for place in ("", "/cached", "/proxy")]
HEADS += [request(target, "HEAD") for target in ("/big", "/none", "/folder", "/empty")]


def test_answers_are_nginx_own(stock: Nginx, either: Nginx) -> None:
    before = either.stats()["posted"]
    with crowd(stock, 1) as one, crowd(either) as many:
        for ask in [*ASKED, *HEADS]:
            expected = [ask_one(stock, one[0], ask)] * CLIENTS
            assert burst(either, many, ask) == expected, ask
    posted = either.stats()["posted"] - before
    assert posted > CLIENTS * len(ASKED) // 2


def test_answers_of_few_clients_are_nginx_own(stock: Nginx, nginx: Nginx) -> None:
    with crowd(stock, 1) as theirs, crowd(nginx, 1) as ours:
        for ask in [*ASKED, *HEADS]:
            expected = ask_one(stock, theirs[0], ask)
            assert ask_one(nginx, ours[0], ask) == expected, ask


VARIED = [
    request(target, method, "From: varied", *headers)
    for target, method, *headers in (
        ("small", "GET"),
        ("small", "HEAD"),
        ("small", "POST", "Content-Length: 0"),
        ("small", "GET", "Range: bytes=10-19"),
        ("small", "GET", "Range: bytes=0-1,5-6,1000-"),
        ("small", "GET", "Range: bytes=5000-"),
        ("small", "GET", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"),
        ("small", "GET", "If-None-Match: *"),
        ("small", "GET", 'If-Match: "other"'),
        ("small", "GET", 'If-Range: "other"', "Range: bytes=1-2"),
        ("page.html", "GET"),
        ("page.html", "GET", "Accept-Encoding: gzip"),
        ("ready.html", "GET", "Accept-Encoding: gzip"),
        ("32k1", "GET"),
        ("empty", "GET"),
        ("empty", "HEAD"),
        ("link", "GET"),
        ("none", "GET"),
        ("folder", "GET"),
        ("folder/", "GET"),
        ("closed", "GET"),
        ("small?start=100", "GET"),
    )
]


def varied(server: Nginx, feature: int, secure: bool = False) -> list[bytes]:
    """Send each request on a separate connection, all in one turn."""
    port = server.tls if secure else server.port
    with crowd(server, len(VARIED), secure) as many:
        with stopped(server.worker()):
            for connection, ask in zip(many, VARIED, strict=True):
                connection.send(ask.replace(b" ", b" /%d/" % feature, 1))
        return [
            timeless(connection.answer(ask.startswith(b"HEAD")), port)
            for connection, ask in zip(many, VARIED, strict=True)
        ]


def logged(server: Nginx, who: str, n: int) -> list[str]:
    """Return the log lines of requests with this From header."""

    def lines() -> list[str]:
        text = (server.root / "access").read_text()
        return [line for line in text.splitlines() if line.endswith(f" {who}")]

    assert eventually(lambda: len(lines()) >= n)
    return lines()


@pytest.fixture(scope="module")
def native(stock: Nginx) -> tuple[list[list[bytes]], list[str]]:
    """The responses of stock nginx to each request, and its log lines."""
    answers = [varied(stock, i) for i in range(len(FEATURES))]
    return answers, sorted(logged(stock, "varied", len(FEATURES) * len(VARIED)))


def test_features_of_nginx_are_its_own(
    native: tuple[list[list[bytes]], list[str]], either: Nginx
) -> None:
    """Each directive separately, with requests of all kinds in one turn."""
    answers, lines = native
    for i, words in enumerate(FEATURES):
        for ask, got, wanted in zip(VARIED, varied(either, i), answers[i], strict=True):
            assert got == wanted, (words, ask)
    assert sorted(logged(either, "varied", len(lines))) == lines


def test_features_are_nginx_own_over_tls(stock: Nginx, nginx: Nginx) -> None:
    """The module reads the files, and filters get the contents from memory."""
    before = nginx.stats()["posted"]
    for i, words in enumerate(FEATURES):
        wanted = varied(stock, i, secure=True)
        got = varied(nginx, i, secure=True)
        for ask, ours, theirs in zip(VARIED, got, wanted, strict=True):
            assert ours == theirs, (words, ask)
    assert nginx.stats()["posted"] - before > len(FEATURES)


def test_both_write_the_same_log(stock: Nginx, nginx: Nginx) -> None:
    asked = [
        request(target, "GET", "From: log")
        for target in ("/small", "/none", "/32k", "/big", "/cached/small", "/word/")
    ]

    def lines(server: Nginx) -> list[str]:
        with crowd(server) as many:
            for ask in asked:
                burst(server, many, ask)
        return logged(server, "log", len(asked) * CLIENTS)

    assert lines(nginx) == lines(stock)


def test_pipelined_requests_are_answered_in_order(nginx: Nginx) -> None:
    targets = ["/small", "/big", "/none", "/cached/32k", "/word/", "/small"]
    with crowd(nginx) as many:
        alone = [burst(nginx, many[:1], request(target))[0] for target in targets]
        with stopped(nginx.worker()):
            for connection in many:
                connection.send(b"".join(map(request, targets)))
        for connection in many:
            for expected in alone:
                assert timeless(connection.answer(), nginx.port) == expected


def test_connections_end_with_their_last_answer(stock: Nginx, nginx: Nginx) -> None:
    """A request may ask for the end on a new connection, or on a kept one."""
    for ask in CLOSING:
        with crowd(stock, 1) as one:
            expected = ask_one(stock, one[0], ask)
        with crowd(nginx) as many:
            many += [nginx.connect() for _ in range(CLIENTS)]
            for answer in burst(nginx, many, ask):
                assert answer == expected, ask
            for connection in many:
                assert connection.rest + connection.socket.recv(1) == b""
                connection.socket.close()


def descriptors(pid: int) -> int:
    """Return the descriptors, without the library's own."""
    count = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            count += "anon_inode" not in os.readlink(f"/proc/{pid}/fd/{name}")
    return count


def test_clients_that_vanish_leave_nothing(either: Nginx) -> None:
    worker = either.worker()
    targets = ("/small", "/big", "/cached/small", "/slow/32k", "/gzip/page.html")
    with crowd(either, 1) as one:
        for target in targets:
            ask_one(either, one[0], request(target))
    assert eventually(lambda: state(worker)[0] == "S")
    before = descriptors(worker)
    for target in targets:
        with crowd(either) as many, stopped(worker):
            for i, connection in enumerate(many):
                connection.send(request(target) * 3)
                if i % 4 == 1:
                    connection.socket.shutdown(socket.SHUT_WR)
                elif i % 4 == 2:
                    connection.reset()
                elif i % 4 == 3:
                    connection.socket.close()
    assert eventually(lambda: descriptors(worker) <= before)
    with crowd(either) as many:
        assert len(set(burst(either, many, request("/small")))) == 1
    assert either.worker() == worker


def test_a_client_that_reads_nothing_times_out(nginx: Nginx) -> None:
    """After "send_timeout", although the module collects the responses."""
    asks = request("/hasty/32k") * 300
    with contextlib.ExitStack() as stack:
        stuck = [Connection(nginx.port, receive_buffer=4096) for _ in range(CLIENTS)]
        for connection in stuck:
            stack.enter_context(connection)

        def count() -> int:
            ports = {connection.socket.getsockname()[1] for connection in stuck}
            text = Path("/proc/net/tcp").read_text()
            peers = re.findall(r":(\w{4}) \w+:(\w{4}) 01 ", text)
            return sum(
                int(here, 16) == nginx.port and int(there, 16) in ports
                for here, there in peers
            )

        with stopped(nginx.worker()):
            for connection in stuck:
                connection.send(asks)
            assert eventually(lambda: count() == CLIENTS)
        assert eventually(lambda: count() == 0)
    assert "open socket" not in nginx.errors()


def test_a_change_is_seen_at_once(either: Nginx, shared: Path) -> None:
    """A file is changed in several ways, some of which keep its size and time."""
    path = shared / "files/edited"

    def write(text: bytes) -> None:
        path.write_bytes(text)

    def replace(text: bytes) -> None:
        new = shared / "files/new"
        new.write_bytes(text)
        os.utime(new, ns=(0, 0))
        new.rename(path)

    def quietly(text: bytes) -> None:
        with path.open("r+b") as file:
            file.write(text)
        os.utime(path, ns=(0, 0))

    write(b"first")
    with crowd(either, 4) as many:
        for i in range(18):
            text = b"%05d" % i
            (write, replace, quietly)[i % 3](text)
            for _ in range(2):
                for answer in burst(either, many, request("/edited")):
                    assert answer.endswith(text)
        path.chmod(0)
        if os.geteuid() == 0:
            assert burst(either, many, request("/edited"))[0][9:12] == b"403"
        path.unlink()
        assert burst(either, many, request("/edited"))[0][9:12] == b"404"


# Writes "after" to a file, from a page that is missing until the input ends. Until then
# the file has its new times, and the old bytes. Status 77: the kernel doesn't permit
# it.
LONG_WRITE = r"""
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *page;
static int file;

static void *writer(void *unused)
{
	return (void *)pwrite(file, page, 5, 0);
}

int main(int argc, char **argv)
{
	static char there[65536] = "after";
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_copy copy = { .src = (unsigned long)there };
	struct uffd_msg message;
	pthread_t thread;
	long size = sysconf(_SC_PAGESIZE);
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	void *written;

	file = open(argv[1], O_RDWR);
	page = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	where.range.start = copy.dst = (unsigned long)page;
	where.range.len = copy.len = size;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &where))
		return 77;
	pthread_create(&thread, 0, writer, 0);
	if (read(fd, &message, sizeof(message)) < 0 || write(1, ".", 1) != 1 ||
	    read(0, there + 5, 1) < 0 || ioctl(fd, UFFDIO_COPY, &copy))
		return 1;
	pthread_join(thread, &written);
	return (long)written != 5;
}
"""


def test_a_slow_write_is_seen(either: Nginx, shared: Path, tmp_path: Path) -> None:
    """Meanwhile a response may contain the old bytes. Later ones have to contain the
    new.
    """
    program = compiled(tmp_path, LONG_WRITE, "-pthread")
    path = shared / "files/slowly"
    path.write_bytes(b"prior")
    time.sleep(0.1)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        subprocess.Popen([program, path], **pipes) as writer,
        crowd(either, 4) as many,
    ):
        assert writer.stdin and writer.stdout
        if writer.stdout.read(1) != b".":
            pytest.skip("userfaultfd doesn't work here")
        time.sleep(0.1)
        for connection in many:
            connection.send(request("/slowly"))
        # If reads wait for the write, there is no response yet.
        select.select([connection.socket for connection in many], [], [], 0.2)
        writer.stdin.close()
        assert writer.wait(PATIENCE) == 0
        for connection in many:
            assert connection.answer()[-5:] in (b"prior", b"after")
        for answer in burst(either, many, request("/slowly")):
            assert answer.endswith(b"after")


def test_a_file_may_be_replaced_cut_or_removed(either: Nginx, shared: Path) -> None:
    """Each response contains one of the files. The response of a cut file may end
    early.
    """
    path = shared / "files/changing"
    versions = [bytes([65 + i]) * (1 + 3000 * i) for i in range(4)]
    over = threading.Event()

    def change() -> None:
        i = 0
        while not over.is_set():
            i += 1
            new = shared / "files/new"
            new.write_bytes(versions[i % 4])
            new.rename(path)
            if i % 5 == 0:
                os.truncate(path, 1)
            elif i % 7 == 0:
                path.unlink()

    changing = threading.Thread(target=change)
    changing.start()
    whole = 0
    try:
        for _ in range(10):
            with crowd(either) as many:
                with stopped(either.worker()):
                    for connection in many:
                        connection.send(request("/changing"))
                for connection in many:
                    try:
                        answer = connection.answer()
                    except EOFError:
                        continue
                    body = answer.partition(b"\r\n\r\n")[2]
                    assert len(set(body)) == 1 or body == b"it isn't there"
                    whole += 1
    finally:
        over.set()
        changing.join()
    assert whole > 10 * CLIENTS // 2


def test_a_file_that_is_not_in_memory_is_read(nginx: Nginx, shared: Path) -> None:
    path = shared / "files/cold"
    path.write_bytes(BIG[:30000])
    with crowd(nginx) as many:
        for _ in range(3):
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
            for answer in burst(nginx, many, request("/cold")):
                assert answer.endswith(BIG[:30000])


@pytest.mark.parametrize("way", ["--http1.1", "--http2"])
def test_tls_is_left_to_nginx(nginx: Nginx, way: str) -> None:
    curl = installed("curl", "curl")
    base = f"https://127.0.0.1:{nginx.tls}"
    argv = [curl, "-sk", way, "--parallel", "--parallel-immediate"]
    argv += [f"{base}/small", f"{base}/big", f"{base}/cached/32k", f"{base}/empty"] * 4
    done = subprocess.run(argv, capture_output=True, check=True, timeout=PATIENCE)
    expected = 4 * (len(SMALL) + len(BIG) + 32768)
    assert len(done.stdout) == expected


def test_bad_directives_are_reported(shared: Path) -> None:
    which = installed_one()
    config = shared / "bad.conf"
    for line in (
        "flexsc perhaps;",
        "flexsc_whole much;",
        "flexsc_send;",
        "flexsc_keep -1;",
        "flexsc_kernel_cores x;",
        "flexsc_kernel_cores 1023;",
        f"flexsc_kernel_cores {','.join(map(str, CORES))};",
    ):
        config.write_text(
            f"load_module {which.module};\npid {shared}/bad;\n"
            f"events {{}}\nhttp {{ {line} }}\n"
        )
        argv = [which.program, "-t", "-c", str(config), "-e", "stderr"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 1
        assert line.split()[0].rstrip(";") in done.stderr
