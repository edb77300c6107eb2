# SPDX-License-Identifier: MIT
"""Python's threads under flexsc run: a web server, and threads that work together."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures import PATIENCE, Client
from programs import (
    UNPATCHED,
    WAYS,
    Program,
    at_once,
    carried_by,
    free_port,
    launcher,
    started,
)

SERVER = """
import http.server, sys, threading

class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
server.serve_forever()
"""


@pytest.mark.parametrize("way", (*WAYS, UNPATCHED))
def test_threading_http_server(way: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "small").write_bytes(bytes(range(256)))
    (root / "big").write_bytes(bytes(range(251)) * 20_000)
    big = hashlib.sha256((root / "big").read_bytes()).digest()
    port = free_port()
    argv = [sys.executable, "-c", SERVER, str(port)]
    with started(Program(way, argv, tmp_path / "log", cwd=root)) as program:
        program.listen(port)

        def work(i: int) -> None:
            for _ in range(2):
                with Client(port) as client:
                    for _ in range(5):
                        assert client.ask("/small").body == bytes(range(256))
                    body = client.ask("/big").body
                    assert hashlib.sha256(body).digest() == big
                    data = f"from {i}".encode() * 1000
                    head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(data)}"
                    client.send(head.encode() + b"\r\n\r\n" + data)
                    assert client.read().body == data
                    assert client.ask(f"/none{i}").status == 404

        at_once(24, work)
        assert carried_by(way, [program.process.pid])
        assert program.stop() == -signal.SIGTERM
        assert program.output() == ""


QUEUES = """
import queue, sys, threading, time

tasks, results = queue.Queue(10), queue.SimpleQueue()
start = threading.Barrier(21)
waiting = threading.Condition()

def work():
    start.wait(60)
    while (n := tasks.get(timeout=60)) is not None:
        time.sleep(0.001 * (n % 3))
        results.put(n * n)

threads = [threading.Thread(target=work) for _ in range(20)]
for thread in threads:
    thread.start()
start.wait(60)
for n in range(1000):
    tasks.put(n, timeout=60)
for _ in threads:
    tasks.put(None, timeout=60)
for thread in threads:
    thread.join(60)
    assert not thread.is_alive()
assert sum(results.get() for _ in range(1000)) == sum(n * n for n in range(1000))
with waiting:
    before = time.monotonic()
    assert not waiting.wait(0.2)
    assert 0.19 < time.monotonic() - before
print("right")
sys.exit(7)
"""


@pytest.mark.parametrize("way", (*WAYS, UNPATCHED))
def test_queues_barriers_and_time_limits(way: str) -> None:
    argv = [*launcher(way), sys.executable, "-c", QUEUES]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr, done.returncode) == ("right\n", "", 7)


def carried(script: str, *arguments: str, way: str) -> str:
    argv = [*launcher(way), sys.executable, "-S", "-c", script, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stderr == ""
    return done.stdout


FILES = """
import os, sqlite3, sys, threading

path = sys.argv[1]
with sqlite3.connect(path) as base:
    base.execute("pragma journal_mode=wal")
    base.execute("create table t (a)")

def work(i):
    own = sqlite3.connect(path, timeout=60)
    for j in range(20):
        with own:
            own.execute("insert into t values (?)", (i * 100 + j,))
    own.close()

threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*base.execute("select count(*), sum(a) from t").fetchone())
"""


@pytest.mark.parametrize("way", WAYS)
def test_a_database_in_a_file(way: str, tmp_path: Path) -> None:
    """SQLite uses record locks between threads, fsync() and shared mappings."""
    total = sum(i * 100 + j for i in range(6) for j in range(20))
    argv = [sys.executable, "-c", FILES, str(tmp_path / "base")]
    argv = [*launcher(way), *argv]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == (f"120 {total}\n", "")


LOOP = """
import asyncio, os, signal, time

async def main():
    loop = asyncio.get_running_loop()
    before = time.monotonic()
    sleeps = [loop.run_in_executor(None, time.sleep, 0.05) for _ in range(16)]
    await asyncio.gather(*sleeps)
    cat = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    out, _ = await cat.communicate(b"x" * 1_000_000)
    assert (len(out), cat.returncode) == (1_000_000, 0)
    came = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, came.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(came.wait(), 60)
    print("right")

asyncio.run(main())
"""


@pytest.mark.parametrize("way", (*WAYS, UNPATCHED))
def test_an_event_loop_with_threads_beside_it(way: str) -> None:
    assert carried(LOOP, way=way) == "right\n"


PROCESSES = """
import multiprocessing, sys, threading

def square(n):
    return n * n

thread = threading.Thread(target=square, args=(1,))
thread.start()
thread.join()
with multiprocessing.get_context("fork").Pool(4) as pool:
    print(sum(pool.map(square, range(1000))))
"""


@pytest.mark.parametrize("way", ["native", "uring-4", "threads-1"])
def test_processes_forked_after_threads(way: str) -> None:
    assert carried(PROCESSES, way=way) == "332833500\n"
