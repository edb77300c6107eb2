# SPDX-License-Identifier: MIT
"""How an nginx with the module handles the first bytes of a new connection.

The module receives from a connection when it is accepted. Stock nginx, which waits
for an event first, is the oracle. Clients of both do the same, get the same bytes,
and cause the same lines in the logs.

The worker is stopped while all clients connect and send their first bytes, so these
have arrived when a connection is accepted. A client's later steps follow when the
worker has handled the earlier ones.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fixtures import PATIENCE, eventually, works
from nginxes import Which, installed_one, stopped
from programs import Program, answers, at_once, children, free_port, started

BUFFER = 1024  # size of the first receive

CONFIGURATION = """
{load}
user {user};
worker_processes 1;
daemon off;
pid {root}/pid;
error_log {root}/errors info;
events {{ worker_connections 512; {events} }}
http {{
	{on}
	sendfile on;
	tcp_nopush on;
	types {{ }}
	log_format test '$server_port $status $body_bytes_sent $request_length'
		' $connection_requests $pipe $request_completion "$request"';
	log_format unsized '$server_port $status $request_completion "$request"';
	access_log {root}/access test;
	client_header_buffer_size 1k;
	large_client_header_buffers 2 2k;
	client_header_timeout 15s;
	client_body_timeout 15s;
	keepalive_timeout 15s;
	lingering_timeout 5s;
	proxy_read_timeout 15s;
	proxy_request_buffering off;
	limit_req_zone $request_uri zone=often:1m rate=5r/s;
	limit_req_zone $request_uri zone=rarely:1m rate=1r/m;
	client_body_temp_path {root}/t1;
	proxy_temp_path {root}/t2;
	fastcgi_temp_path {root}/t3;
	uwsgi_temp_path {root}/t4;
	scgi_temp_path {root}/t5;
	ssl_certificate {shared}/cert;
	ssl_certificate_key {shared}/key;
	server {{
		listen 127.0.0.1:{plain};
		listen 127.0.0.1:{proxied} proxy_protocol;
		listen 127.0.0.1:{http2} http2;
		listen 127.0.0.1:{tls} ssl;
		listen 127.0.0.1:{tls_proxied} ssl proxy_protocol;
		listen 127.0.0.1:{deferred} deferred;
		root {shared}/files;
		location /body {{
			client_body_buffer_size 2k;
			add_header X-Body $request_body;
			proxy_pass http://127.0.0.1:{inner};
		}}
		location /peer {{ return 200 "$proxy_protocol_addr"; }}
		location /word {{ return 200 "a word"; }}
		location /silent {{ proxy_pass http://127.0.0.1:{silent}; }}
		location /unheard {{
			proxy_ignore_client_abort on;
			proxy_pass http://127.0.0.1:{silent};
		}}
		location /late {{
			limit_req zone=often burst=9;
			alias {shared}/files/;
		}}
		location /later {{
			limit_req zone=rarely burst=9;
			alias {shared}/files/;
		}}
		location /huge {{
			access_log {root}/access unsized;
			alias {shared}/files/huge;
		}}
		location /fence {{
			access_log off;
			proxy_pass http://127.0.0.1:{inner};
		}}
	}}
	server {{
		listen 127.0.0.1:{tiny};
		client_header_buffer_size 1;
		root {shared}/files;
	}}
	server {{
		listen 127.0.0.1:{inner};
		access_log off;
		location / {{ return 200 "$request_length $content_length"; }}
	}}
}}
"""

LISTENERS = "plain proxied http2 tls tls_proxied deferred inner tiny".split()
HUGE = 16 << 20


class Nginx(Program):
    """An nginx with one worker, with or without the module."""

    def __init__(
        self, root: Path, shared: Path, which: Which, load: bool, events: str
    ) -> None:
        root.mkdir(mode=0o755)
        self.root = root
        # A server whose kernel accepts connections, and that never answers.
        self.silent = socket.create_server(("127.0.0.1", 0), backlog=64)
        ports: set[int] = set()
        while len(ports) < len(LISTENERS):
            ports.add(free_port())
        self.ports = dict(zip(LISTENERS, sorted(ports), strict=True))
        text = CONFIGURATION.format(
            load=f"load_module {which.module};" if load else "",
            on="flexsc on;" if load else "",
            user="nobody nogroup" if os.geteuid() == 0 else "nobody",
            events=events,
            root=root,
            shared=shared,
            silent=self.silent.getsockname()[1],
            **self.ports,
        )
        (root / "nginx.conf").write_text(text)
        argv = [which.program, "-c", f"{root}/nginx.conf", "-e", f"{root}/errors"]
        super().__init__("native", argv, root / "out")
        self.wait_until(lambda: bool(children(self.process.pid)))
        self.wait_until(lambda: answers(self.ports["plain"]))
        self.worker = children(self.process.pid)[0]

    def end(self) -> None:
        super().end()
        self.silent.close()

    def fence(self) -> None:
        """Wait until the worker has handled all earlier events."""
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", self.ports["plain"])) as peer:
                peer.settimeout(PATIENCE)
                peer.sendall(b"GET /fence HTTP/1.0\r\n\r\n")
                while peer.recv(4096):
                    pass

    def nameless(self, text: str) -> str:
        """Replace the numbers in which two servers differ."""
        ports = {**self.ports, "silent": self.silent.getsockname()[1]}
        for name, port in ports.items():
            text = re.sub(rf"\b{port}\b", name, text)
        return re.sub(r"excess: [\d.]+", "excess", text)

    def logged(self) -> Counter[str]:
        lines = self.nameless((self.root / "access").read_text()).splitlines()
        for line in self.nameless((self.root / "errors").read_text()).splitlines():
            # The text behind the time, the process and the connection.
            found = re.search(r"\[(\w+)\] \d+#\d+: \*\d+ (.*)", line)
            if found:
                lines.append(" ".join(found.groups()))
        return Counter(lines)


@dataclass
class Case:
    """A client's steps: bytes are sent, and words stand for other actions."""

    name: str
    port: str
    first: list[bytes | str]
    later: list[bytes | str] = field(default_factory=list)
    tls: bool = False


def request(target: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: test", *headers, "", ""]
    return "\r\n".join(lines).encode()


def last(target: str, *headers: str, method: str = "GET") -> bytes:
    return request(target, *headers, "Connection: close", method=method)


def long(target: str, size: int) -> bytes:
    """A request of this many bytes."""
    bare = last(target, "X: ")
    return bare.replace(b"X: ", b"X: " + b"x" * (size - len(bare)))


def post(target: str, size: int, sent: int | None = None) -> bytes:
    head = last(target, f"Content-Length: {size}", method="POST")
    return head + (b"0123456789" * (size // 10 + 1))[: size if sent is None else sent]


CHUNKS = b"a\r\n0123456789\r\n" * 130 + b"0\r\n\r\n"
CHUNKED = last("/body/chunked", "Transfer-Encoding: chunked", method="POST")
PROXY = b"PROXY TCP4 192.0.2.1 192.0.2.2 1111 2222\r\n"
# The preface, empty settings, and "GET /word" on stream 1; then a ping, and the end.
GET = b"\x82\x86\x04\x05/word\x41\x04test"
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
HTTP2_GET = struct.pack(">I", len(GET))[1:] + b"\x01\x05\0\0\0\1" + GET
HTTP2_PING = b"\0\0\x08\x06\0\0\0\0\0" + b"12345678"

CASES = [
    Case("nothing", "plain", []),
    Case("its end", "plain", ["end"]),
    Case("a reset", "plain", ["reset"]),
    Case("garbage", "plain", [b"\x16\x03\x01 what?\r\n\r\n"]),
    Case("a file", "plain", [last("/small?1")]),
    Case("a file, kept", "plain", [request("/small?2")], [last("/small?3")]),
    Case("a file, kept, end", "plain", [request("/small?4")], ["end"]),
    Case("a file and its end", "plain", [last("/small?5"), "end"]),
    Case("a word and its end", "plain", [last("/word?6"), "end"]),
    Case("a word, kept, and its end", "plain", [request("/word?7"), "end"]),
    Case("a part", "plain", [b"GET /small?8"]),
    Case("two parts", "plain", [b"GET /small?9"], [b" HTTP/1.0\r\n\r\n"]),
    Case("a part and its end", "plain", [b"GET /small?10", "end"]),
    Case("pipelined", "plain", [request("/small?11") * 40 + last("/word?12")]),
    Case("too long", "plain", [long("/small?13", 6000)]),
    Case("a long name", "plain", [b"GET /" + b"x" * 6000 + b" HTTP/1.1\r\n\r\n"]),
    Case("huge", "plain", [last("/huge?14")], ["wait"]),
    Case("huge and its end", "plain", [last("/huge?15"), "end"], ["wait"]),
    Case("huge, its end later", "plain", [last("/huge?16")], ["end", "wait"]),
    Case("huge, a reset later", "plain", [last("/huge?17")], ["reset"]),
    Case("unread", "plain", [post("/small?18", 3000)]),
    Case("unread, more", "plain", [post("/small?19", 3000, 900)], [b"x" * 2100]),
    Case("body", "plain", [post("/body?20", 1280)]),
    Case("body, part", "plain", [post("/body?21", 1280, 1000)], [b"x" * 280]),
    Case("body, large", "plain", [post("/body?22", 50000)]),
    Case("body, never", "plain", [post("/body?23", 1280, 1000)]),
    Case("body, end", "plain", [post("/body?24", 1280, 1000), "end"]),
    Case("body, chunks", "plain", [CHUNKED + CHUNKS]),
    Case("body, 2 chunks", "plain", [CHUNKED + CHUNKS[:99]], [CHUNKS[99:]]),
    Case("silent", "plain", [last("/silent?25")]),
    Case("silent, end", "plain", [last("/silent?26"), "end"]),
    Case("silent, end later", "plain", [last("/silent?27")], ["end"]),
    Case("silent, reset", "plain", [last("/silent?28")], ["reset"]),
    Case("silent, more", "plain", [last("/silent?29")], [b"more"]),
    Case("unheard, end", "plain", [last("/unheard?30")], ["end"]),
    Case("late", "plain", [last("/late/small?31")]),
    Case("late again", "plain", [last("/late/small?31")]),
    # The first request is answered. The others would wait for a minute, and leave
    # before.
    Case("later", "plain", [last("/later/small?31")]),
    Case("later, gone", "plain", [last("/later/small?31")], ["end"]),
    Case("later and gone", "plain", [last("/later/small?31"), "end"]),
    Case("tiny", "tiny", [last("/small?32")]),
    Case("tiny, part", "tiny", [b"G"], [b"ET /small?33 HTTP/1.0\r\n\r\n"]),
    Case("tiny, body", "tiny", [post("/small?34", 100)]),
    Case("tiny, end", "tiny", [last("/small?35"), "end"]),
    Case("deferred", "deferred", [last("/small?36")]),
    Case("deferred, kept", "deferred", [request("/word?37")], [last("/small?38")]),
    Case("proxied", "proxied", [PROXY + last("/peer?39")]),
    Case("proxied, then", "proxied", [PROXY], [last("/peer?40")]),
    Case("proxied, part", "proxied", [PROXY[:20]], [PROXY[20:]]),
    Case("proxied, nothing", "proxied", []),
    Case("proxied, only", "proxied", [PROXY]),
    Case("proxied, end", "proxied", [PROXY, "end"]),
    Case("proxied, not", "proxied", [last("/peer?41")]),
    Case("proxied, body", "proxied", [PROXY + post("/body?42", 1280)]),
    Case("http2", "http2", [HTTP2 + HTTP2_GET + HTTP2_PING], ["end"]),
    Case("http2, then", "http2", [HTTP2], [HTTP2_GET, HTTP2_PING, "end"]),
    Case("http2, part", "http2", [HTTP2[:9]], [HTTP2[9:] + HTTP2_GET, "end"]),
    Case("http2, not", "http2", [last("/word?43")]),
    Case("http2, end", "http2", [HTTP2 + HTTP2_GET, "end"]),
    Case("http2, nothing", "http2", []),
    Case("tls", "tls", [last("/small?44")], tls=True),
    Case("tls, body", "tls", [post("/body?45", 1280)], tls=True),
    Case("tls, not", "tls", [last("/small?46")]),
    Case("tls, garbage", "tls", [b"\x16garbage\r\n\r\n" * 9]),
    Case("tls, nothing", "tls", []),
    Case("tls, end", "tls", ["end"]),
    Case("tls, reset", "tls", ["reset"]),
    Case("tls, proxied", "tls_proxied", [PROXY, last("/peer?47")], tls=True),
    Case(
        "tls, proxied, body", "tls_proxied", [PROXY, post("/body?48", 1280)], tls=True
    ),
    Case("tls, proxied, nothing", "tls_proxied", []),
    Case("tls, proxied, only", "tls_proxied", [PROXY]),
    Case("tls, proxied, not", "tls_proxied", [last("/peer?49")]),
]
for size in (BUFFER - 1, BUFFER, BUFFER + 1, 2 * BUFFER):
    for target in ("small", "word", "silent", "none"):
        CASES += [
            Case(f"{size}", "plain", [long(f"/{target}?{size}", size)]),
            Case(f"{size}, end", "plain", [long(f"/{target}?{size}", size), "end"]),
        ]


class Client:
    """A connection that carries out a case."""

    def __init__(self, server: Nginx, case: Case) -> None:
        self.server = server
        self.case = case
        self.got = b""
        self.how = "whole"
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE)
        if "/huge" in str(case.first):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.socket.connect(("127.0.0.1", server.ports[case.port]))
        if case.tls:
            self.begin_tls()
        else:
            for step in case.first:
                self.do(step)

    def begin_tls(self) -> None:
        """Send what a client can send before the server answers."""
        *before, self.inside = self.case.first
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing)
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        assert all(isinstance(step, bytes) for step in before)
        self.do(b"".join([*before, self.outgoing.read()]))  # type: ignore[list-item]

    def do(self, step: bytes | str) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, OSError):
            if isinstance(step, bytes):
                self.socket.sendall(step)
            elif step == "end":
                self.socket.shutdown(socket.SHUT_WR)
            elif step == "reset":
                now = struct.pack("ii", 1, 0)
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
                self.socket.close()

    def converse(self) -> None:
        """The rest of a conversation over TLS."""
        done = False
        while True:
            try:
                if not done:
                    self.tls.do_handshake()
                    assert isinstance(self.inside, bytes)
                    self.tls.write(self.inside)
                    done = True
                data = self.tls.read(65536)
                if not data:
                    return
                self.got += data
            except ssl.SSLWantReadError:
                self.socket.sendall(self.outgoing.read())
                data = self.socket.recv(65536)
                if data:
                    self.incoming.write(data)
                else:
                    self.incoming.write_eof()
            except ssl.SSLEOFError:
                return

    def finish(self) -> None:
        try:
            if self.case.tls:
                self.converse()
            else:
                while data := self.socket.recv(1 << 20):
                    self.got += data
        except ConnectionResetError:
            self.how = "reset"
        except OSError as error:
            self.how = "closed" if self.socket.fileno() < 0 else str(error)
        self.socket.close()

    def outcome(self) -> object:
        if "/huge" in str(self.case.first):
            return len(self.got) > HUGE
        if self.case.port == "http2" and self.got[:4] != b"HTTP":
            return list(frames(self.got))
        text = re.sub(rb"\r\nDate: [^\r]*", b"", self.got)
        return self.server.nameless(text.decode("latin-1")), self.how


def frames(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the types, flags, and uncompressed contents of HTTP/2 frames."""
    while data:
        size = int.from_bytes(data[:3], "big")
        kind, flags = data[3], data[4]
        yield kind, flags, b"" if kind == 1 else data[9 : 9 + size]
        data = data[9 + size :]


def carried_out(server: Nginx) -> list[object]:
    with stopped(server.worker):
        clients = [Client(server, case) for case in CASES]
    threads = [threading.Thread(target=client.finish) for client in clients]
    for client, thread in zip(clients, threads, strict=True):
        if client.case.tls:
            thread.start()
    for i in range(max(len(case.later) for case in CASES)):
        server.fence()
        for client in clients:
            if i < len(client.case.later):
                client.do(client.case.later[i])
    server.fence()
    for client, thread in zip(clients, threads, strict=True):
        if not client.case.tls:
            thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return [client.outcome() for client in clients]


@pytest.fixture(scope="module")
def shared(shared: Path) -> Path:
    with (shared / "files/huge").open("wb") as file:
        file.truncate(HUGE)
    return shared


EVENTS = ["multi_accept on;", "", "accept_mutex on; multi_accept on;"]


def test_first_bytes_are_received_as_by_nginx(shared: Path) -> None:
    which = installed_one()
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(
                started(Nginx(shared / f"{name}{i}", shared, which, load, events))
            )
            for i, events in enumerate(EVENTS)
            for name, load in (("stock", False), ("module", True))
        ]
        if "without io_uring" in (shared / "module0/errors").read_text():
            assert not works("uring")
            pytest.skip("io_uring doesn't work here")
        outcomes: dict[Nginx, list[object]] = {}

        def run(i: int) -> None:
            outcomes[servers[i]] = carried_out(servers[i])

        at_once(len(servers), run, 4 * PATIENCE)
        for stock, module in zip(servers[::2], servers[1::2], strict=True):
            assert different(outcomes[stock], outcomes[module]) == ""
            assert eventually(lambda: unlike(stock, module) == []), unlike(
                stock, module
            )
        for server in servers:
            server.send(signal.SIGQUIT)
            assert server.wait() == 0


def different(theirs: list[object], ours: list[object]) -> str:
    return "\n".join(
        f"{case.name}:\n  {one}\n  {other}"
        for case, one, other in zip(CASES, theirs, ours, strict=True)
        if one != other
    )


def unlike(stock: Nginx, module: Nginx) -> list[str]:
    """Return the lines that only one of them has logged."""
    theirs, ours = stock.logged(), module.logged()
    return [f"stock: {line}" for line in theirs - ours] + [
        f"module: {line}" for line in ours - theirs
    ]
