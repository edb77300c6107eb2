# SPDX-License-Identifier: MIT
"""flexsc study --raw load trace=FILE: sessions, with a correct server, and with servers
that are wrong in different ways.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import PATIENCE, Server, command
from flexstudy.webserver import fileset, workload
from flexstudy.webserver.fileset import File
from flexstudy.webserver.workload import Options

TIMEOUT = 100
ENDS = [
    *("answered", "late", "refused", "reset", "closed", "unsent"),
    *("wrong_status", "wrong_length", "wrong_body", "wrong_head", "cut"),
]


def raw(*args: str, by: str = "study") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command(), by, "--raw", "load", *args],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def load(port: int, trace: Path, *args: str) -> tuple[Any, str]:
    """Run the load; returns its results and its standard error."""
    done = raw(f"port={port}", f"trace={trace}", *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def ends(found: Any) -> dict[str, float]:
    """The counts of the requests' ends that aren't 0."""
    counts = found["counts"]
    assert sum(counts[end] for end in ENDS) == counts["offered"]
    return {end: counts[end] for end in ENDS if counts[end]}


def described(folder: Path, lines: Iterable[str]) -> None:
    """Describe the files that the lines request."""
    names = {line.split()[0][1:] for line in lines}
    fileset.describe(folder, [File(name, fileset.size_of(name)) for name in names])


def written(path: Path, *sessions: list[str]) -> Path:
    described(path.parent, [line for lines in sessions for line in lines])
    path.write_text("\n".join("".join(f"{line}\n" for line in s) for s in sessions))
    return path


# A correct server.


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders of the file set, the pages, and sessions without think times."""
    folder = tmp_path_factory.mktemp("site")
    files = [*fileset.classes(2), *fileset.pages()]
    fileset.write(folder / "files", files)
    fileset.describe(folder, files)
    sessions = workload.sessions("specweb", Options(folders=2, sessions=200))
    text = ["".join(f"/{r.file.name}\n" for r in session) for session in sessions]
    (folder / "sessions").write_text("\n".join(text), encoding="ascii")
    return folder


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[Server]:
    found = Server(site / "files")
    yield found
    found.end()


def requests(trace: Path) -> list[str]:
    return [line for line in trace.read_text().splitlines() if line[:1] == "/"]


@pytest.mark.parametrize(
    "args",
    [
        ["rate=2000", "arrivals=poisson"],
        ["rate=2000", "threads=2", "source=127.0.0.9", "sources=3"],
        ["connections=7"],
        ["connections=7", "threads=3", "spin_us=100"],
    ],
)
def test_every_request_is_answered(server: Server, site: Path, args: list[str]) -> None:
    trace = site / "sessions"
    found, said = load(server.port, trace, "count=200", *args)
    assert ends(found) == {"answered": len(requests(trace))}
    counts, samples = found["counts"], found["samples"]
    assert counts["sessions"] == counts["sessions_done"] == 200
    assert counts["sessions_failed"] == counts["unasked"] == 0
    assert said == ""
    for name in ("connect", "exchange", "response"):
        times = [samples[f"{name}_{p}_us"][0] for p in ("p50", "p90", "p99", "p999")]
        assert 0 < times[0]
        assert times == sorted(times)
    # An exchange's time counts from when its request can be sent, a response's time
    # from when its request is due.
    assert samples["exchange_mean_us"][0] <= samples["response_mean_us"][0]


def test_clients_think(server: Server, tmp_path: Path) -> None:
    lines = ["/pages/64 think=0.4"] * 3 + ["/pages/64"]
    trace = written(tmp_path / "t", lines)
    begin = time.monotonic()
    found, _ = load(server.port, trace, "rate=100", "count=10")
    took = time.monotonic() - begin
    assert ends(found) == {"answered": 40}
    assert took > 3 * 0.4
    # A client's think time isn't part of the server's response time.
    assert found["samples"]["response_p50_us"][0] < 400_000
    begin = time.monotonic()
    load(server.port, trace, "rate=100", "count=10", "think=300")
    assert time.monotonic() - begin > 3 * 1.2


def test_a_run_ends_when_its_time_is_over(server: Server, tmp_path: Path) -> None:
    trace = written(tmp_path / "t", ["/pages/64 think=60", "/pages/128"])
    begin = time.monotonic()
    found, _ = load(server.port, trace, "rate=100", "seconds=1", "warm_ms=300")
    assert time.monotonic() - begin < 30
    counts = found["counts"]
    assert counts["answered"] + counts["warm_up"] == counts["sessions"] == 100
    assert counts["warm_up"] == 30
    assert counts["sessions_done"] == counts["sessions_failed"] == 0
    # One session per connection at a time.
    found, _ = load(server.port, trace, "connections=9", "seconds=1", "think=0")
    assert found["counts"]["answered"] >= 9
    assert found["counts"]["sessions"] - found["counts"]["sessions_done"] <= 9


# Servers with errors.

Answer = Callable[[socket.socket, File], bool]


def right(file: File) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {file.bytes}\r\n\r\n"
    return head.encode() + bytes(fileset.content(file))


def serve(connection: socket.socket, wrongly: Answer) -> None:
    """Answer requests until an answer closes the connection. The page / is the page of
    64 bytes.
    """
    with connection, contextlib.suppress(OSError):
        connection.settimeout(PATIENCE)
        while request := connection.recv(1000):
            name = request.split()[1].decode()[1:] or "pages/64"
            if not wrongly(connection, File(name, fileset.size_of(name))):
                return


@contextlib.contextmanager
def answering(wrongly: Answer) -> Iterator[int]:
    """Run a server, and return its port."""
    threads = []

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(
                    target=serve, args=(connection, wrongly), daemon=True
                )
                thread.start()
                threads.append(thread)

    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        thread = threading.Thread(target=accept, args=(listener,), daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)
    for thread in threads:
        thread.join(2 * PATIENCE)


def sends(change: Callable[[bytes], bytes], *, goes_on: bool = False) -> Answer:
    """Small files are answered correctly, the large one isn't."""

    def answer(connection: socket.socket, file: File) -> bool:
        large = file.bytes > 1000
        connection.sendall(change(right(file)) if large else right(file))
        return goes_on or not large

    return answer


def late(_: socket.socket, file: File) -> bool:
    time.sleep(1.5)
    return False


LENGTH = b"Content-Length: "
SESSION = ["/dir00000/class0_1", "/dir00000/class2_1", "/pages/64", "/pages/128"]
SESSIONS = 5


@pytest.mark.parametrize(
    ("wrongly", "end", "why"),
    [
        (
            sends(lambda data: data.replace(b"200 OK", b"404 Not Found")),
            *("wrong_status", "the answer isn't HTTP/1.1 200"),
        ),
        (
            sends(lambda data: data.replace(LENGTH, LENGTH + b"1")),
            *("wrong_length", "the answer's length differs from the page's"),
        ),
        (
            sends(lambda data: data + b"more", goes_on=True),
            *("wrong_length", "more bytes came than were requested"),
        ),
        (
            sends(lambda data: data.replace(LENGTH, b"Length: ")),
            *("wrong_head", "the answer has no Content-Length"),
        ),
        (
            sends(lambda data: b"HTTP/1.1 200 OK\r\n" + b"x" * 3000),
            *("wrong_head", "the answer's head has no end"),
        ),
        (
            sends(lambda data: data.replace(LENGTH, LENGTH + b"-")),
            *("wrong_head", "Invalid character in Content-Length"),
        ),
        (
            sends(lambda data: data.replace(b"10240", b"10240x")),
            *("wrong_head", "Invalid character in Content-Length"),
        ),
        (sends(lambda data: data[:-1]), "closed", ""),
        (sends(lambda data: b""), "closed", ""),
    ],
)
def test_every_wrong_answer_is_of_its_kind(
    tmp_path: Path, wrongly: Answer, end: str, why: str
) -> None:
    trace = written(tmp_path / "t", SESSION)
    with answering(wrongly) as port:
        found, said = load(port, trace, "rate=50", f"count={SESSIONS}")
    assert ends(found) == {"answered": SESSIONS, end: SESSIONS}
    counts = found["counts"]
    assert counts["sessions"] == counts["sessions_failed"] == SESSIONS
    # Requests after the wrong answer aren't sent.
    assert counts["unasked"] == 2 * SESSIONS
    line = f"flexsc: study: load: /dir00000/class2_1: {why}\n"
    assert said == (line if why else "")


def test_a_small_body_is_compared_to_the_byte(tmp_path: Path) -> None:
    def answer(connection: socket.socket, file: File) -> bool:
        data = bytearray(right(file))
        data[-30] ^= 1
        connection.sendall(data)
        return False

    trace = written(tmp_path / "t", ["/pages/64"])
    with answering(answer) as port:
        found, _ = load(port, trace, "rate=100", "count=10")
    assert ends(found) == {"wrong_body": 10}


def test_all_of_some_bodies_is_compared(tmp_path: Path) -> None:
    """One byte of 10,240 is wrong; samples alone find it once in 160 answers."""

    def answer(connection: socket.socket, file: File) -> bool:
        data = bytearray(right(file))
        data[-5000] ^= 1
        connection.sendall(data)
        return True

    trace = written(tmp_path / "t", ["/dir00000/class2_1"])
    with answering(answer) as port:
        found, _ = load(port, trace, "connections=4", "count=1280", "threads=1")
    # One body in 64 is compared completely: 20 of 1,280. Samples of the others find
    # 8 more, always with the same seed.
    assert 14 < found["counts"]["wrong_body"] < 50


def test_whoever_never_answers_is_late(tmp_path: Path) -> None:
    trace = written(tmp_path / "t", SESSION)
    with answering(late) as port:
        found, _ = load(port, trace, "rate=50", "count=5", "timeout_ms=500")
    assert ends(found) == {"late": 5}
    assert found["counts"]["unasked"] == 15
    assert found["samples"]["response_max_us"] == [0]


# Time for fifteen answers on a busy machine.
SECONDS = 8


def test_what_is_under_way_is_cut_off(tmp_path: Path) -> None:
    """Three of four requests of a session are answered, the last one never."""

    def answer(connection: socket.socket, file: File) -> bool:
        if file.bytes == 128:
            time.sleep(SECONDS + 2)
            return False
        connection.sendall(right(file))
        return True

    trace = written(tmp_path / "t", SESSION)
    with answering(answer) as port:
        at_once = ["connections=5", f"seconds={SECONDS}", "timeout_ms=60000", "cut=1"]
        begin = time.monotonic()
        found, _ = load(port, trace, *at_once, "spin_us=1000")
        took = time.monotonic() - begin
    assert took < 30
    counts, samples = found["counts"], found["samples"]
    assert ends(found) == {"answered": 15, "cut": 5}
    assert counts["sessions_done"] == counts["sessions_failed"] == 0
    assert counts["seconds"] == SECONDS
    assert samples["answers_per_s"] == [pytest.approx(15 / SECONDS, abs=0.01)]
    mbit = 5 / SECONDS * (102 + 10_240 + 64) * 8e-6
    assert samples["answers_mbit_per_s"] == pytest.approx([mbit], abs=0.01)
    assert 0 < counts["spun_us"] < 1e6 * (SECONDS + 0.5)


def test_a_server_that_is_not_there_refuses(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    found, _ = load(port, written(tmp_path / "t", SESSION), "rate=50", "count=5")
    assert ends(found) == {"refused": 5}


def test_a_connection_that_is_closed_is_made_again(tmp_path: Path) -> None:
    """The server announces the close, or doesn't, or delays it."""

    def announced(connection: socket.socket, file: File) -> bool:
        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
        connection.sendall(right(file).replace(b"HTTP/1.1 200 OK\r\n", head))
        return False

    def silent(connection: socket.socket, file: File) -> bool:
        connection.sendall(right(file))
        return False

    def slow(connection: socket.socket, file: File) -> bool:
        connection.sendall(right(file))
        time.sleep(0.1)
        return False

    at_once = written(tmp_path / "a", SESSION)
    with answering(announced) as port:
        found, _ = load(port, at_once, "rate=50", "count=5")
    assert ends(found) == {"answered": 20}
    assert found["counts"]["lost_thinking"] == 0
    slowly = written(tmp_path / "s", [f"{line} think=2" for line in SESSION[:2]])
    for wrongly in (silent, slow):
        with answering(wrongly) as port:
            found, _ = load(port, slowly, "rate=50", "count=5")
        assert ends(found) == {"answered": 10}
    assert found["counts"]["lost_thinking"] == 5


STATUS = b"200 OK\r\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LENGTH, b"content-length:"),
        (LENGTH, b"CONTENT-LENGTH: \t"),
        (b"\r\n\r\n", b" \r\n\r\n"),
        (STATUS, STATUS + b"X-Content-Length: 1\r\nX: Content-Length: 1\r\n"),
        (STATUS, STATUS + b"Content-Security-Policy: " + b"x; " * 600 + b"\r\n"),
        (STATUS, STATUS + b"connection:  CLOSE \r\n"),
    ],
)
def test_a_right_head_may_be_written_in_many_ways(
    tmp_path: Path, old: bytes, new: bytes
) -> None:
    def answer(connection: socket.socket, file: File) -> bool:
        connection.sendall(right(file).replace(old, new))
        return b"CLOSE" not in new

    trace = written(tmp_path / "t", ["/pages/64 think=0.1"] * 2)
    with answering(answer) as port:
        found, said = load(port, trace, "rate=50", "count=5")
    assert (ends(found), said) == ({"answered": 10}, "")
    assert found["counts"]["lost_thinking"] == 0


def opened() -> int:
    """Number of connections that this network has begun so far."""
    names, values = (
        line.split()
        for line in Path("/proc/net/snmp").read_text().splitlines()
        if line.startswith("Tcp:")
    )
    return int(values[names.index("ActiveOpens")])


def test_a_late_client_begins_no_connection(server: Server) -> None:
    """No client can send a million requests per second. A client that falls behind by
    more than the time-out would never get an answer in time again.
    """
    before = opened()
    args = ("rate=1000000", "count=300000", "timeout_ms=20")
    done = raw(f"port={server.port}", *args)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["counts"]["offered"] == 300_000
    assert set(ends(found)) >= {"late"}
    assert opened() - before < 200_000


@pytest.mark.parametrize("args", [["connections=2"], ["connections=2", "threads=2"]])
def test_a_run_without_answers_has_numbers(tmp_path: Path, args: list[str]) -> None:
    def never(_: socket.socket, __: File) -> bool:
        return False

    trace = written(tmp_path / "t", SESSION)
    with answering(never) as port:
        found, _ = load(port, trace, "count=4", *args)
    assert ends(found) == {"closed": 4}
    assert 0 < found["counts"]["seconds"] < TIMEOUT
    for name in ("responses_per_s", "goodput_per_s", "mbit_per_s"):
        assert found["samples"][name] == [0]


def test_sessions_that_end_in_the_warm_up(server: Server, tmp_path: Path) -> None:
    """Their duration isn't known in advance."""
    trace = written(tmp_path / "t", ["/pages/64 think=1", "/pages/64"])
    args = ("connections=1", "count=3")
    done = raw(f"port={server.port}", f"trace={trace}", "warm_ms=60000", *args)
    assert done.returncode == 1
    assert done.stderr == (
        "flexsc: study: load: warm_ms: too long: no time was left to measure\n"
    )
    found, _ = load(server.port, trace, "warm_ms=500", *args)
    assert found["counts"]["answered"] + found["counts"]["warm_up"] == 6
    assert found["counts"]["answered"] > 0
    # All sessions begin in the warm-up, but the run lasts until the last one has ended.
    found, _ = load(server.port, trace, "warm_ms=500", "rate=100", "count=3")
    assert found["counts"]["warm_up"] == found["counts"]["answered"] == 3


def test_a_server_that_ends_has_no_processor_time(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "infinity"])

    def answer(connection: socket.socket, file: File) -> bool:
        """The other process ends during the load."""
        other.kill()
        other.wait()
        connection.sendall(right(file))
        return True

    trace = written(tmp_path / "t", ["/pages/64"])
    try:
        with answering(answer) as port:
            words = (f"port={port}", f"trace={trace}", f"pid={other.pid}")
            done = raw(*words, "rate=10", "count=10")
    finally:
        other.kill()
        other.wait()
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "flexsc: study: load: pid: the process has ended\n"


def test_output_that_is_lost_is_an_error(server: Server) -> None:
    args = [f"port={server.port}", "rate=10", "count=1"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [command(), "study", "--raw", "load", *args],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "flexsc: study: can't write to standard output\n"


# Wrong files and arguments.


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 0: the end: the trace has no request"),
        ("# a\n\n/index.html\n", "line 3: /index.html: give a file of the file set"),
        ("/pages/64 think=x\n", "line 1: think=x: give think=SECONDS, from 0 to"),
        ("/pages/64\0\n", "line 1: a byte 0: the file isn't a trace"),
        ("/\x1b[31m\r\x7f\v", "line 1: /?[31m: give a file of"),
    ],
)
def test_a_wrong_trace_is_one_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    described(tmp_path, ["/pages/64"])
    done = raw("port=1", f"trace={path}", "rate=1")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"flexsc: study: load: {path}: {reason}")
    assert done.stderr.count("\n") == 1
