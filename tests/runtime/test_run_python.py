# SPDX-License-Identifier: MIT
"""Python's threads under flexsc run: a web server, and threads among themselves."""

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
        assert program.said() == ""


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


POOL = """
import concurrent.futures, hashlib, os, signal, subprocess, sys

def child(n):
    argv = [sys.executable, "-S", "-c", f"print({n} * 2)"]
    return int(subprocess.run(argv, capture_output=True, check=True).stdout)

def digest(n):
    return hashlib.sha256(bytes([n]) * 1_000_000).hexdigest()

with concurrent.futures.ThreadPoolExecutor(8) as pool:
    children = [pool.submit(child, n) for n in range(24)]
    digests = [pool.submit(digest, n) for n in range(24)]
    assert [c.result(15) for c in children] == [n * 2 for n in range(24)]
    assert [d.result(15) for d in digests] == [digest(n) for n in range(24)]
print("right")
"""


@pytest.mark.parametrize("way", WAYS)
def test_children_and_computing(way: str) -> None:
    argv = [*launcher(way), sys.executable, "-S", "-c", POOL]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr, done.returncode) == ("right\n", "", 0)


def carried(script: str, *arguments: str, way: str) -> str:
    argv = [*launcher(way), sys.executable, "-S", "-c", script, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stderr == ""
    return done.stdout


# A thread reads from a socket, so that it is known to wait; then that changes.
CHANGES = """
import os, signal, socket, struct, sys, threading, time

def new(a):
    global pair
    number = a.fileno()
    a.close()
    pair = socket.socketpair()
    assert number in (pair[0].fileno(), pair[1].fileno())
    for s in pair:
        os.set_blocking(s.fileno(), False)
    return number

def limited(a):
    limit = struct.pack("ll", 0, 100_000)
    a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    return a.fileno()

def child(a):
    import subprocess
    script = "import os; os.set_blocking(0, False)"
    subprocess.run([sys.executable, "-S", "-c", script], stdin=a, check=True)
    return a.fileno()

changes = {
    "flag": lambda a: os.set_blocking(a.fileno(), False) or a.fileno(),
    "dup": lambda a: os.set_blocking(os.dup(a.fileno()), False) or a.fileno(),
    "new": new,
    "limit": limited,
    "child": child,
}

def work():
    signal.alarm(5)
    a, b = socket.socketpair()
    for _ in range(3):
        b.send(b"x")
        assert os.read(a.fileno(), 1) == b"x"
    fd = changes[sys.argv[1]](a)
    try:
        os.read(fd, 1)
    except BlockingIOError:
        print("right")

thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", ["flag", "dup", "new", "limit", "child"])
def test_a_descriptor_stops_waiting(way: str, change: str) -> None:
    assert carried(CHANGES, change, way=way) == "right\n"


CLOSES = """
import os, signal, threading, time

def work():
    signal.alarm(5)
    os.closerange(3, 256)
    time.sleep(0.01)
    r, w = os.pipe()
    threading.Timer(0.05, os.write, (w, b"right")).start()
    print(os.read(r, 10).decode())
    for _ in range(100):
        time.sleep(0.001)
        os.write(w, b"x")
    assert os.read(r, 1000) == b"x" * 100

thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("way", WAYS)
def test_a_program_may_close_what_it_does_not_know(way: str) -> None:
    assert carried(CLOSES, way=way) == "right\n"


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
    """Record locks among threads, fsync() and shared mappings."""
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
