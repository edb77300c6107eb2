# SPDX-License-Identifier: MIT
"""Shared by the integration tests: a server to start, and an HTTP client for it.

The client uses bare sockets, because the tests send requests that no HTTP library
would send. Every wait has a limit. Processes are ended by their process ID.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

ENGINES = ("uring", "threads")
# Seconds after which a test counts as hung. A busy machine needs more than ten.
PATIENCE = 60.0
BIG = 32 << 20


def command() -> str:
    """Path of the flexsc command under test: $FLEXSC, or the built one."""
    build = Path(__file__).resolve().parents[2] / "build"
    candidates = [build / "flexsc", build / "cmd/flexsc"]
    if "FLEXSC" in os.environ:
        candidates = [Path(os.environ["FLEXSC"])]
    for candidate in candidates:
        if candidate.is_file():
            return str(candidate)
    pytest.exit(f"no flexsc command: build it, or set FLEXSC ({candidates[-1]})")


def flexsc(
    *words: str | Path,
    cwd: Path | None = None,
    patience: float = PATIENCE,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Execute the command, and wait for its end."""
    return subprocess.run(
        [command(), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
        cwd=cwd,
        env={**os.environ, **environment},
    )


def counters(pid: int) -> dict[str, int]:
    """Return the counters of a process's only loop."""
    lines = flexsc("stat", str(pid)).stdout
    found = re.findall(r"^  (\w+) +(\d+)  ", lines, re.MULTILINE)
    return {name: int(value) for name, value in found}


@dataclasses.dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """One connection to a server."""

    def __init__(self, port: int, receive_buffer: int = 0) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def _more(self) -> None:
        data = self.socket.recv(1 << 20)
        if not data:
            raise EOFError
        self.rest += data

    def closed(self) -> bool:
        """Has the server closed the connection without sending anything more?"""
        try:
            return not self.rest and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def read(self, method: str = "GET") -> Response:
        while b"\r\n\r\n" not in self.rest:
            self._more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        assert lines[0].startswith("HTTP/1.1 ")
        status = int(lines[0].split()[1])
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(": ")
            assert name.lower() not in headers
            headers[name.lower()] = value
        length = int(headers.get("content-length", "0"))
        if method == "HEAD" or status == 304:
            length = 0
        parts = [self.rest]
        have = len(self.rest)
        while have < length:
            parts.append(self.socket.recv(1 << 20))
            have += len(parts[-1])
            if not parts[-1]:
                raise EOFError
        data = b"".join(parts)
        self.rest = data[length:]
        return Response(status, headers, data[:length])

    def ask(self, target: str, method: str = "GET", **headers: str) -> Response:
        self.send(request(target, method, **headers))
        return self.read(method)


def request(target: str, method: str = "GET", **headers: str) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: test"]
    for name, value in headers.items():
        lines.append(f"{name.replace('_', '-')}: {value}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Server:
    """A flexsc serve process that listens on a port of its own."""

    def __init__(
        self,
        root: Path,
        *options: str,
        before: Callable[[], None] | None = None,
        wrapper: Sequence[str] = (),
        pass_fds: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [*wrapper, command(), "serve", str(root), "-p", "0", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
            pass_fds=pass_fds,
            env=None if env is None else {**os.environ, **env},
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
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.messages.append(line.rstrip("\n"))
            if line.startswith("serving "):
                address = line.split("http://")[1].split("/")[0]
                self.port = int(address.rpartition(":")[2])
                self.started.set()
        self.started.set()

    def client(self, receive_buffer: int = 0) -> Client:
        return Client(self.port, receive_buffer)

    def get(self, target: str, method: str = "GET", **headers: str) -> Response:
        with self.client() as client:
            return client.ask(target, method, **headers)

    def talk(self, data: bytes) -> Response:
        with self.client() as client:
            client.send(data)
            return client.read()

    def descriptors(self) -> int:
        """Count the descriptors of sockets and files. The library's own come and go."""
        count = 0
        folder = f"/proc/{self.process.pid}/fd"
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                count += not os.readlink(f"{folder}/{name}").startswith("anon_inode:")
        return count

    def wait(self, limit: float = PATIENCE) -> int:
        status = self.process.wait(limit)
        self.reader.join(limit)
        return status

    def stop(self, limit: float = PATIENCE) -> int:
        """Stop the server, and check first that it is idle. No request may be pending."""
        assert not busy([self.process.pid])
        return self.terminate(limit)

    def terminate(self, limit: float = PATIENCE) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait(limit)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


def state(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat behind the name: state, parent ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def gone(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return state(pid)[0] == "Z"
    return True


def ticks(pid: int) -> int:
    """Processor time of a process in ticks of 10 ms; 0 if the process has ended."""
    with contextlib.suppress(OSError):
        words = state(pid)
        return int(words[11]) + int(words[12])
    return 0


def busy(pids: Iterable[int], limit: float = PATIENCE) -> list[int]:
    """Return the processes that keep computing although they have nothing to do.

    An idle process uses at most one tick in half a second, 2 % of a core. The test
    compares processor time, so other load on the machine doesn't matter.
    """
    found = list(pids)
    end = time.monotonic() + limit
    while found and time.monotonic() < end:
        before = {pid: ticks(pid) for pid in found}
        time.sleep(0.5)
        found = [pid for pid in found if ticks(pid) - before[pid] > 1]
    return found


def eventually(condition: Callable[[], bool], limit: float = PATIENCE) -> bool:
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def core_list(cores: str) -> set[int]:
    """Parse a list of cores, such as "0,2-3"."""
    found: set[int] = set()
    for part in cores.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def cores_of(pid: int) -> list[tuple[str, set[int]]]:
    """Return the name of each thread of a process, and the cores that it may use."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            status = (task / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has ended meanwhile
        name = re.search(r"^Name:\s*(.*)$", status, re.MULTILINE)
        cores = re.search(r"^Cpus_allowed_list:\s*(.*)$", status, re.MULTILINE)
        assert name and cores
        found.append((name[1], core_list(cores[1])))
    return found


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to serve, beside a file that must never be served."""
    base = tmp_path_factory.mktemp("serve")
    (base / "secret").write_text("secret")
    root = base / "root"
    root.mkdir()
    (root / "hello.txt").write_bytes(bytes(range(256)) * 4)
    # A file older than a second: its date is a strong validator.
    os.utime(root / "hello.txt", (1_000_000_000, 1_000_000_000))
    (root / "empty").touch()
    (root / "page.html").write_text("<p>page")
    (root / "no-type").write_text("x")
    (root / "a b%?#+\u00e9.txt").write_text("strange")
    (root / ".hidden").write_text("hidden")
    (root / "folder").mkdir()
    (root / "folder" / "index.html").write_text("index")
    (root / "list").mkdir()
    for name in ("b", "a", "<i>&\"'.txt", "c:d", ".dot"):
        (root / "list" / name).touch()
    (root / "list" / "sub").mkdir()
    (root / "many").mkdir()
    for i in range(1000):
        (root / "many" / f"file-{i:04}").touch()
    (root / "odd").mkdir()
    (root / "odd" / "index.html").mkdir()
    (root / "inside").symlink_to("folder/index.html")
    (root / "outside").symlink_to("../secret")
    (root / "absolute").symlink_to(root / "hello.txt")
    (root / "up").symlink_to("..")
    os.mkfifo(root / "pipe")
    with (root / "big").open("wb") as file:
        for i in range(BIG >> 16):
            file.write(i.to_bytes(4, "big") * (1 << 14))
    return root


def works(engine: str) -> bool:
    """Does the engine work on this machine? If it does, a failure is no reason to skip."""
    return flexsc("check", engine).returncode == 0


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest, tree: Path) -> str:
    name = str(request.param)
    try:
        Server(tree, "--engine", name).end()
    except RuntimeError as error:
        if works(name):
            raise
        pytest.skip(f"no engine {name} here: {error}")
    return name


Start = Callable[..., Server]


@pytest.fixture
def start(engine: str, tree: Path) -> Iterator[Start]:
    """Start servers for one test. They end with the test."""
    with contextlib.ExitStack() as stack:

        def start_one(
            *options: str,
            root: Path = tree,
            before: Callable[[], None] | None = None,
        ) -> Server:
            server = Server(root, "--engine", engine, *options, before=before)
            stack.callback(server.end)
            return server

        yield start_one


@pytest.fixture(scope="session")
def server(engine: str, tree: Path) -> Iterator[Server]:
    """One server, shared by all tests that only request files."""
    server = Server(tree, "--engine", engine)
    yield server
    server.end()
