# SPDX-License-Identifier: MIT
"""The web servers of study/servers/webserver: threads, events, loops and stages answer
like flexsc serve, make the same calls, and survive misbehaving clients.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE, Client, Server, busy, command, eventually, request
from programs import launcher
from test_serve import (  # noqa: F401
    HELLO,
    test_a_body_that_waits_for_100_continue_gets_an_answer,
    test_a_folder_is_its_index,
    test_a_folder_without_slash_moves,
    test_a_long_head_within_the_limit,
    test_a_range_of_a_big_file,
    test_a_range_outside_is_refused,
    test_a_request_may_come_byte_by_byte,
    test_an_absolute_name_is_below_the_folder,
    test_an_empty_file_is_empty,
    test_bad_requests_get_the_right_status,
    test_big_file_arrives_whole,
    test_bodies_are_skipped,
    test_conditions,
    test_conditions_are_evaluated_in_order,
    test_connection_close_is_obeyed,
    test_half_closed_client_gets_its_answer,
    test_head_has_headers_and_no_body,
    test_http_1_0_closes_unless_asked,
    test_links_inside_are_followed,
    test_not_modified_names_the_version,
    test_only_files_below_the_folder_are_served,
    test_other_methods_are_refused,
    test_percent_signs_are_decoded,
    test_python_s_own_client_is_served,
    test_ranges,
    test_types_follow_from_names,
)


@dataclasses.dataclass(frozen=True)
class Driver:
    """A program, its options, and the command that it runs under."""

    program: str
    options: tuple[str, ...] = ()
    way: str = "native"

    def __str__(self) -> str:
        return "".join([self.program[4:], *self.options, "-carried" * self.is_run])

    @property
    def is_run(self) -> bool:
        return self.way != "native"

    @property
    def own(self) -> int:
        """A waiting call of web-loops keeps a duplicate of the listener in the library."""
        return int(self.program == "web-loops")


RUN = "uring-2"
THREADS = Driver("web-threads", ("--threads", "32"))
EVENTS = Driver("web-events")
LOOPS = Driver("web-loops")
STAGES = Driver("web-stages")
HELPERS = Driver("web-events", ("--helpers", "2"))
COPIES = Driver("web-events", ("--copies", "2"))
PLAIN = [THREADS, EVENTS, LOOPS, STAGES]
CARRIED = [dataclasses.replace(d, way=RUN) for d in (THREADS, STAGES, HELPERS)]
MAIN = [*PLAIN, HELPERS, *CARRIED]
OTHERS = [
    Driver("web-threads", ("--threads", "4")),
    COPIES,
    Driver("web-events", ("--copies", "2", "--accepts", "1")),
    Driver("web-loops", ("--loops", "2")),
    Driver("web-stages", ("--read", "2", "--file", "3", "--write", "2")),
    Driver("web-stages", ("--batch", "1")),
]


def program(name: str) -> str:
    path = Path(command()).resolve().parents[1] / "study/servers/webserver" / name
    if not path.is_file():
        pytest.skip(f"{path} isn't built")
    return str(path)


class Web(Server):
    """One of the servers, on its own port."""

    def __init__(
        self,
        driver: Driver,
        root: Path,
        *options: str,
        before: Callable[[], None] | None = None,
    ) -> None:
        argv = [program(driver.program), "--port", "0", *driver.options, *options]
        self.process = subprocess.Popen(
            [*launcher(driver.way), *argv, str(root)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
        )
        self.messages: list[str] = []
        self.started = threading.Event()
        self.port = 0
        self.reader = threading.Thread(target=self._listen, daemon=True)
        self.reader.start()
        if not self.started.wait(PATIENCE) or not self.port:
            self.end()
            raise RuntimeError("\n".join(self.messages))

    def _listen(self) -> None:
        assert self.process.stdout is not None and self.process.stderr is not None
        self.port = int(self.process.stdout.readline().strip() or 0)
        if self.port:
            self.started.set()
        self.messages += [line.rstrip("\n") for line in self.process.stderr]
        self.started.set()

    def pids(self) -> list[int]:
        """The process and its copies."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    def descriptors(self) -> int:
        return sum(map(descriptors, self.pids()))

    def tasks(self) -> int:
        return sum(map(tasks, self.pids()))


def settled(measured: Callable[[], int]) -> int:
    """A number, once it has been constant for 0.2 s."""
    number, since = measured(), time.monotonic()
    until = since + PATIENCE
    while time.monotonic() < until:
        time.sleep(0.02)
        now = measured()
        if now != number:
            number, since = now, time.monotonic()
        elif time.monotonic() - since > 0.2:
            return number
    raise TimeoutError("descriptors or threads come and go")


# Descriptors of flexsc run and of the library, whose number varies.
OWN = ("anon_inode:", "/memfd:flexsc-", "/proc/")


def descriptors(pid: int) -> int:
    """The number of descriptors of sockets and files in a process."""
    count = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            count += not os.readlink(f"/proc/{pid}/fd/{name}").startswith(OWN)
    return count


def tasks(pid: int) -> int:
    """The number of threads in a process, without io_uring's, whose number varies."""
    count = 0
    for name in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            comm = Path(f"/proc/{pid}/task/{name}/comm").read_text()
            count += not comm.startswith("iou-")
    return count


Start = Callable[..., Web]


@pytest.fixture
def start(tree: Path) -> Iterator[Start]:
    """Starts servers that end with the test."""
    with contextlib.ExitStack() as stack:

        def start_one(
            driver: Driver,
            *options: str,
            root: Path = tree,
            before: Callable[[], None] | None = None,
        ) -> Web:
            web = Web(driver, root, *options, before=before)
            stack.callback(web.end)
            return web

        yield start_one


@pytest.fixture(scope="module", params=PLAIN, ids=str)
def server(request: pytest.FixtureRequest, tree: Path) -> Iterator[Web]:
    """A server of each kind, for the tests of test_serve.py."""
    web = Web(request.param, tree)
    yield web
    web.end()


# Equal answers


def ask(target: str, method: str = "GET", **headers: str) -> bytes:
    return request(target, method, **headers)


def old(target: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.0", *headers, "", ""]).encode()


HOST = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n"
ASKED = [
    ask("/hello.txt"),
    ask("/empty"),
    ask("/middle"),
    ask("/middle", "HEAD"),
    ask("/hello.txt", "HEAD"),
    ask("/empty", "HEAD"),
    ask("/none", "HEAD"),
    ask("/middle", Range="bytes=5-6"),
    ask("/middle", Range="bytes=8000-150000"),
    ask("/middle", Range="bytes=-70000"),
    ask("/middle", Range="bytes=0-1,5-6"),
    ask("/middle", "HEAD", Range="bytes=5-6"),
    ask("/hello.txt", Range="bytes=1024-"),
    ask("/empty", Range="bytes=0-"),
    ask("/hello.txt", If_None_Match="*"),
    ask("/hello.txt", If_Modified_Since="Sun, 06 Nov 2094 08:49:37 GMT"),
    ask("/hello.txt", If_Range='"x"', Range="bytes=0-1"),
    ask("/folder"),
    ask("/folder?a=b"),
    ask("/folder/"),
    ask("/inside"),
    ask("/page.html"),
    ask("/none"),
    ask("/hello.txt/"),
    ask("/.hidden"),
    ask("/../secret"),
    ask("/outside"),
    ask("/pipe"),
    ask("/%zz"),
    ask("/hello.txt%00"),
    ask("/hello.txt", "POST"),
    ask("/hello.txt", "DELETE", Content_Length="5") + b"12345",
    ask("/hello.txt") * 50 + ask("/middle") * 3 + ask("/none"),
    ask("/middle", Connection="close") + ask("/empty"),
    ask("/hello.txt", X="x" * 12000),
    ask("/hello.txt", X="x" * 20000),
    ask("/" + "x" * 5000),
    old("/hello.txt"),
    old("/middle", "Connection: keep-alive") + old("/none"),
    HOST + b"Host: b\r\n\r\n",
    HOST + b"Content-Length: 2000000\r\n\r\n",
    HOST + b"Transfer-Encoding: gzip\r\n\r\n",
    HOST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    b"GET / HTTP/3.0\r\n\r\n",
    b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\x16\x03\x01\x02 rubbish\r\n\r\n",
    b"",
    b"GET /hel",
]


def whole(port: int, data: bytes) -> bytes:
    """All bytes received until the end of the connection."""
    got = []
    with Client(port) as client:
        client.send(data)
        client.socket.shutdown(socket.SHUT_WR)
        while part := client.socket.recv(1 << 20):
            got.append(part)
    return re.sub(rb"\r\nDate: .{29}\r\n", b"\r\nDate: \r\n", b"".join(got))


@pytest.fixture(scope="module")
def middle(tree: Path) -> Path:
    """The tree, with a file of several parts."""
    (tree / "middle").write_bytes(random.Random(1).randbytes(200_001))
    return tree


@pytest.fixture(scope="module")
def right(middle: Path) -> list[bytes]:
    """The answers of flexsc serve."""
    serve = Server(middle)
    try:
        return [whole(serve.port, data) for data in ASKED]
    finally:
        serve.end()


@pytest.mark.parametrize("driver", MAIN + OTHERS, ids=str)
def test_answers_equal_those_of_flexsc_serve(
    start: Start, middle: Path, right: list[bytes], driver: Driver
) -> None:
    web = start(driver)
    for data, expected in zip(ASKED, right, strict=True):
        assert whole(web.port, data) == expected, data[:80]
    assert web.terminate() == 0
    assert web.messages == []


# Equal work

ROUNDS = 20


def counters(web: Web, path: Path) -> dict[str, int]:
    assert web.terminate() == 0
    found = json.loads(path.read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("driver", MAIN + OTHERS, ids=str)
def test_all_make_the_same_calls(start: Start, tmp_path: Path, driver: Driver) -> None:
    stats = tmp_path / "stats"
    web = start(driver, "--stats", str(stats))
    before = web.descriptors() + driver.own
    with web.client() as client:
        for _ in range(ROUNDS):
            assert client.ask("/hello.txt").body == HELLO
    # The last thing that the server receives from a client is the end of its input.
    with web.client() as client:
        assert client.ask("/none").status == 404
        client.socket.shutdown(socket.SHUT_WR)
        assert client.closed()
    assert eventually(lambda: web.descriptors() <= before)
    found = counters(web, stats)
    others = found["connections"] - 1
    assert found["requests"] == ROUNDS + others
    assert found["receive"] >= ROUNDS + others + 1
    assert found["receive"] <= ROUNDS + 2 * others + 1
    assert found["send"] == ROUNDS + others
    assert found["file"] == 3 * ROUNDS + others
    assert ROUNDS + 1 <= found["close"] <= ROUNDS + 1 + others


# Clients that come and go


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def cut(port: int, chance: random.Random) -> socket.socket:
    """A client that leaves at any point; the caller closes it in the end."""
    client = socket.socket()
    client.settimeout(PATIENCE)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    data = ask(chance.choice(["/hello.txt", "/big", "/big", "/none", "/folder"]))
    stage = chance.randrange(6)
    if stage == 0:
        return client
    if stage == 1:
        client.sendall(data[: chance.randrange(1, len(data))])
    else:
        client.sendall(data * chance.randrange(1, 3))
    if stage >= 3:
        client.recv(chance.randrange(1, 5000))
    if stage in (4, 5):
        client.shutdown(socket.SHUT_WR)
    if chance.randrange(2):
        reset(client)
    return client


CUTS = 2000
AT_ONCE = 20


@pytest.mark.parametrize("driver", MAIN, ids=str)
def test_clients_that_come_and_go_leave_nothing(start: Start, driver: Driver) -> None:
    web = start(driver)
    before = web.descriptors() + driver.own
    chance = random.Random(7)
    for _ in range(AT_ONCE):
        cut(web.port, chance).close()
    assert web.get("/hello.txt").body == HELLO
    assert eventually(lambda: web.descriptors() <= before)
    running = settled(web.tasks)
    for _ in range(CUTS // AT_ONCE):
        clients = [cut(web.port, chance) for _ in range(AT_ONCE)]
        for client in clients:
            client.close()
    assert web.get("/hello.txt").body == HELLO
    assert eventually(lambda: web.descriptors() <= before)
    assert eventually(lambda: web.tasks() <= running)
    assert whole(web.port, ask("/folder/", Connection="close")).endswith(b"index")
    assert not busy(web.pids())
    assert web.terminate() == 0
    assert web.messages == []


# Slow clients


def left_alone(client: Client) -> bytes:
    """All bytes that an idle client receives, until the end."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.socket.recv(1 << 20):
            got += part
    return got


@pytest.mark.parametrize("driver", MAIN, ids=str)
def test_slow_clients_are_left(start: Start, driver: Driver) -> None:
    web = start(driver, "--timeout", "3")
    before = web.descriptors() + driver.own
    fresh, used, half, slow = (web.client() for _ in range(4))
    stuck = web.client(receive_buffer=4096)
    stuck.send(ask("/big"))
    assert used.ask("/hello.txt").status == 200
    half.send(b"GET /hello")
    slow.send(b"GET /hello")
    slow.socket.setblocking(False)

    def told() -> bool:
        """A byte now and then doesn't make a request complete in time."""
        with contextlib.suppress(BlockingIOError):
            slow.rest = slow.socket.recv(1000)
            return True
        slow.send(b"o")
        time.sleep(0.1)
        return False

    assert eventually(told)
    assert slow.rest.startswith(b"HTTP/1.1 408 ")
    assert left_alone(fresh) == b""
    assert left_alone(used) == b""
    assert half.read().status == 408
    for client in (fresh, used, half, slow):
        client.socket.close()
    assert eventually(lambda: web.descriptors() <= before)
    stuck.socket.close()
    assert web.get("/hello.txt").body == HELLO


@pytest.mark.parametrize(
    "driver",
    [
        Driver("web-threads", ("--threads", "1")),
        Driver("web-events", ("--max", "1")),
        Driver("web-stages", ("--admit", "1")),
    ],
    ids=str,
)
def test_clients_wait_for_a_place(start: Start, driver: Driver) -> None:
    web = start(driver)
    for _ in range(3):
        with web.client() as first, web.client() as second:
            assert first.ask("/hello.txt").body == HELLO
            second.send(ask("/empty") + ask("/hello.txt"))
            second.socket.settimeout(0.1)
            with pytest.raises(TimeoutError):
                second.read()
            first.socket.close()
            second.socket.settimeout(PATIENCE)
            assert second.read().body == b""
            assert second.read().body == HELLO


# Shortages


def short_of_descriptors(web: Web) -> Iterator[None]:
    """In the with-block the server can't get more descriptors than it has."""
    limits = {}
    for pid in web.pids():
        limits[pid] = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        taken = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
        free = min(set(range(len(taken) + 1)) - taken)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, limits[pid][1]))
    yield
    for pid, limit in limits.items():
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)


@pytest.mark.parametrize("driver", MAIN, ids=str)
def test_too_few_descriptors_stop_nothing(start: Start, driver: Driver) -> None:
    web = start(driver)
    # The server prints its port before all of its threads run: wait for those.
    assert web.get("/hello.txt").status == 200
    before = settled(web.descriptors)
    clients = [web.client() for _ in range(3)]
    for client in clients:
        assert client.ask("/hello.txt").status == 200
    assert settled(web.descriptors) - before in (3, 3 + driver.own)
    with contextlib.contextmanager(short_of_descriptors)(web):
        assert clients[0].ask("/hello.txt").status == 503
        waiting = [web.client() for _ in range(20)]
        time.sleep(0.2)
    assert [client.ask("/hello.txt").status for client in waiting] == [200] * 20
    for client in clients + waiting:
        client.socket.close()
    assert eventually(lambda: web.descriptors() <= before + driver.own)


def test_a_copy_that_is_killed_ends_all(start: Start) -> None:
    web = start(COPIES)
    assert eventually(lambda: len(web.pids()) == 2)
    pids = web.pids()
    os.kill(pids[1], signal.SIGKILL)
    assert web.wait() == 1
    assert web.messages == ["web-events: a copy has ended"]


def test_copies_end_with_the_first(start: Start) -> None:
    web = start(COPIES)
    assert eventually(lambda: len(web.pids()) == 2)
    pids = web.pids()
    web.process.kill()

    def over() -> bool:
        """Has the copy ended, reaped or not?"""
        try:
            stat = Path(f"/proc/{pids[1]}/stat").read_text()
        except FileNotFoundError:
            return True
        return stat.rpartition(") ")[2][0] in "XZ"

    assert eventually(over)


# Options


def wrong(name: str, *options: str) -> tuple[int, str]:
    run = subprocess.run(
        [program(name), *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.stderr.startswith(f"{name}: ")
    assert run.stderr.count("\n") == 1
    return run.returncode, run.stderr


@pytest.mark.parametrize(
    ("line", "status", "word"),
    [
        ("web-threads", 2, "folder"),
        ("web-threads a b", 2, "one folder"),
        ("web-threads --nothing .", 2, "--nothing"),
        ("web-threads --port", 2, "--port"),
        ("web-threads --port 70000 .", 2, "65535"),
        ("web-threads --bind 192.0.2.1 .", 1, "192.0.2.1"),
        ("web-threads --stats /no/stats .", 1, "/no/stats"),
        ("web-threads /dev/null", 1, "/dev/null"),
        ("web-events --helpers x .", 2, "--helpers"),
        ("web-stages --read 4294967297 .", 2, "--read"),
    ],
)
def test_wrong_command_lines(line: str, status: int, word: str) -> None:
    name, *options = line.split()
    code, said = wrong(name, *options)
    assert code == status
    assert word in said
