# SPDX-License-Identifier: MIT
"""Apache with mpm_worker: one child, in which a thread serves each connection.
It serves a static page, as it is and under flexsc run, and wrk loads it.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from flexbench import clients, servers, tools
from flexbench.runner import Plan
from flexbench.running import CARRIER, FLEXSC, NATIVE, Program, way
from flexbench.samples import BenchError
from flexbench.servers import Place, Server
from flexbench.tools import Load

TOOLS = ["taskset", "apache2", "wrk"]
CONNECTIONS = 256
# A connection that wrk has closed may still have its thread when it makes the
# next one.
SPARE_THREADS = 44

KEPT, CLOSED = "kept", "closed"
MODES = {
    KEPT: "connections that are kept",
    CLOSED: "a connection for each request",
}
# One thread accepts all connections while others serve those that are there. So
# some wait long for their first answer, which wrk takes for errors by default.
PATIENCE = ["--timeout", "10s"]
OPTIONS = {KEPT: PATIENCE, CLOSED: [*PATIENCE, "-H", "Connection: close"]}

FILE = "file.html"
PAGE = bytes(ord("a") + i % 26 for i in range(1024))

MODULES = Path("/usr/lib/apache2/modules")

# Its own defaults, but for what a measurement needs: all threads from the
# beginning, places of its own, connections that are kept.
CONFIGURATION = """\
ServerRoot {folder}
ServerName localhost
Listen {address}:{port}
ListenBacklog 1024
PidFile {folder}/pid
Mutex pthread
ErrorLog {folder}/errors
LogLevel warn
LoadModule mpm_worker_module {modules}/mod_mpm_worker.so
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


def configuration(place: Place, root: Path, connections: int) -> str:
    privileged = os.geteuid() == 0
    return CONFIGURATION.format(
        folder=place.folder,
        root=root,
        address=place.address,
        port=place.port,
        modules=MODULES,
        # As root it has to become somebody else.
        user="nobody" if privileged else f"#{os.getuid()}",
        group="nogroup" if privileged else f"#{os.getgid()}",
        threads=connections + SPARE_THREADS,
    )


def kill(pidfd: int) -> None:
    """Its child, should it have left that behind."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.close(pidfd)


@contextmanager
def started(
    plan: Plan,
    variant: str,
    folder: Path,
    root: Path,
    connections: int,
    options: Sequence[str] = (),
) -> Iterator[Program]:
    """options: of flexsc run."""
    name = f"{variant} Apache"
    place = servers.place(plan.network, folder)
    config = folder / "configuration"
    text = configuration(place, root, connections)
    config.write_text(text, encoding="utf-8")
    runtime = way(plan, variant, *CARRIER, *options)
    command = [*plan.network.server, *plan.under, *runtime]
    command += [tools.need("apache2"), "-f", str(config), "-DFOREGROUND"]
    with (
        ExitStack() as last,
        (folder / "errors").open("a+", encoding="utf-8") as errors,
        servers.process(
            name, servers.pinned(plan.cores.measured, command), stderr=errors
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


@contextmanager
def several(
    plan: Plan, ways: Mapping[str, Sequence[str]], connections: int
) -> Iterator[dict[str, Program]]:
    """Apaches that run at once, by names: NATIVE, others with options of flexsc run."""
    if not (MODULES / "mod_mpm_worker.so").exists():
        raise BenchError(f"there is no mod_mpm_worker.so in {MODULES}")
    with tempfile.TemporaryDirectory(prefix="flexbench-") as name, ExitStack() as stack:
        folder = Path(name)
        # For the child, which may be somebody else.
        folder.chmod(0o755)
        root = folder / "root"
        root.mkdir()
        (root / FILE).write_bytes(PAGE)
        found = {}
        for name, options in ways.items():
            variant = NATIVE if name == NATIVE else FLEXSC
            found[name] = stack.enter_context(
                started(plan, variant, folder / name, root, connections, options)
            )
        yield found


def both(plan: Plan, connections: int) -> AbstractContextManager[dict[str, Program]]:
    return several(plan, {NATIVE: [], FLEXSC: []}, connections)


def load(
    plan: Plan, program: Program, mode: str, connections: int, seconds: int
) -> Load:
    url = f"http://{plan.network.address}:{program.port}/{FILE}"
    command = clients.wrk(plan, connections, seconds, url, OPTIONS[mode])
    return clients.run_wrk(command, seconds)
