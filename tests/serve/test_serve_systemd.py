# SPDX-License-Identifier: MIT
"""flexsc serve under a service manager. The tests speak the manager's protocols."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exposition import samples
from fixtures import PATIENCE, Client, Server, command, eventually, request

SILENCE_S = 1  # after which a stopping server drops a client that has sent nothing
TRIES = 20  # on a busy machine all steps of a client may take longer
HELLO = bytes(range(256)) * 4

# Executes the program in argv, with the sockets from descriptor 3 on.
WRAPPER = """
import os, sys
passed = [int(word) for word in sys.argv[1].split(",") if word]
for number, fd in enumerate(passed, 3):
    os.dup2(fd, number)
    os.close(fd)
os.environ["LISTEN_PID"] = os.environ.get("LISTEN_PID", str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""

Activate = Callable[..., Server]


@pytest.fixture
def activate(engine: str, tree: Path) -> Iterator[Activate]:
    """Start servers with passed sockets. They end with the test."""
    with contextlib.ExitStack() as stack:

        def start_one(
            sockets: list[socket.socket], *options: str, **env: str
        ) -> Server:
            # First duplicate the sockets to numbers above those that they get.
            how = fcntl.F_DUPFD_CLOEXEC
            high = [fcntl.fcntl(one.fileno(), how, 200) for one in sockets]
            wrapper = [sys.executable, "-c", WRAPPER, ",".join(map(str, high))]
            try:
                server = Server(
                    tree,
                    "--engine",
                    engine,
                    *options,
                    wrapper=wrapper,
                    pass_fds=high,
                    env={"LISTEN_FDS": str(len(sockets)), **env},
                )
            finally:
                for fd in high:
                    os.close(fd)
            stack.callback(server.end)
            return server

        yield start_one


def listening() -> socket.socket:
    """A socket as created by systemd: accept() doesn't wait."""
    found = socket.create_server(("127.0.0.1", 0), backlog=1024)
    found.setblocking(False)
    return found


def port(of: socket.socket) -> int:
    return int(of.getsockname()[1])


def get(of: socket.socket, target: str = "/hello.txt") -> bytes:
    with Client(port(of)) as client:
        return client.ask(target).body


def counted(metrics: socket.socket) -> dict[str, int]:
    return samples(get(metrics, "/metrics").decode())


# Sockets


def test_a_passed_socket_is_served_and_left_open(activate: Activate) -> None:
    with listening() as passed:
        server = activate([passed])
        assert server.port == port(passed)
        assert get(passed) == HELLO
        assert server.stop() == 0
        # A client that connects meanwhile waits for the next server.
        with Client(port(passed)) as client:
            client.send(request("/hello.txt"))
            activate([passed])
            assert client.read().body == HELLO


def test_a_restart_loses_no_request(activate: Activate) -> None:
    """Each request uses a new connection, and waits while there is no server."""
    over = threading.Event()
    failed: list[Exception] = []
    asked = [0] * 3

    def answered() -> bool:
        """Return false if a stopping server may have dropped the silent client."""
        begun = time.monotonic()
        late = True
        with Client(port(passed)) as client:
            try:
                client.send(request("/hello.txt"))
                late = time.monotonic() - begun > SILENCE_S / 2
                assert client.read().body == HELLO
            except (EOFError, ConnectionError):
                if not late:
                    raise
                return False
        return True

    def ask(i: int) -> None:
        try:
            while not over.is_set():
                asked[i] += answered()
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    with listening() as passed:
        server = activate([passed], "-j", "2")
        clients = [threading.Thread(target=ask, args=(i,)) for i in range(len(asked))]
        for client in clients:
            client.start()
        try:
            for _ in range(4):
                had = sum(asked)
                assert eventually(lambda had=had: bool(failed) or sum(asked) > had + 50)
                assert server.terminate() == 0
                server = activate([passed], "-j", "2")
        finally:
            over.set()
            for client in clients:
                client.join()
    assert not failed


def test_a_new_client_is_answered_although_the_server_stops(
    activate: Activate, tmp_path: Path
) -> None:
    path = str(tmp_path / "notify")
    with (
        listening() as passed,
        listening() as metrics,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
    ):
        manager.bind(path)
        manager.settimeout(PATIENCE)
        names = {"LISTEN_FDNAMES": "web:metrics", "NOTIFY_SOCKET": path}

        def is_answered() -> bool:
            """Return false if the late client sent its request too late."""
            server = activate([passed, metrics], **names)
            assert manager.recv(4096) == b"READY=1"
            begun = time.monotonic()
            with Client(port(passed)) as silent, Client(port(passed)) as late:
                name = "flexsc_serve_connections"
                assert eventually(lambda: counted(metrics)[name] == 2)
                server.process.terminate()
                assert manager.recv(4096) == b"STOPPING=1"
                with contextlib.suppress(ConnectionError):
                    late.send(request("/hello.txt"))
                in_time = time.monotonic() - begun < SILENCE_S / 2
                if in_time:
                    answer = late.read()
                    assert answer.body == HELLO
                    assert answer.headers["connection"] == "close"
                    assert silent.closed()
            assert server.wait() == 0
            return in_time

        assert any(is_answered() for _ in range(TRIES))


def test_loops_share_a_socket(activate: Activate) -> None:
    with listening() as passed:
        server = activate([passed], "-j", "3")
        for _ in range(30):
            assert get(passed) == HELLO
        assert server.stop() == 0


def test_each_socket_needs_a_loop(activate: Activate) -> None:
    with listening() as one, listening() as two:
        server = activate([one, two], "-j", "2")
        assert get(one) == get(two) == HELLO
        assert server.stop() == 0
        with pytest.raises(RuntimeError, match="use -j 2"):
            activate([one, two])


def test_a_local_socket(activate: Activate, tmp_path: Path) -> None:
    """For a proxy on the same machine."""
    path, log = tmp_path / "socket", tmp_path / "log"
    with socket.socket(socket.AF_UNIX) as passed, listening() as other:
        passed.bind(str(path))
        passed.listen()
        server = activate([other, passed], "-j", "2", "-l", str(log))
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(str(path))
            client.sendall(request("/hello.txt", Connection="close"))
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        assert answer.endswith(b"\r\n\r\n" + HELLO)
        assert server.stop() == 0
    assert log.read_text().startswith("- - - [")


@pytest.mark.parametrize(
    "env", [{"LISTEN_PID": "1"}, {"LISTEN_FDS": "junk"}, {"LISTEN_FDS": "-1"}]
)
def test_sockets_for_other_processes_are_ignored(
    activate: Activate, env: dict[str, str]
) -> None:
    with listening() as passed:
        server = activate([passed], **env)
        assert server.port != port(passed)
        assert server.get("/hello.txt").body == HELLO


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_only_listening_sockets_are_taken(
    activate: Activate, kind: socket.SocketKind
) -> None:
    with (
        socket.socket(type=kind) as passed,
        pytest.raises(RuntimeError, match="descriptor 3 is not a listening"),
    ):
        activate([passed])


def test_a_missing_or_excessive_number_of_sockets_is_refused(
    activate: Activate,
) -> None:
    with listening() as passed:
        with pytest.raises(RuntimeError, match="descriptor 4 is not"):
            activate([passed], LISTEN_FDS="2")
        with pytest.raises(RuntimeError, match="at most 64"):
            activate([passed], LISTEN_FDS="99999999999999999999999")


def test_the_socket_for_metrics_has_a_name(activate: Activate) -> None:
    with listening() as passed, listening() as metrics:
        server = activate([metrics, passed], LISTEN_FDNAMES="metrics:web")
        assert server.port == port(passed)
        assert get(passed) == HELLO
        name = 'flexsc_serve_responses_total{code="2xx"}'
        assert eventually(lambda: counted(metrics)[name] == 1)
        assert server.stop() == 0


# Messages


@pytest.fixture(params=["path", "abstract"])
def notices(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[socket.socket, str]]:
    """The manager's socket, and its name."""
    name = f"@flexsc-test-{os.getpid()}"
    if request.param == "path":
        name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.bind(name.replace("@", "\0"))
        found.settimeout(PATIENCE)
        yield found, name


def test_the_manager_is_notified(
    tree: Path, engine: str, tmp_path: Path, notices: tuple[socket.socket, str]
) -> None:
    manager, name = notices
    log = tmp_path / "log"
    options = ["--engine", engine, "-j", "3", "-l", str(log)]
    server = Server(tree, *options, env={"NOTIFY_SOCKET": name})
    try:
        assert manager.recv(4096) == b"READY=1"
        assert server.get("/hello.txt").body == HELLO
        for i in range(3):
            log.rename(tmp_path / f"log.{i}")
            asked = time.monotonic_ns() // 1000
            server.process.send_signal(signal.SIGHUP)
            words = manager.recv(4096).decode().split("\n")
            assert words[0] == "RELOADING=1"
            assert words[1].startswith("MONOTONIC_USEC=")
            assert int(words[1].partition("=")[2]) >= asked
            assert manager.recv(4096) == b"READY=1"
            # All loops have left the old file. Its close was posted before.
            assert log.exists()
            assert eventually(lambda i=i: not opened(server, f"log.{i}"))
        server.process.terminate()
        assert manager.recv(4096) == b"STOPPING=1"
        assert server.wait() == 0
    finally:
        server.end()


def opened(server: Server, name: str) -> list[str]:
    found = []
    for fd in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(fd.readlink().name)
    return [one for one in found if one == name]


def test_many_signals_end_as_ready(
    tree: Path, engine: str, tmp_path: Path, notices: tuple[socket.socket, str]
) -> None:
    manager, name = notices
    log = tmp_path / "log"
    options = ["--engine", engine, "-j", "2", "-l", str(log)]
    server = Server(tree, *options, env={"NOTIFY_SOCKET": name})
    try:
        states = [manager.recv(4096).decode()]
        over = threading.Event()

        def listen() -> None:
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    states.append(manager.recv(4096).decode())

        manager.settimeout(0.1)
        reader = threading.Thread(target=listen)
        reader.start()
        for _ in range(200):
            server.process.send_signal(signal.SIGUSR1)
        # The last signals cause one more round.
        log.unlink()
        asked = time.monotonic_ns() // 1000
        server.process.send_signal(signal.SIGUSR1)

        def ready_again() -> bool:
            *_, round, last = ["", "", *states]
            begun = int(round.partition("MONOTONIC_USEC=")[2] or 0)
            return last == "READY=1" and begun >= asked

        assert eventually(ready_again)
        assert log.exists()
        assert server.terminate() == 0
        assert eventually(lambda: states[-1] == "STOPPING=1")
        over.set()
        reader.join()
        states = [state.partition("\n")[0] for state in states]
        ready = [state for state in states if state == "READY=1"]
        expected = ["READY=1", *["RELOADING=1", "READY=1"] * (len(ready) - 1)]
        assert states == [*expected, "STOPPING=1"]
        assert len(ready) > 1
    finally:
        server.end()


@pytest.mark.parametrize("name", ["/none/notify", "/" + "x" * 200, "vsock:2:1"])
def test_an_unreachable_manager_stops_nothing(tree: Path, name: str) -> None:
    server = Server(tree, env={"NOTIFY_SOCKET": name})
    try:
        assert server.get("/hello.txt").body == HELLO
        assert server.stop() == 0
        notes = [line for line in server.messages if "can't notify" in line]
        assert len(notes) == 2
    finally:
        server.end()


# The units

UNITS = Path(__file__).resolve().parents[2] / "packaging/systemd"


@pytest.fixture
def units(tmp_path: Path) -> Path:
    for source in UNITS.glob("flexsc-serve*"):
        text = source.read_text().replace("@FLEXSC@", command())
        (tmp_path / source.name.removesuffix(".in")).write_text(text)
    return tmp_path


def analyze(units: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"},
    )


def complaints(units: Path) -> list[str]:
    names = [str(path) for path in sorted(units.glob("flexsc-serve*"))]
    done = analyze(units, "verify", "--man=no", *names)
    return [line for line in done.stderr.splitlines() if "flexsc" in line]


def test_systemd_accepts_the_units(units: Path) -> None:
    if not os.access("/usr/bin/systemd-analyze", os.X_OK):
        pytest.skip("systemd-analyze is missing: install systemd")
    service = units / "flexsc-serve.service"
    text = service.read_text()
    # The oracle: systemd-analyze reports an error.
    service.write_text(text.replace(command(), "/none/flexsc"))
    if not complaints(units):
        pytest.skip("systemd-analyze doesn't work here")
    service.write_text(text)
    assert complaints(units) == []


def test_the_unit_is_hardened(units: Path) -> None:
    if not os.access("/usr/bin/systemd-analyze", os.X_OK):
        pytest.skip("systemd-analyze is missing: install systemd")
    service = str(units / "flexsc-serve.service")
    words = ("security", "--offline=yes", "--no-pager")
    done = analyze(units, *words, "--threshold=10", service)
    assert done.returncode == 0, done.stdout + done.stderr
    # In tenths. Without settings the exposure is 96.
    assert "Overall exposure level" in done.stdout, done.stdout
    done = analyze(units, *words, "--threshold=0", service)
    assert done.returncode != 0
