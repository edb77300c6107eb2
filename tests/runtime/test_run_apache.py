# SPDX-License-Identifier: MIT
"""Apache's threaded servers under flexsc run: mpm_worker and mpm_event.

The parent starts a few children, whose threads accept and serve. Started by root,
the children run as "nobody". So the files that they serve are in a world-readable
folder.
"""

from __future__ import annotations

import http.server
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import Client, eventually
from programs import (
    WAYS,
    Program,
    at_once,
    carried_by,
    children,
    free_port,
    installed,
    started,
)

MODULES = Path("/usr/lib/apache2/modules")
WORKERS = 64
SMALL = bytes(range(256))
BIG = bytes(range(251)) * 6_000

CONFIGURATION = """
ServerRoot {root}
ServerName test
Listen 127.0.0.1:{port}
PidFile {root}/pid
Mutex {mutex}:{root}
ErrorLog {root}/errors
LogLevel warn
LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule proxy_module {modules}/mod_proxy.so
LoadModule proxy_http_module {modules}/mod_proxy_http.so
LoadModule status_module {modules}/mod_status.so
ExtendedStatus Off
User {user}
Group {group}
DocumentRoot {root}/files
KeepAliveTimeout 60
MaxKeepAliveRequests 0
StartServers 2
ServerLimit 2
ThreadsPerChild 32
MinSpareThreads 32
MaxSpareThreads {workers}
MaxRequestWorkers {workers}
ProxyPass /back/ http://127.0.0.1:{backend}/
<Location /status>
SetHandler server-status
</Location>
{sendfile}
{more}"""


class Backend(http.server.BaseHTTPRequestHandler):
    """Returns the request's path and its body in the response."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(f"{self.path}\n".encode() * 100)

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class BackendServer(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


@pytest.fixture(scope="module")
def backend() -> Iterator[int]:
    server = BackendServer(("127.0.0.1", 0), Backend)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield int(server.server_address[1])
    server.shutdown()
    server.server_close()
    thread.join(60)


class Apache(Program):
    def __init__(
        self,
        way: str,
        mpm: str,
        root: Path,
        backend: int,
        sendfile: bool = True,
        more: str = "",
    ) -> None:
        program = installed("apache2", "apache2")
        if not (MODULES / f"mod_mpm_{mpm}.so").is_file():
            pytest.skip(f"no mpm_{mpm} in {MODULES}: install apache2")
        root.chmod(0o755)
        (root / "files").mkdir()
        (root / "files/small").write_bytes(SMALL)
        (root / "files/big").write_bytes(BIG)
        self.port = free_port()
        self.root = root
        text = CONFIGURATION.format(
            root=root,
            port=self.port,
            mutex="pthread" if sendfile else "fcntl",
            mpm=mpm,
            modules=MODULES,
            workers=WORKERS,
            user="nobody" if os.geteuid() == 0 else f"#{os.getuid()}",
            group="nogroup" if os.geteuid() == 0 else f"#{os.getgid()}",
            backend=backend,
            sendfile=f"EnableSendfile {'On' if sendfile else 'Off'}",
            more=more,
        )
        (root / "conf").write_text(text)
        argv = [program, "-DFOREGROUND", "-f", str(root / "conf")]
        super().__init__(way, argv, root / "log")

    def errors(self) -> str:
        return (self.root / "errors").read_text()

    def all_wait(self) -> bool:
        """Do all workers exist, and are all idle except the one that answers this?

        mpm_event closes kept connections when no worker is idle: for example, while
        workers are still starting, natively too.
        """
        with Client(self.port) as client:
            said = client.ask("/status?auto", Connection="close").body.decode()
        return f"\nIdleWorkers: {WORKERS - 1}\n" in said


@pytest.fixture
def root() -> Iterator[Path]:
    path = tempfile.mkdtemp(prefix="flexsc-apache-")
    yield Path(path)
    shutil.rmtree(path, ignore_errors=True)


def ask_for_all(port: int, i: int) -> None:
    """Request the files and proxied paths of one client, over two connections."""
    for _ in range(2):
        with Client(port) as client:
            for j in range(5):
                assert client.ask("/small").body == SMALL
                path = f"/{i}/{j}"
                assert client.ask(f"/back{path}").body == f"{path}\n".encode() * 100
            assert client.ask(f"/none{i}").status == 404
            assert client.ask("/big").body == BIG
            data = f"from {i}".encode() * 5000
            head = f"POST /back/x HTTP/1.1\r\nHost: a\r\nContent-Length: {len(data)}"
            client.send(head.encode() + b"\r\n\r\n" + data)
            assert client.read().body == data


@pytest.mark.parametrize(
    ("mpm", "way"),
    [
        *(("worker", way) for way in WAYS),
        *(("event", way) for way in ("native", "uring-1", "uring-4", "threads-4")),
    ],
)
def test_files_and_proxied_requests(
    way: str, mpm: str, root: Path, backend: int
) -> None:
    with started(Apache(way, mpm, root, backend)) as server:
        server.listen(server.port)
        server.wait_until(server.all_wait)
        at_once(24, lambda i: ask_for_all(server.port, i))
        assert carried_by(way, children(server.process.pid))
        assert server.stop() == 0
        assert server.output() == ""


@pytest.mark.parametrize(("mpm", "way"), [("event", "uring-4"), ("worker", "uring-1")])
def test_restarts_lose_no_requests(
    way: str, mpm: str, root: Path, backend: int
) -> None:
    """Graceful restarts: children end when their requests have, and new ones start."""
    with started(Apache(way, mpm, root, backend, sendfile=False)) as server:
        server.listen(server.port)
        # The server listens before it has children.
        server.wait_until(lambda: bool(children(server.process.pid)))
        stop = threading.Event()
        served = [0] * 8

        def load(i: int) -> None:
            """The server may close an idle connection, but not one with a pending
            request.
            """
            while not stop.is_set():
                with Client(server.port) as client:
                    answer = client.ask("/small", Connection="close")
                    assert answer.body == SMALL
                    served[i] += 1
                time.sleep(0.005)

        def restart() -> None:
            try:
                # The server listens before it has children.
                assert eventually(lambda: bool(children(server.process.pid)))
                before = set(children(server.process.pid))
                server.send(signal.SIGUSR1)
                assert eventually(
                    lambda: bool(now := set(children(server.process.pid)))
                    and not now & before
                )
                assert eventually(lambda: min(served) > 0)
            finally:
                stop.set()

        at_once(9, lambda i: load(i) if i < 8 else restart())
        # A child starts its threads a moment after the fork.
        assert eventually(lambda: carried_by(way, children(server.process.pid)))
        assert server.stop(signal.SIGWINCH) == 0
        assert "exit signal" not in server.errors()
