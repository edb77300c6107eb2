# SPDX-License-Identifier: MIT
"""flexsc serve as a process: misbehaving clients, shortages, the log, its options and
its end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from filters import KILL, forbidden
from fixtures import (
    PATIENCE,
    Client,
    Server,
    Start,
    cores_of,
    eventually,
    flexsc,
    request,
)

BUSY_S = 120  # for hundreds of clients: one after the other would take longer
SOON_S = 20  # for the cache, which checks each file once a second
SILENCE_S = 1  # after which a client that has sent nothing counts as idle
TRIES = 20  # on a busy machine all steps of a client may take longer
HELLO = bytes(range(256)) * 4


# Slow, stuck and vanished clients


def test_a_slow_request_times_out(start: Start) -> None:
    server = start("--timeout", "1")
    with server.client() as client:
        begin = time.monotonic()
        client.send(b"GET /hello")
        for _ in range(6):
            time.sleep(0.15)
            # The server waits for two seconds after its response.
            with contextlib.suppress(ConnectionError):
                client.send(b"o")
        assert client.read().status == 408
        assert 0.9 < time.monotonic() - begin < PATIENCE
        with contextlib.suppress(OSError):
            client.socket.shutdown(socket.SHUT_WR)
        assert client.closed()


def test_an_idle_client_is_dropped_silently(start: Start) -> None:
    server = start("--timeout", "3")
    with server.client() as used, server.client() as fresh:
        used.ask("/hello.txt")
        assert fresh.closed()
        assert used.closed()
    assert eventually(lambda: server.get("/hello.txt").status == 200)


def test_a_stuck_client_is_dropped(start: Start) -> None:
    server = start("--timeout", "1")
    before = server.descriptors()
    with server.client(receive_buffer=4096) as client:
        client.send(request("/big"))
        client.socket.recv(1000)
        assert eventually(lambda: server.descriptors() == before)


def reset(client: Client) -> None:
    linger = struct.pack("ii", 1, 0)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    client.socket.close()


def test_clients_may_vanish(start: Start) -> None:
    server = start("--cache", "10")
    before = server.descriptors()
    for i in range(60):
        client = server.client()
        client.send(request(("/big", "/many/", "/hello.txt")[i % 3]) * (1 + i % 4))
        if i % 5:
            client.socket.recv(1000)
        reset(client) if i % 2 else client.socket.close()
    assert eventually(lambda: server.descriptors() <= before + 3)
    assert server.get("/hello.txt").body == HELLO
    assert server.stop() == 0


# Termination


def test_sigterm_lets_a_transfer_finish(start: Start, tree: Path) -> None:
    server = start("--grace", f"{PATIENCE:.0f}")
    with server.client(receive_buffer=65536) as client, server.client() as idle:
        idle.ask("/hello.txt")
        client.send(request("/big"))
        start_of_it = client.socket.recv(1000)
        server.process.terminate()
        assert idle.closed()
        client.rest = start_of_it
        assert client.read().body == (tree / "big").read_bytes()
        assert client.closed()
    assert server.wait() == 0


def refuses(server: Server) -> bool:
    """Does the server accept no client? One that it has to drop may have connected."""
    try:
        server.get("/hello.txt")
    except (OSError, EOFError):
        return True
    return False


def test_no_client_is_accepted_after_sigterm(start: Start) -> None:
    server = start("--grace", f"{PATIENCE:.0f}")
    with server.client(receive_buffer=4096) as client:
        client.send(request("/big"))
        client.socket.recv(1000)
        server.process.terminate()
        assert eventually(lambda: refuses(server))
        with pytest.raises(OSError):
            server.get("/hello.txt")
        assert server.process.poll() is None


def test_the_grace_ends(start: Start) -> None:
    server = start("--grace", "1")
    with server.client(receive_buffer=4096) as client:
        client.send(request("/big"))
        client.socket.recv(1000)
        begin = time.monotonic()
        assert server.stop() == 0
        assert 0.9 < time.monotonic() - begin < PATIENCE
    assert any("grace period is over" in line for line in server.messages)


def test_a_second_signal_ends_at_once(start: Start) -> None:
    server = start("--grace", f"{3 * PATIENCE:.0f}")
    with server.client(receive_buffer=4096) as client:
        client.send(request("/big"))
        client.socket.recv(1000)
        server.process.terminate()
        # Two signals at once would count as one.
        assert eventually(lambda: refuses(server))
        assert server.process.poll() is None
        begin = time.monotonic()
        assert server.stop(PATIENCE) == 0
        assert time.monotonic() - begin < PATIENCE


# Shortages


def test_too_few_descriptors_stop_nothing(start: Start) -> None:
    server = start()
    pid = server.process.pid
    before = server.descriptors()
    clients = [server.client() for _ in range(3)]
    for client in clients:
        assert client.ask("/hello.txt").status == 200
    assert eventually(lambda: server.descriptors() == before + 3)
    taken = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
    first_free = min(set(range(len(taken) + 1)) - taken)
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (first_free, limits[1]))
    assert clients[0].ask("/hello.txt").status == 503
    waiting = [server.client() for _ in range(20)]
    time.sleep(0.3)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    assert [client.ask("/hello.txt").status for client in waiting] == [200] * 20
    for client in clients + waiting:
        client.socket.close()


def test_few_descriptors_from_the_start(start: Start) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    server = start(before=limit)
    assert "64 descriptors" in server.messages[0]
    clients = [server.client() for _ in range(40)]
    for client in clients:
        with contextlib.suppress(ConnectionError):
            client.send(request("/hello.txt"))
    answered = [client for client in clients if answers(client)]
    assert len(answered) >= 8
    for client in clients:
        client.socket.close()
    assert eventually(lambda: answers_now(server))


def answers(client: Client) -> bool:
    """Did the server answer? Otherwise it has sent 503, or dropped the client for
    others.
    """
    try:
        return client.read().status == 200
    except (EOFError, ConnectionError):
        return False


def test_too_many_clients_get_503(start: Start) -> None:
    server = start("--max-connections", "2")
    with (
        server.client(receive_buffer=4096) as one,
        server.client(receive_buffer=4096) as two,
    ):
        for client in (one, two):
            client.send(request("/big"))
            client.socket.recv(1000)
        answer = server.talk(b"")
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert eventually(lambda: answers_now(server))


def test_silent_clients_make_room(start: Start) -> None:
    """A client that has connected and sends nothing counts as idle after a second."""
    server = start("--max-connections", "2")
    before = server.descriptors()
    begun = time.monotonic()
    with server.client() as one, server.client() as two:
        assert eventually(lambda: answers_now(server))
        assert time.monotonic() - begun > 0.5
        assert one.closed()
        # The server handles the end of the client that was answered.
        assert eventually(lambda: server.descriptors() == before + 1)
        assert answers_now(server)
        two.send(request("/hello.txt"))
        assert two.read().status == 200


def test_an_idle_client_makes_room_behind_a_new_one(start: Start) -> None:
    """A new client keeps its place, and doesn't protect older ones."""

    def makes_room() -> bool:
        """Return false if all took so long that the new client counts as idle."""
        server = start("--max-connections", "2")
        begun = time.monotonic()
        with server.client() as new, server.client() as old:
            assert old.ask("/hello.txt").status == 200
            # The server may need a moment to detect that all bytes are sent.
            assert eventually(lambda: answers_now(server))
            if time.monotonic() - begun > SILENCE_S / 2:
                return False
            assert old.closed()
            new.send(request("/hello.txt"))
            assert new.read().status == 200
        return True

    assert any(makes_room() for _ in range(TRIES))


def test_a_full_server_refuses_many_at_once(start: Start) -> None:
    """The server doesn't wait for refused clients, whether they send or not."""
    server = start("--max-connections", "1")
    with contextlib.ExitStack() as stack:
        busy = stack.enter_context(server.client(receive_buffer=4096))
        busy.send(request("/big"))
        busy.socket.recv(1000)
        begun = time.monotonic()
        silent = [stack.enter_context(server.client()) for _ in range(200)]
        talking = [stack.enter_context(server.client()) for _ in range(200)]
        for client in talking:
            with contextlib.suppress(ConnectionError):
                client.send(request("/hello.txt"))
        for client in silent + talking:
            assert client.read().status == 503
        assert time.monotonic() - begun < BUSY_S


def test_many_permanent_clients_are_all_answered(start: Start) -> None:
    """The descriptors don't suffice to serve more than one of them at a time."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    server = start(before=limit)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for _ in range(100)]
        for client in clients:
            with contextlib.suppress(ConnectionError):
                client.send(request("/hello.txt"))
        begun = time.monotonic()
        answers = [client.read().status for client in clients]
        assert set(answers) <= {200, 503} and 200 in answers
        assert time.monotonic() - begun < BUSY_S


def answers_now(server: Server) -> bool:
    with server.client() as client:
        client.send(request("/hello.txt"))
        return answers(client)


def test_an_idle_client_makes_room(start: Start) -> None:
    server = start("--max-connections", "1")
    with server.client() as old:
        assert old.ask("/hello.txt").status == 200
        # The server may need a moment to detect that all bytes are sent.
        assert eventually(lambda: server.get("/hello.txt").status == 200)
        assert old.closed()


CORES = sorted(os.sched_getaffinity(0))


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
@pytest.mark.parametrize("loops", [1, 2])
def test_calls_execute_on_the_kernel_cores(
    start: Start, engine: str, loops: int
) -> None:
    server = start("--kernel-cores", str(CORES[-1]), "--loops", str(loops))
    assert server.get("/hello.txt").status == 200
    found = cores_of(server.process.pid)
    there = [name for name, cores in found if cores == {CORES[-1]}]
    if engine == "uring":
        # One poller for all loops.
        assert len(there) == 1 and there[0].startswith("iou-sqp-"), found
    else:
        assert there, found
    others = [cores for _, cores in found if cores != {CORES[-1]}]
    assert len(others) >= loops
    assert not any(CORES[-1] in cores for cores in others), found
    assert server.stop() == 0


# The log


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_the_log_has_ipv4_addresses(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = start("--bind", "::", "--log", str(log))
    server.get("/hello.txt")
    assert server.stop() == 0
    assert log.read_text().startswith("127.0.0.1 - - ")


def test_the_log_has_a_line_for_each_request(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = start("--log", str(log))
    server.get("/hello.txt")
    server.get('/no"ne')
    # llhttp 9 refuses bytes above 127.
    refused = server.get("/\u00e9").status == 400
    server.get("/hello.txt", "HEAD")
    server.talk(b"\1rubbish\r\n\r\n")
    assert server.stop() == 0
    lines = log.read_text().splitlines()
    stamp = r"127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "
    ends = [
        '"GET /hello.txt HTTP/1.1" 200 1024',
        r'"GET /no\x22ne HTTP/1.1" 404 ',
        '"-" 400 ' if refused else r'"GET /\xe9 HTTP/1.1" 404 ',
        '"HEAD /hello.txt HTTP/1.1" 200 0',
        '"-" 400 ',
    ]
    assert len(lines) == len(ends)
    for line, end in zip(lines, ends, strict=True):
        assert re.match(stamp + re.escape(end), line)


def test_the_log_may_be_standard_output(start: Start) -> None:
    server = start("-l", "-")
    server.get("/hello.txt")
    assert server.process.stdout is not None
    assert '"GET /hello.txt HTTP/1.1" 200 1024' in server.process.stdout.readline()


@pytest.mark.parametrize("signo", [signal.SIGHUP, signal.SIGUSR1])
def test_no_line_is_lost_when_the_log_is_renamed(
    start: Start, tmp_path: Path, signo: signal.Signals
) -> None:
    log = tmp_path / "log"
    server = start("--log", str(log), "--loops", "2")
    over = threading.Event()
    asked = [0, 0, 0, 0]

    def ask(i: int) -> None:
        while not over.is_set():
            with server.client() as client:
                for _ in range(10):
                    asked[i] += client.ask(f"/hello.txt?{i}").status == 200

    clients = [threading.Thread(target=ask, args=(i,)) for i in range(len(asked))]
    for client in clients:
        client.start()
    try:
        for i in range(5):
            had = sum(asked)
            assert eventually(lambda had=had: sum(asked) > had + 100)
            log.rename(tmp_path / f"log.{i}")
            server.process.send_signal(signo)
            # Each worker opens the new file. The lines of both are in one of the files.
            assert eventually(lambda: log.exists() and log.stat().st_size > 0)
    finally:
        over.set()
        for client in clients:
            client.join()
    assert server.terminate() == 0
    text = "".join(path.read_text() for path in sorted(tmp_path.glob("log*")))
    for i, count in enumerate(asked):
        assert text.count(f'"GET /hello.txt?{i} HTTP/1.1" 200 1024\n') == count
    assert len(text.splitlines()) == sum(asked)
    assert log.stat().st_size > 0
    assert [line for line in server.messages if "lost" in line] == []


def test_a_log_that_cannot_be_reopened_goes_on(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    server = start("--log", str(folder / "log"))
    folder.rename(tmp_path / "moved")
    server.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: any("reopen" in m for m in server.messages))
    assert server.get("/hello.txt").status == 200
    assert server.terminate() == 0
    assert "/hello.txt" in (tmp_path / "moved/log").read_text()


def test_a_renamed_log_is_closed(start: Start, tmp_path: Path) -> None:
    """Workers without requests close it, too. Otherwise the file would keep its blocks."""
    log = tmp_path / "log"
    server = start("--log", str(log), "--loops", "3")

    def opened() -> list[str]:
        names = []
        for fd in Path(f"/proc/{server.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                names.append(str(fd.readlink()))
        return sorted(name for name in names if name.startswith(str(log)))

    assert server.get("/hello.txt").status == 200
    assert opened() == [str(log)] * 3
    for i in range(2):
        log.rename(tmp_path / f"log.{i}")
        server.process.send_signal(signal.SIGHUP)
        assert eventually(lambda: opened() == [str(log)] * 3)
        assert server.get("/hello.txt").status == 200
    assert server.terminate() == 0


def test_without_a_log_sighup_ends_the_server(start: Start) -> None:
    server = start()
    for _ in range(3):
        server.process.send_signal(signal.SIGUSR1)
        assert server.get("/hello.txt").status == 200
    server.process.send_signal(signal.SIGHUP)
    assert server.wait() == -signal.SIGHUP


def test_a_full_disk_behind_the_log(start: Start) -> None:
    server = start("--log", "/dev/full")
    for _ in range(2):
        for _ in range(20):
            assert server.get("/hello.txt").status == 200
        time.sleep(0.3)
    assert server.stop() == 0
    reported = [line for line in server.messages if "lines are dropped" in line]
    assert len(reported) == 1
    assert "No space left" in reported[0]
    assert "40 lines were lost" in server.messages[-1]


# Options


def test_the_cache_notices_changes(start: Start, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("old")
    server = start("--cache", "10", root=root)
    with server.client() as client:
        for _ in range(5):
            assert client.ask("/file").body == b"old"
        (root / "new").write_text("newer")
        (root / "new").rename(root / "file")
        assert eventually(lambda: client.ask("/file").body == b"newer", SOON_S)
        (root / "file").unlink()
        assert eventually(lambda: client.ask("/file").status == 404, SOON_S)


def test_a_kept_file_that_shrinks_breaks_off(start: Start, tmp_path: Path) -> None:
    """The server sends from a mapping, a part of which then has no file behind it."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_bytes(bytes(30000))
    (root / "other").write_text("other")
    server = start("--cache", "10", root=root)
    with server.client() as client:
        for _ in range(3):
            assert client.ask("/file").body == bytes(30000)
    os.truncate(root / "file", 5000)

    def is_whole_again() -> bool:
        """Until the cache checks the file again, each response breaks off."""
        with contextlib.suppress(EOFError):
            assert server.get("/file").body == bytes(5000)
            return True
        assert server.get("/other").body == b"other"
        return False

    assert eventually(is_whole_again, SOON_S)
    assert server.stop() == 0


def test_the_cache_is_bounded(start: Start) -> None:
    server = start("--cache", "10")
    before = server.descriptors()
    with server.client() as client:
        for i in range(200):
            assert client.ask(f"/many/file-{i:04}").status == 200
        assert eventually(lambda: server.descriptors() <= before + 12)


def test_all_serves_hidden_names(start: Start) -> None:
    server = start("--all")
    assert server.get("/.hidden").body == b"hidden"
    assert server.get("/../secret").status == 403
    assert ".dot" in server.get("/list/").body.decode()


def test_two_loops(start: Start) -> None:
    server = start("-j", "2")
    assert server.messages[-1].endswith("2 loops")
    clients = [server.client() for _ in range(40)]
    for _ in range(3):
        for client in clients:
            client.send(request("/hello.txt"))
        assert all(client.read().body == HELLO for client in clients)
    for client in clients:
        client.socket.close()
    assert server.stop() == 0


IO_URING_SETUP = 425
# Containers forbid it like the first, and systemd's SystemCallFilter= like the second.
REFUSED = forbidden(IO_URING_SETUP, errno.EPERM)
KILLED = forbidden(IO_URING_SETUP, action=KILL)


@pytest.mark.parametrize("before", [REFUSED, KILLED])
def test_without_io_uring_threads_serve(tree: Path, before: Callable[[], None]) -> None:
    server = Server(tree, before=before)
    try:
        assert (
            "using engine threads, because uring doesn't work here"
            in server.messages[0]
        )
        assert "with engine threads" in server.messages[1]
        assert len(server.messages) == 2
        assert server.get("/hello.txt").body == HELLO
        assert server.stop() == 0
    finally:
        server.end()


@pytest.mark.parametrize(
    ("options", "status", "word"),
    [
        ((), 2, "folder"),
        (("a", "b"), 2, "one folder"),
        (("--nothing", "."), 2, "nothing"),
        (("-p", "70000", "."), 2, "65535"),
        (("-p", "http", "."), 2, "number"),
        (("-j", "0", "."), 2, "--loops"),
        (("--engine", "steam", "."), 2, "uring"),
        (("--engine", "sync", "."), 2, "threads"),
        (("--timeout", "", "."), 2, "--timeout"),
        (("--max-header", "-1", "."), 2, "--max-header"),
        (("-p", "0", "/does/not/exist"), 1, "/does/not/exist"),
        (("-p", "0", "-b", "192.0.2.1", "."), 1, "192.0.2.1"),
        (("-p", "0", "-l", "/no/log", "."), 1, "/no/log"),
        (("-p0", "--kernel-cores=9999", "."), 2, "--kernel-cores 9999: give a list"),
        (("-p0", "--kernel-cores=1023", "."), 2, "core 1023 doesn't exist"),
        (("-p0", "--kernel-cores=0-", "."), 2, "such as 2,4-6"),
    ],
)
def test_wrong_command_lines(options: tuple[str, ...], status: int, word: str) -> None:
    run = flexsc("serve", *options)
    assert run.returncode == status
    assert run.stderr.startswith("flexsc: serve: ")
    assert word in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_used_port_is_reported(server: Server, tree: Path) -> None:
    run = flexsc("serve", tree, "-p", str(server.port))
    assert run.returncode == 1
    assert "-p" in run.stderr


def test_help_fits_on_a_screen() -> None:
    run = flexsc("serve", "--help")
    assert run.returncode == 0
    lines = run.stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_curl_resumes_a_download(server: Server, tree: Path, tmp_path: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("curl is missing: install curl")
    part = tmp_path / "big"
    whole = (tree / "big").read_bytes()
    part.write_bytes(whole[:1_000_000])
    subprocess.run(
        ["curl", "-sf", "-C", "-", "-o", part, f"http://127.0.0.1:{server.port}/big"],
        timeout=PATIENCE,
        check=True,
    )
    assert part.read_bytes() == whole
