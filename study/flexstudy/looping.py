# SPDX-License-Identifier: MIT
"""Programs with an event loop. Each is started with one serving thread, on a free port
of the network, and writes only to its own folder.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from flexbench import servers, tools
from flexbench.network import Network, visit
from flexbench.runner import Plan
from flexbench.running import FLEXSC, NATIVE, Program, carriers, way
from flexbench.samples import Settings
from flexbench.servers import Place, Site

from . import questions
from .questions import Question

PAGE = bytes(ord("a") + i % 26 for i in range(1024))

# The defaults, except for the needs of a measurement: one thread, its own folders, and
# enough kept connections.

HAPROXY = """\
global
	nbthread 1
	maxconn 1000
defaults
	mode http
	timeout client 60s
frontend it
	bind {address}:{port}
	http-request return status 200 content-type text/plain string {page}
"""

NAMED = """\
options {{
	directory "{folder}";
	listen-on port {port} {{ {address}; }};
	listen-on-v6 {{ none; }};
	pid-file none;
	session-keyfile "{folder}/session.key";
	recursion no;
	dnssec-validation no;
	minimal-responses yes;
	tcp-clients 1000;
}};
controls {{ }};
zone "test" {{ type primary; file "{folder}/zone"; }};
"""
ZONE = f"""\
$TTL 60
@ IN SOA ns.test. root.test. 1 3600 600 86400 60
@ IN NS ns.test.
ns IN A 127.0.0.1
host IN A {questions.ADDRESS}
"""

UNBOUND = """\
server:
	interface: {address}@{port}
	access-control: 0.0.0.0/0 allow
	num-threads: 1
	do-daemonize: no
	use-syslog: no
	username: ""
	chroot: ""
	directory: "{folder}"
	pidfile: "{folder}/pid"
	module-config: "iterator"
	incoming-num-tcp: 1000
	local-zone: "test." static
	local-data: "{host}. 60 IN A {answer}"
remote-control:
	control-enable: no
"""

NODE = """\
const page = '{page}';
require('http').createServer((asked, answer) => {{
	asked.resume();
	answer.end(page);
}}).listen({port}, '{address}', 511);
"""


def written(place: Place, text: str) -> str:
    """Write a program's configuration to its folder. Returns the file's path."""
    path = place.folder / "configuration"
    text = text.format(
        folder=place.folder,
        address=place.address,
        port=place.port,
        page=PAGE.decode(),
        host=questions.HOST,
        answer=questions.ADDRESS,
    )
    path.write_text(text, encoding="utf-8")
    return str(path)


def nginx(place: Place) -> list[str]:
    root = place.folder / "root"
    root.mkdir()
    (root / "index.html").write_bytes(PAGE)
    return servers.nginx_arguments(place, Site(root))


def haproxy(place: Place) -> list[str]:
    return ["-db", "-q", "-f", written(place, HAPROXY)]


def redis(place: Place) -> list[str]:
    return [
        *("--bind", place.address, "--port", str(place.port)),
        *("--dir", str(place.folder), "--save", "", "--loglevel", "warning"),
        # Without a password redis answers only to loopback addresses by default.
        *("--protected-mode", "no"),
    ]


def memcached(place: Place) -> list[str]:
    return [
        *("-l", place.address, "-p", str(place.port), "-U", "0", "-t", "1"),
        *(("-u", "nobody") if os.geteuid() == 0 else ()),
    ]


def node(place: Place) -> list[str]:
    return [written(place, NODE)]


def named(place: Place) -> list[str]:
    (place.folder / "zone").write_text(ZONE, encoding="ascii")
    return ["-f", "-4", "-n", "1", "-c", written(place, NAMED)]


def unbound(place: Place) -> list[str]:
    return ["-d", "-c", written(place, UNBOUND)]


@dataclass(frozen=True)
class Kind:
    """The specific parts of a program. arrange: writes the program's files, and returns
    its arguments.
    """

    program: str
    arrange: Callable[[Place], list[str]]
    question: Question
    worker: bool = False  # the serving process is a child of the started one


KINDS = {
    "nginx": Kind("nginx", nginx, questions.http(PAGE, timed=True), worker=True),
    "haproxy": Kind("haproxy", haproxy, questions.http(PAGE, timed=False)),
    "redis": Kind("redis-server", redis, questions.REDIS),
    "memcached": Kind("memcached", memcached, questions.MEMCACHED),
    "node": Kind("node", node, questions.http(PAGE, timed=True)),
    "bind": Kind("named", named, questions.dns(udp=True)),
    "bind-tcp": Kind("named", named, questions.dns(udp=False)),
    "unbound": Kind("unbound", unbound, questions.dns(udp=True)),
    "unbound-tcp": Kind("unbound", unbound, questions.dns(udp=False)),
}


def wait(network: Network, program: Program, question: Question) -> Settings:
    until = time.monotonic() + servers.START_S
    while True:
        try:
            with visit(network.client):
                return questions.learn(question, network.address, program.port)
        except OSError as error:
            if time.monotonic() > until:
                raise program.error(f"doesn't answer: {error}") from error
            time.sleep(0.05)


@contextmanager
def started(plan: Plan, kind: Kind, variant: str, folder: Path) -> Iterator[Program]:
    name = f"{variant} {kind.program}"
    place = servers.place(plan.network, folder)
    command = [*plan.network.server, *plan.under, *way(plan, variant, *carriers(plan))]
    command += [tools.need(kind.program), *kind.arrange(place)]
    with (
        (folder / "log").open("a+", encoding="utf-8", errors="replace") as log,
        servers.process(
            name, servers.pinned(plan.cores.measured, command), log.fileno(), log
        ) as process,
    ):
        program = Program(name, process.pid, place.port, log)
        settings = wait(plan.network, program, kind.question)
        pid = servers.worker_of(name, program.pid) if kind.worker else program.pid
        yield replace(program, pid=pid, settings=settings)


@contextmanager
def both(plan: Plan, kind: Kind) -> Iterator[dict[str, Program]]:
    """The program natively and under flexsc run, by variant. Both run all the time."""
    with tempfile.TemporaryDirectory(prefix="flexbench-") as name, ExitStack() as stack:
        found = {}
        for variant in (NATIVE, FLEXSC):
            folder = Path(name) / variant
            found[variant] = stack.enter_context(started(plan, kind, variant, folder))
        yield found
