# SPDX-License-Identifier: MIT
"""An nginx with one worker, with or without the module, and its clients.

Both get the same requests, and have to send the same bytes. A burst is sent while
the worker is stopped. So the worker finds all requests in one turn, and the module
collects them, whatever else the machine does.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import ssl
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures import PATIENCE, command, counters, eventually, gone, state
from programs import Program, children, free_port, installed

CLIENTS = 8
CORES = sorted(os.sched_getaffinity(0))
KERNEL_CORES = f"flexsc_kernel_cores {CORES[-1]};"
LONG = 3 * PATIENCE  # seconds for a process to start or end beside many clients
SMALL = bytes(range(256)) * 4
TEXT = b"<p>some text that is long enough to be worth compressing</p>\n" * 40
BIG = bytes(range(251)) * 12_000
# An nginx that isn't a daemon would take itself for the new binary.
DAEMON = ("sh", "-c", '"$@" -g "daemon on;"; exec sleep 60', "sh")

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
        return counters(self.worker())

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


def is_head(ask: bytes) -> bool:
    return ask.startswith(b"HEAD ")


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
    return timeless(connection.answer(is_head(ask)), server.port)


def burst(server: Nginx, connections: list[Connection], ask: bytes) -> list[bytes]:
    """Return the response on each connection."""
    with stopped(server.worker()):
        for connection in connections:
            connection.send(ask)
    return [
        timeless(connection.answer(is_head(ask)), server.port)
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
