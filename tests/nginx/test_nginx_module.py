# SPDX-License-Identifier: MIT
"""The module for nginx. The same nginx without the module is the oracle.

Both get the same requests, and have to send the same bytes. A burst is sent while
the worker is stopped. So the worker finds all requests in one turn, and the module
collects them, whatever else the machine does.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures import PATIENCE, command, cores_of, eventually, gone, state, works
from programs import (
    Program,
    at_once,
    children,
    compiled,
    free_port,
    installed,
    started,
)

CLIENTS = 8
CORES = sorted(os.sched_getaffinity(0))
KERNEL_CORES = f"flexsc_kernel_cores {CORES[-1]};"
SYS_CLOSE = 3
LONG = 3 * PATIENCE  # seconds for a process to start or end beside many clients
SMALL = bytes(range(256)) * 4
TEXT = b"<p>some text that is long enough to be worth compressing</p>\n" * 40
BIG = bytes(range(251)) * 12_000

# Directives of a location that may change responses.
FEATURES = [
    "etag off;",
    "if_modified_since before;",
    "if_modified_since off;",
    "max_ranges 0;",
    "max_ranges 1;",
    "limit_rate 500k;",
    "limit_rate 1m; limit_rate_after 2k;",
    "limit_conn at_once 1;",
    "limit_req zone=often;",
    "limit_req zone=often burst=2 nodelay;",
    "gzip on; gzip_min_length 1; gzip_http_version 1.0; gzip_vary on;",
    "gzip_static on; gunzip on;",
    "gzip_static always;",
    "try_files /nothing /small;",
    "try_files /nothing =403;",
    "try_files /nothing @named;",
    "error_page 404 = /small;",
    "error_page 404 =200 /page.html;",
    "error_page 404 416 412 @named;",
    "recursive_error_pages on; error_page 404 /none; error_page 403 /small;",
    "rewrite /[^/]*$ /page.html last;",
    "rewrite ^ /page.html break;",
    "if ($arg_start) { return 204; }",
    "return 301 /small;",
    "autoindex on; index nothing;",
    "index entry index.html;",
    "add_header X-File $request_filename always; expires epoch;",
    "add_before_body /small; addition_types *;",
    "add_after_body /page.html; addition_types *;",
    "auth_request /word/;",
    "auth_request /forbidden/;",
    "mirror /word/;",
    "ssi on; ssi_types *; ssi_last_modified on;",
    "sub_filter text TEXT; sub_filter_types *; sub_filter_once on;",
    "slice 512;",
    "charset utf-8; charset_types *;",
    "charset utf-8; source_charset koi8-r; override_charset on; charset_types *;",
    "sendfile off;",
    "sendfile_max_chunk 1k;",
    "tcp_nopush off;",
    "tcp_nodelay off;",
    "aio threads;",
    "directio 512;",
    "output_buffers 1 512;",
    "sendfile off; output_buffers 2 100; postpone_output 0;",
    "postpone_output 10000;",
    "lingering_close always;",
    "chunked_transfer_encoding off;",
    "open_file_cache max=10; open_file_cache_min_uses 3;",
    "open_file_cache max=10; open_file_cache_errors on; open_file_cache_valid 1s;",
    "disable_symlinks on;",
    "read_ahead 1k;",
    "satisfy any; allow all; deny all; auth_request /forbidden/;",
    "internal;",
    "random_index on;",
    "flv;",
    "post_action /word/;",
    "log_not_found off; reset_timedout_connection on; server_tokens off;",
    "default_type text/plain; types { }",
    "limit_except GET { deny all; }",
]

CONFIGURATION = """
{load}
user {user};
worker_processes 1;
daemon off;
pid {root}/pid;
error_log {root}/errors notice;
events {{ worker_connections 256; }}
http {{
	{on}
	types {{ text/html html; }}
	default_type application/octet-stream;
	sendfile on;
	tcp_nopush on;
	keepalive_requests 100000;
	log_format test '$status $body_bytes_sent $bytes_sent $request_completion'
		' $connection_requests $sent_http_content_range $request $http_from';
	charset_map koi8-r utf-8 {{ C0 D18E; }}
	limit_conn_zone $server_port zone=at_once:1m;
	limit_req_zone $server_port$request_uri zone=often:1m rate=1r/m;
	access_log {root}/access test;
	client_body_temp_path {root}/t1;
	proxy_temp_path {root}/t2;
	fastcgi_temp_path {root}/t3;
	uwsgi_temp_path {root}/t4;
	scgi_temp_path {root}/t5;
	error_page 404 /missing.html;
	server {{
		listen 127.0.0.1:{port};
		listen 127.0.0.1:{tls} ssl http2;
		ssl_certificate {shared}/cert;
		ssl_certificate_key {shared}/key;
		root {shared}/files;
		autoindex on;
		location /cached/ {{
			alias {shared}/files/;
			open_file_cache max=100;
			open_file_cache_errors on;
		}}
		location /gzip/ {{
			alias {shared}/files/;
			gzip on;
			gzip_min_length 1;
			gzip_static on;
		}}
		location /slow/ {{
			alias {shared}/files/;
			limit_rate 1m;
		}}
		location /hasty/ {{
			alias {shared}/files/;
			send_timeout 1s;
		}}
		location /proxy/ {{ proxy_pass http://127.0.0.1:{port}/; }}
		location /ssi/ {{
			alias {shared}/files/;
			ssi on;
			ssi_types *;
		}}
		location /sub/ {{
			alias {shared}/files/;
			sub_filter text TEXT;
			sub_filter_once off;
		}}
		location /direct/ {{
			alias {shared}/files/;
			directio 1;
		}}
		location /threads/ {{
			alias {shared}/files/;
			aio threads;
		}}
		location /copied/ {{
			alias {shared}/files/;
			sendfile off;
		}}
		location /unsent/ {{
			alias {shared}/files/;
			{unsent}
		}}
		location /pushed/ {{
			alias {shared}/files/;
			tcp_nopush off;
		}}
		location /doomed/ {{
			mirror /mirrored;
			proxy_pass http://127.0.0.1:{backend};
		}}
		location = /mirrored {{
			internal;
			proxy_store {root}/stored;
			proxy_pass http://127.0.0.1:{backend};
		}}
		location @named {{ rewrite ^ /page.html break; }}
		{features}
		location /try/ {{ try_files /nothing /small; }}
		location /word/ {{ return 200 "a word"; }}
		location /forbidden/ {{ deny all; }}
		location = /who {{ return 200 "{root}"; }}
	}}
}}
"""


@dataclass
class Which:
    """The nginx to run, and the module for it."""

    program: str
    module: Path


def build() -> Path:
    return Path(command()).resolve().parents[1]


def installed_one() -> Which:
    path = build() / "nginx/ngx_http_flexsc_module.so"
    if not path.is_file():
        pytest.skip("the module isn't built: install nginx-dev")
    return Which(installed("nginx", "nginx-light"), path)


def written(path: Path) -> bool:
    return path.exists() and path.read_text() != ""


class Nginx(Program):
    """An nginx with one worker, with or without the module."""

    def __init__(
        self,
        root: Path,
        shared: Path,
        load: bool,
        before: tuple[str, ...] = (),
        keep: int = 0,
        more: str = "",
    ) -> None:
        which = installed_one()
        root.mkdir(mode=0o755)
        self.root = root
        self.port = self.tls = free_port()
        while self.tls == self.port:
            self.tls = free_port()
        self.backend = socket.create_server(("127.0.0.1", 0))
        self.backend.settimeout(PATIENCE)
        text = CONFIGURATION.format(
            load=f"load_module {which.module};" if load else "",
            on=f"flexsc on;\n\tflexsc_keep {keep};\n\t{more}" if load else "",
            unsent="flexsc_send off; flexsc_whole 0;" if load else "",
            user="nobody nogroup" if os.geteuid() == 0 else "nobody",
            root=root,
            shared=shared,
            port=self.port,
            tls=self.tls,
            backend=self.backend.getsockname()[1],
            features="\n\t\t".join(
                f"location /{i}/ {{ alias {shared}/files/; {words} }}"
                for i, words in enumerate(FEATURES)
            ),
        )
        if before == DAEMON:
            text = text.replace("daemon off;", "")
        (root / "nginx.conf").write_text(text)
        argv = [*before, which.program, "-c", f"{root}/nginx.conf"]
        argv += ["-e", f"{root}/errors"]
        super().__init__("native", argv, root / "out")
        self.wait_until(self.answers)

    def answers(self) -> bool:
        """Does this server answer, and not another one on its port?

        The worker of a daemon may answer before the daemon's parent writes the file.
        """
        if not written(self.root / "pid"):
            return False
        with contextlib.suppress(OSError, EOFError), self.connect() as connection:
            connection.send(request("/who"))
            return connection.answer().endswith(str(self.root).encode())
        return False

    def end(self) -> None:
        for path in self.root.glob("pid*"):
            # A daemon has left the program's process group. A killed one leaves the
            # file, and its ID may be that of another process.
            with contextlib.suppress(OSError, ValueError):
                pid = int(path.read_text())
                if str(self.root).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGTERM)
        super().end()
        self.backend.close()

    def master(self) -> int:
        return int((self.root / "pid").read_text())

    def workers(self) -> list[int]:
        """Return the workers, without those that have ended and aren't reaped yet."""
        return [pid for pid in children(self.master()) if not gone(pid)]

    def worker(self) -> int:
        return self.workers()[0]

    def errors(self) -> str:
        return (self.root / "errors").read_text()

    def stats(self) -> dict[str, int]:
        """Return the counters of the worker's loop."""
        argv = [command(), "stat", str(self.worker())]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
        found = re.findall(r"^  (\w+) +(\d+)  ", done.stdout, re.MULTILINE)
        return {name: int(value) for name, value in found}

    def connect(self, secure: bool = False) -> Connection:
        return Connection(self.tls if secure else self.port, secure=secure)


class Connection:
    """A client connection that returns responses of any kind unchanged."""

    def __init__(
        self, port: int, receive_buffer: int = 0, secure: bool = False
    ) -> None:
        self.socket = socket.socket()
        if secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
        self.socket.settimeout(PATIENCE)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        self.rest = b""
        self.asked = b""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, request: bytes) -> None:
        self.asked = request
        self.socket.sendall(request)

    def more(self) -> None:
        data = self.socket.recv(1 << 18)
        if not data:
            raise EOFError(self.rest[:200], self.asked[:80])
        self.rest += data

    def until(self, end: bytes, start: int = 0) -> int:
        while (place := self.rest.find(end, start)) < 0:
            self.more()
        return place + len(end)

    def take(self, length: int) -> bytes:
        while len(self.rest) < length:
            self.more()
        taken, self.rest = self.rest[:length], self.rest[length:]
        return taken

    def answer(self, head_only: bool = False) -> bytes:
        size = self.until(b"\r\n\r\n")
        head = self.rest[:size]
        length = re.search(rb"\r\nContent-Length: (\d+)\r\n", head)
        if head_only or head[9:12] in (b"204", b"304"):
            return self.take(size)
        if length:
            return self.take(size + int(length[1]))
        return self.take(self.until(b"\r\n0\r\n\r\n", size - 2))

    def reset(self) -> None:
        """Reset the connection, as a client that vanishes."""
        now = struct.pack("ii", 1, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
        self.socket.close()


def request(target: str, method: str = "GET", *headers: str) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: test", *headers, "", ""]
    return "\r\n".join(lines).encode()


asked = request  # for tests in which a fixture has its name


def timeless(answer: bytes, port: int) -> bytes:
    """Remove what differs between two servers with equal answers."""
    answer = re.sub(rb"\r\nDate: [^\r]*", b"", answer, count=1)
    boundary = re.search(rb"\r\nContent-Type: multipart.*boundary=(\d+)", answer)
    if boundary:
        answer = answer.replace(boundary[1], b"BOUNDARY")
    return answer.replace(b":%d/" % port, b":PORT/")


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        assert eventually(lambda: state(pid)[0] in "tT")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def crowd(
    server: Nginx, n: int = CLIENTS, secure: bool = False
) -> Iterator[list[Connection]]:
    """Connections that the worker has accepted. secure: with TLS."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(server.connect(secure)) for _ in range(n)]
        for connection in found:
            connection.send(request("/word/"))
            connection.answer()
        yield found


def ask_one(server: Nginx, connection: Connection, ask: bytes) -> bytes:
    connection.send(ask)
    return timeless(connection.answer(ask in HEADS), server.port)


def burst(server: Nginx, connections: list[Connection], ask: bytes) -> list[bytes]:
    """Return the response on each connection."""
    with stopped(server.worker()):
        for connection in connections:
            connection.send(ask)
    return [
        timeless(connection.answer(ask in HEADS), server.port)
        for connection in connections
    ]


def make_files(shared: Path) -> None:
    files = shared / "files"
    files.mkdir(mode=0o755)
    (files / "small").write_bytes(SMALL)
    (files / "empty").touch()
    (files / "page.html").write_bytes(TEXT)
    (files / "ready.html").write_bytes(TEXT)
    (files / "ready.html.gz").write_bytes(b"not compressed")
    (files / "32k").write_bytes(BIG[:32768])
    (files / "32k1").write_bytes(BIG[:32769])
    (files / "big").write_bytes(BIG)
    (files / "missing.html").write_bytes(b"it isn't there")
    (files / "with.html").write_bytes(
        b"a" * 2000 + b'<!--# include virtual="/page.html" -->' + b"b" * 2000
    )
    (files / "link").symlink_to("small")
    (files / "folder").mkdir()
    (files / "folder/index.html").write_bytes(b"index")
    (files / "list").mkdir()
    (files / "list/entry").touch()
    (files / "closed").write_bytes(b"secret")
    (files / "closed").chmod(0)
    os.mkfifo(files / "pipe")
    subject = ["-subj", "/CN=test", "-days", "2", "-nodes"]
    argv = ["openssl", "req", "-x509", "-newkey", "ec", *subject]
    argv += ["-pkeyopt", "ec_paramgen_curve:P-256"]
    argv += ["-keyout", f"{shared}/key", "-out", f"{shared}/cert"]
    subprocess.run(argv, check=True, capture_output=True, timeout=PATIENCE)


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    # The workers of root's nginx run as "nobody", who can't enter the tests' folders.
    with tempfile.TemporaryDirectory(prefix="flexsc-nginx-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        make_files(folder)
        yield folder


@pytest.fixture(scope="module")
def stock(shared: Path) -> Iterator[Nginx]:
    with started(Nginx(shared / "stock", shared, load=False)) as server:
        yield server


@pytest.fixture(scope="module")
def nginx(shared: Path) -> Iterator[Nginx]:
    with started(Nginx(shared / "module", shared, load=True)) as server:
        if "without io_uring" in server.errors():
            assert not works("uring"), server.errors()
            pytest.skip("io_uring doesn't work here")
        yield server


@pytest.fixture(scope="module")
def keeping(shared: Path, nginx: Nginx) -> Iterator[Nginx]:
    """An nginx that keeps files open, but so few that they replace each other."""
    with started(Nginx(shared / "keeping", shared, load=True, keep=4)) as server:
        yield server


@pytest.fixture(scope="module")
def apart(shared: Path, nginx: Nginx) -> Iterator[Nginx]:
    """An nginx whose calls execute on another core than its worker."""
    if len(CORES) < 2:
        pytest.skip("needs two cores")
    one = Nginx(shared / "apart", shared, load=True, keep=4, more=KERNEL_CORES)
    with started(one) as server:
        yield server


@pytest.fixture(params=["nginx", "keeping", "apart"])
def either(request: pytest.FixtureRequest) -> Nginx:
    server: Nginx = request.getfixturevalue(request.param)
    return server


@pytest.fixture(params=["", KERNEL_CORES], ids=["own", "apart"])
def own(shared: Path, nginx: Nginx, request: pytest.FixtureRequest) -> Iterator[Nginx]:
    """An nginx that the test may end."""
    if request.param and len(CORES) < 2:
        pytest.skip("needs two cores")
    folder = Path(tempfile.mkdtemp(dir=shared))
    folder.chmod(0o755)
    one = Nginx(folder / "own", shared, load=True, more=request.param)
    with started(one) as server:
        yield server


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


class Load:
    """Clients that send requests until "over" is set. Every response has to be correct."""

    def __init__(self, server: Nginx) -> None:
        self.server = server
        self.over = False
        self.answers = 0
        self.ending = False
        self.errors: list[BaseException] = []
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        try:
            at_once(CLIENTS, self.client, LONG)
        except BaseException as error:  # noqa: BLE001 (raised when it is over)
            self.errors.append(error)

    def client(self, _: int) -> None:
        while not self.over:
            try:
                with self.server.connect() as connection:
                    self.ask(connection)
            except ConnectionError:
                if not self.ending:
                    raise
                time.sleep(0.05)

    def ask(self, connection: Connection) -> None:
        while not self.over:
            try:
                connection.send(request("/small") + request("/32k"))
                first = connection.answer()
            except (EOFError, ConnectionError):
                # nginx may close a connection between two requests.
                assert not connection.rest
                return
            assert first.endswith(SMALL)
            self.answers += 1
            try:
                assert connection.answer().endswith(BIG[:32768])
            except (EOFError, ConnectionError):
                assert not connection.rest
                return

    def wait(self, n: int) -> None:
        until = self.answers + n
        assert eventually(lambda: self.answers >= until or bool(self.errors), LONG)


@contextlib.contextmanager
def loaded(server: Nginx) -> Iterator[Load]:
    load = Load(server)
    load.thread.start()
    try:
        load.wait(100)
        yield load
    finally:
        load.over = True
        load.thread.join(LONG)
    if load.errors:
        raise load.errors[0]


def changes(server: Nginx, pid: int, act: Callable[[], None]) -> None:
    """act() makes another process serve. No client gets a wrong response."""
    with loaded(server) as load:
        act()
        assert eventually(lambda: gone(pid), LONG)
        load.wait(100)
    assert "exited on signal" not in server.errors()
    assert "open socket" not in server.errors()


def test_reload_under_load(own: Nginx) -> None:
    worker = own.worker()
    changes(own, worker, lambda: os.kill(own.master(), signal.SIGHUP))
    assert own.worker() != worker


def test_a_killed_worker_is_replaced(own: Nginx) -> None:
    worker = own.worker()
    with crowd(own) as many:
        burst(own, many, request("/small"))
        os.kill(worker, signal.SIGKILL)
        for connection in many:
            with pytest.raises((EOFError, ConnectionError)):
                ask_one(own, connection, request("/small"))
    assert eventually(lambda: own.workers() not in ([], [worker]), LONG)
    with own.connect() as connection:
        assert ask_one(own, connection, request("/small")).endswith(SMALL)


# An nginx that isn't a daemon would take itself for the new binary.
DAEMON = ("sh", "-c", '"$@" -g "daemon on;"; exec sleep 60', "sh")


def test_another_binary_under_load(nginx: Nginx, shared: Path) -> None:
    root = shared / "daemon"
    daemon = Nginx(root, shared, load=True, before=DAEMON)
    with started(daemon) as own:
        old = own.master()
        # nginx ignores the signal while the process that started it lives.
        launcher = Path(f"/proc/{own.process.pid}/comm")
        assert eventually(lambda: launcher.read_text() == "sleep\n", LONG)

        def upgrade() -> None:
            os.kill(old, signal.SIGUSR2)
            assert eventually((root / "pid.oldbin").exists, LONG)
            assert eventually(lambda: written(root / "pid"), LONG)
            assert eventually(lambda: bool(own.workers()), LONG)
            os.kill(old, signal.SIGQUIT)

        changes(own, old, upgrade)
        new = own.master()
        assert new != old
        os.kill(new, signal.SIGQUIT)
        assert eventually(lambda: gone(new), LONG)


@pytest.mark.parametrize("signo", [signal.SIGQUIT, signal.SIGTERM])
def test_an_end_under_load(own: Nginx, signo: signal.Signals) -> None:
    with loaded(own) as load:
        load.ending = True
        own.send(signo)
        assert own.wait(LONG) == 0
        load.over = True
    assert "exited on signal" not in own.errors()
    assert "open socket" not in own.errors()


def refused(shared: Path, error: str, more: str = "") -> Nginx:
    """Start an nginx to which the kernel refuses rings."""
    before = (installed("strace", "strace"), "-f", "-qq", "-o", "/dev/null")
    before += ("-e", "trace=io_uring_setup", "-e", f"inject=io_uring_setup:{error}")
    folder = Path(tempfile.mkdtemp(dir=shared))
    folder.chmod(0o755)
    return Nginx(folder / "own", shared, load=True, before=before, more=more)


def test_without_io_uring_nginx_works(nginx: Nginx, shared: Path) -> None:
    with started(refused(shared, "error=EPERM")) as server:
        assert "runs without io_uring" in server.errors()
        with server.connect() as connection:
            connection.send(request("/small"))
            assert connection.answer().endswith(SMALL)


# The worker's first ring has a poller.
REFUSED = {
    "error=EPERM": "runs without io_uring",
    "error=EPERM:when=1": "no kernel thread polls",
}


@pytest.mark.parametrize("error", REFUSED)
def test_a_worker_without_a_poller_uses_all_its_cores(
    nginx: Nginx, shared: Path, error: str
) -> None:
    if len(CORES) < 2:
        pytest.skip("needs two cores")
    with started(refused(shared, error, KERNEL_CORES)) as server:
        assert REFUSED[error] in server.errors()
        assert os.sched_getaffinity(server.worker()) == set(CORES)


@contextlib.contextmanager
def traced(server: Nginx, *options: str) -> Iterator[Path]:
    """Trace the worker's calls with strace. The file can be read afterwards."""
    output = server.root / "calls"
    argv = [installed("strace", "strace"), "-f", "-o", str(output), *options]
    argv += ["-p", str(server.worker())]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as tracer:
        assert tracer.stderr
        if b"attached" not in tracer.stderr.readline():
            tracer.wait(PATIENCE)
            pytest.skip("strace isn't allowed to trace here")
        try:
            yield output
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(PATIENCE)


def calls(
    server: Nginx, target: str, rounds: int, n: int, secure: bool = False
) -> float:
    """Return the worker's system calls per request, with n requests in a turn."""
    with crowd(server, n, secure) as many:
        burst(server, many, request(target))
        # After a stop, threads of nginx's pool repeat their futex calls.
        with traced(server, "-c", "-e", "trace=!futex") as output:
            for _ in range(rounds):
                burst(server, many, request(target))
    total = output.read_text().splitlines()[-1].split()
    assert total[-1] == "total"
    return int(total[3]) / (rounds * n)


def closes(server: Nginx, n: int) -> int:
    """Return how many of n connections that end in a turn are closed by a plain call."""
    with crowd(server, n) as many, traced(server, "-e", "trace=close") as output:
        burst(server, many, request("/small", "GET", "Connection: close"))
        for connection in many:
            assert connection.socket.recv(1) == b""
    return output.read_text().count(" close(")


def test_a_request_takes_few_system_calls(
    stock: Nginx, nginx: Nginx, keeping: Nginx
) -> None:
    """A request takes about 4 calls, and 3 if the cache has the file, with the log's."""
    assert calls(stock, "/small", 3, 32) > 8
    assert calls(nginx, "/small", 3, 32) < 5
    assert calls(nginx, "/cached/small", 3, 32) < 4
    assert calls(keeping, "/small", 3, 32) < 5


def test_a_request_over_tls_reads_its_file_once(stock: Nginx, nginx: Nginx) -> None:
    """The library opens and closes the file; all other calls are those of nginx."""
    assert calls(nginx, "/small", 3, 32, secure=True) < (
        calls(stock, "/small", 3, 32, secure=True) - 1
    )

    def reads(server: Nginx) -> int:
        with crowd(server, secure=True) as many:
            burst(server, many, request("/small"))
            with traced(server, "-e", "trace=pread64,preadv2") as output:
                burst(server, many, request("/small"))
        return len(re.findall(r" pread(?:64|v2)\(", output.read_text()))

    assert reads(stock) == reads(nginx) == CLIENTS


def test_other_answers_cost_what_they_cost_in_nginx(stock: Nginx, nginx: Nginx) -> None:
    """The module sends nothing for connections to a proxied server and their clients."""

    def sendings(server: Nginx) -> list[str]:
        with crowd(server) as many:
            burst(server, many, request("/proxy/word/"))
            names = "trace=writev,sendmsg,sendto,io_uring_enter"
            with traced(server, "-e", names) as output:
                burst(server, many, request("/proxy/word/"))
        return sorted(re.findall(r"^\d+ +(\w+)\(", output.read_text(), re.MULTILINE))

    assert sendings(nginx) == sendings(stock)


def test_filtered_contents_are_sent_as_by_nginx(stock: Nginx, nginx: Nginx) -> None:
    """The contents leave in the same pieces. A further small piece would wait for the
    client's acknowledgement.
    """

    def sendings(server: Nginx, ask: bytes) -> list[str]:
        with crowd(server, 1) as one:
            ask_one(server, one[0], ask)
            names = "trace=setsockopt,writev,sendfile,sendmsg,sendto"
            with traced(server, "-e", names) as output:
                ask_one(server, one[0], ask)
        return re.findall(r"^\d+ +(\w+)\(", output.read_text(), re.MULTILINE)

    for ask in (
        request("/ssi/with.html"),
        request("/sub/page.html"),
        request("/gzip/page.html", "GET", "Accept-Encoding: gzip"),
    ):
        assert sendings(nginx, ask) == sendings(stock, ask), ask


def is_closing_a_socket(pid: int) -> bool:
    """Has a tracer stopped the process at the start of close() of a socket?"""
    number, *words = Path(f"/proc/{pid}/syscall").read_text().split()
    if number != str(SYS_CLOSE):
        return False
    try:
        where = os.readlink(f"/proc/{pid}/fd/{int(words[0], 16)}")
    except FileNotFoundError:
        return False  # the close has ended
    return where.startswith("socket:")


@pytest.mark.parametrize("server", ["stock", "nginx", "keeping"])
def test_an_answer_is_not_lost_by_surplus_bytes(
    server: str, request: pytest.FixtureRequest
) -> None:
    """The client sends surplus bytes while its connection is being closed."""
    one: Nginx = request.getfixturevalue(server)
    late = "inject=close:delay_enter=2000000"
    with one.connect() as connection, traced(one, "-e", "trace=close", "-e", late):
        connection.send(asked("/pushed/small", "GET", "Connection: close"))
        assert eventually(lambda: is_closing_a_socket(one.worker()))
        connection.socket.send(b"more")
        assert connection.answer().endswith(SMALL)


def backend_of(server: Nginx) -> tuple[socket.socket, socket.socket]:
    """Return the sockets of a proxied request and of its mirror."""
    found: dict[bool, socket.socket] = {}
    for _ in range(2):
        peer, _ = server.backend.accept()
        peer.settimeout(PATIENCE)
        found[b"/mirrored" in peer.recv(4096)] = peer
    return found[False], found[True]


def end_early(
    server: Nginx, many: list[Connection], also: Callable[[], None] = lambda: None
) -> Connection:
    """End a request of the last connection in the turn that answers all others."""
    last = many.pop()
    last.send(request("/doomed/small"))
    proxied, mirrored = backend_of(server)
    with proxied, mirrored:
        mirrored.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart")
        ask_one(server, many[0], request("/word/"))
        with stopped(server.worker()):
            for connection in many:
                connection.send(request("/small"))
            proxied.sendall(b"HTTP/1.1 200 OK\r\nX-Accel-Redirect: /small\r\n\r\n")
            mirrored.close()
            also()
    for connection in many:
        assert connection.answer().endswith(SMALL)
    return last


@pytest.mark.parametrize("server", ["stock", "nginx", "keeping", "apart"])
def test_a_request_that_is_ended_early(
    server: str, request: pytest.FixtureRequest
) -> None:
    """The request ends while its file is being opened, or after its response was
    posted.
    """
    one: Nginx = request.getfixturevalue(server)
    worker = one.worker()
    with crowd(one, 5) as many:
        burst(one, many, asked("/small"))
        doomed = end_early(one, many)
        if server == "nginx":
            with pytest.raises(EOFError):
                doomed.answer()
        else:
            assert doomed.answer().endswith(SMALL)
            assert doomed.socket.recv(1) == b""
        assert len(set(burst(one, many, asked("/small")))) == 1
    assert one.worker() == worker
    assert "exited on signal" not in one.errors()


def test_a_late_answer_reaches_no_other_client(keeping: Nginx) -> None:
    """The kernel receives the response after the request has ended, and after another
    connection has got its socket's number.
    """
    new: list[Connection] = []

    def connect() -> None:
        new.append(keeping.connect())
        new[0].send(request("/32k"))

    refuse = "inject=io_uring_enter:error=EAGAIN:when=1"
    with crowd(keeping, 5) as many:
        burst(keeping, many, request("/small"))
        with traced(keeping, "-e", "trace=io_uring_enter", "-e", refuse):
            end_early(keeping, many, connect)
            with new[0] as connection:
                assert connection.answer().endswith(BIG[:32768])
                assert ask_one(keeping, connection, request("/word/"))[-6:] == b"a word"


def test_connections_that_end_together_are_closed_together(
    stock: Nginx, nginx: Nginx, keeping: Nginx
) -> None:
    assert closes(stock, 32) >= 32
    assert closes(nginx, 32) < 16
    assert closes(keeping, 32) < 16


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


def test_calls_execute_on_the_kernel_cores(apart: Nginx) -> None:
    """A poller takes the calls of the worker, which has root's rights no more and leaves
    the poller's core.
    """
    with crowd(apart) as many:
        for _ in range(3):
            for answer in burst(apart, many, request("/small")):
                assert answer.endswith(SMALL)
        found = cores_of(apart.worker())
    there = [name for name, cores in found if cores == {CORES[-1]}]
    assert len(there) == 1 and there[0].startswith("iou-sqp-"), found
    assert os.sched_getaffinity(apart.worker()) == set(CORES[:-1])

    def counted() -> bool:
        """The worker may still be closing connections."""
        stats = apart.stats()
        return stats["by_uring"] == stats["posted"] >= 3 * CLIENTS - 6

    assert eventually(counted), apart.stats()


def test_a_worker_with_kernel_cores_makes_no_posted_call(apart: Nginx) -> None:
    """The number of waits and wake-ups depends on how fast the poller is."""
    posted = "trace=openat,openat2,close,writev,sendmsg,sendfile"
    with crowd(apart) as many:
        burst(apart, many, request("/small"))
        with traced(apart, "-e", posted) as output:
            burst(apart, many, request("/small"))
    assert len(re.findall(r"^\d+ +\w+\(", output.read_text(), re.MULTILINE)) < 3


def test_an_idle_worker_sleeps(nginx: Nginx) -> None:
    """The worker has no requests, but may still be closing earlier connections."""

    def sleeps() -> bool:
        before = nginx.stats()["mode_switches"]
        time.sleep(0.3)
        return nginx.stats()["mode_switches"] == before

    assert eventually(sleeps)
