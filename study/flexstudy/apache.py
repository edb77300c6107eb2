# SPDX-License-Identifier: MIT
"""Apache with one child, which serves a static page. With mpm_event, Debian's default, a
listener hands requests to threads. With mpm_worker a thread serves each connection.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from flexbench import clients, servers, sweep, tools
from flexbench.runner import Plan
from flexbench.running import Program
from flexbench.samples import BenchError
from flexbench.servers import Place, Server
from flexbench.tools import Load

from .threaded import Kind, Variant, variants

# Threads beyond one per connection: when wrk closes a connection and makes another one,
# the first one may still occupy a thread.
SPARE_THREADS = 44

KEPT, CLOSED = "kept", "closed"
MODES = {
    KEPT: "connections that are kept",
    CLOSED: "a connection for each request",
}
# One thread accepts all connections while others serve existing ones. So some
# connections wait long for their first answer, which wrk counts as errors by default.
PATIENCE = ["--timeout", "10s"]
OPTIONS = {KEPT: PATIENCE, CLOSED: [*PATIENCE, "-H", "Connection: close"]}

FILE = "file.html"
PAGE = bytes(ord("a") + i % 26 for i in range(1024))

MODULES = Path("/usr/lib/apache2/modules")

# Debian's defaults, except for the needs of a measurement: all threads from the start,
# its own folders, and kept connections.
CONFIGURATION = """\
ServerRoot {folder}
ServerName localhost
Listen {address}:{port}
ListenBacklog 1024
PidFile {folder}/pid
Mutex pthread
ErrorLog {folder}/errors
LogLevel warn
LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
User {user}
Group {group}
DocumentRoot {root}
KeepAlive On
KeepAliveTimeout 15
MaxKeepAliveRequests 0
StartServers 1
ServerLimit 1
ThreadLimit {threads}
ThreadsPerChild {threads}
MinSpareThreads {threads}
MaxSpareThreads {threads}
MaxRequestWorkers {threads}
"""


def configuration(place: Place, mpm: str, root: Path, connections: int) -> str:
    if not (MODULES / f"mod_mpm_{mpm}.so").exists():
        raise BenchError(
            f"mod_mpm_{mpm}.so is missing in {MODULES}: install "
            "Debian's package apache2-bin"
        )
    privileged = os.geteuid() == 0
    return CONFIGURATION.format(
        folder=place.folder,
        mpm=mpm,
        root=root,
        address=place.address,
        port=place.port,
        modules=MODULES,
        # Apache refuses to serve as root.
        user="nobody" if privileged else f"#{os.getuid()}",
        group="nogroup" if privileged else f"#{os.getgid()}",
        threads=connections + SPARE_THREADS,
    )


def kill(pidfd: int) -> None:
    """Kill Apache's child, in case Apache left it behind."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.close(pidfd)


def prepare(plan: Plan, root: Path) -> None:
    (root / FILE).write_bytes(PAGE)


@contextmanager
def started(
    plan: Plan, variant: Variant, root: Path, folder: Path, connections: int
) -> Iterator[Program]:
    name = f"Apache ({variant.title})"
    place = servers.place(plan.network, folder)
    config = folder / "configuration"
    text = configuration(place, variant.configuration, root, connections)
    config.write_text(text, encoding="utf-8")
    command = [*variant.before(plan), tools.need("apache2")]
    command += ["-f", str(config), "-DFOREGROUND"]
    with (
        ExitStack() as last,
        (folder / "errors").open("a+", encoding="utf-8") as errors,
        servers.process(
            name,
            servers.pinned(servers.listed(plan.cores.server), command),
            stderr=errors,
        ) as process,
    ):
        server = Server("it", f"http://{place.address}:{place.port}/", process.pid)
        program = Program(name, process.pid, place.port, errors)
        try:
            servers.check(plan.network, server, FILE, PAGE)
        except BenchError as error:
            raise program.error(error) from error
        child = servers.worker_of(name, program.pid)
        last.callback(kill, os.pidfd_open(child))
        yield replace(program, pid=child)


def load(
    plan: Plan, program: Program, mode: str, connections: int, seconds: int
) -> Load:
    url = f"http://{plan.network.address}:{program.port}/{FILE}"
    command = clients.wrk(plan, connections, seconds, url, OPTIONS[mode])
    return clients.run_wrk(command, seconds)


KIND = Kind(
    title="Apache, 1 KiB",
    unit="requests",
    clients="connections",
    count=256,
    modes=MODES,
    tools=["taskset", "apache2", "wrk"],
    variants=variants(event=[], worker=[]),
    prepare=prepare,
    start=started,
    load=load,
    sweep=sweep.WEB,
    apart=True,
)
