# SPDX-License-Identifier: MIT
"""What clients cost that are connected and silent: the workload page, beside 10,000
connections on each of which one request was answered, and beside none. A server lives
for one round, so that few of these connections are there at a time.
"""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from flexbench import idle, pair, servers, table, tools
from flexbench.compare import Interval, ratio
from flexbench.network import visit
from flexbench.runner import Plan, measure_all
from flexbench.samples import BenchError, Json, Measurement, Run, Settings
from flexbench.servers import Server

from . import closed, subjects
from .tuning import SERIES, TUNE_S, Tuner

IDLE = "idle"
BENCH = "study-idle"
CONNECTIONS = 10_000
# A client may take two descriptors, as flexsc serve counts; and so many clients may be
# there beside the silent ones.
EACH, OTHERS = 2, 500
ROUNDS, QUICK_ROUNDS = 3, 1
SECONDS, QUICK_SECONDS = 2, 1

REQUEST = f"GET /{pair.FILE} HTTP/1.1\r\nHost: idle\r\n\r\n".encode()
# Options of models and of flexsc serve: seconds that a client may be silent.
PATIENCE = ["--timeout", "3600"]


# Clients that are silent.


def ask(client: socket.socket, size: int) -> None:
    """One request, and all of its answer, whose body has that size."""
    client.sendall(REQUEST)
    found, missing = b"", 1
    while missing > 0:
        more = client.recv(65536)
        if not more:
            raise OSError("closed by the server")
        found += more
        head, end, body = found.partition(b"\r\n\r\n")
        missing = size - len(body) if end else 1
    if not found.startswith(b"HTTP/1.1 200 ") or missing < 0:
        raise OSError("the answer isn't the file")


def is_open(client: socket.socket) -> bool:
    """Is a client that is silent still connected?"""
    client.setblocking(False)
    try:
        return bool(client.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False


@contextmanager
def silent(plan: Plan, server: Server, count: int) -> Iterator[None]:
    """So many clients are connected in the with-block."""
    port = urlsplit(server.url).port or 80
    with ExitStack() as stack:
        clients: list[socket.socket] = []
        try:
            with visit(plan.network.client):
                for _ in range(count):
                    client = idle.opened(stack, plan.network.address, port)
                    ask(client, plan.bytes)
                    clients.append(client)
        except OSError as error:
            reason = f"silent connection {len(clients) + 1:,}: {error}"
            raise BenchError(f"{server.name}: {reason}") from error
        yield
        lost = sum(not is_open(client) for client in clients)
        if lost:
            raise BenchError(f"{server.name}: has closed {lost:,} silent connections")


def permitted() -> int:
    """How many silent connections descriptors permit, of those that are wanted."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = hard == resource.RLIM_INFINITY
    many = CONNECTIONS if endless else hard // EACH - OTHERS
    return max(0, min(CONNECTIONS, many))


# Measuring.


def tuning(run: Run, plan: Plan, folder: Path, name: str, count: int) -> list[str]:
    page = closed.WORKLOADS["page"]

    def short(server: Server) -> dict[str, list[float]]:
        return dict(closed.by_wrk(plan, page, server, pair.CONNECTIONS, TUNE_S))

    def options(name: str) -> Sequence[str]:
        return () if name == subjects.NGINX else PATIENCE

    connections = count + pair.CONNECTIONS
    return Tuner(run, plan, folder, IDLE, connections, short, options).best(name)


def once(plan: Plan, folder: Path, settings: Settings) -> Json:
    name, words = str(settings["model"]), str(settings["tuning"]).split()
    content = (folder / "root" / pair.FILE).read_bytes()
    page = closed.WORKLOADS["page"]
    with subjects.started(plan, name, words, folder) as server:
        servers.check(plan.network, server, pair.FILE, content)
        with silent(plan, server, int(settings["idle"])):
            return closed.round_of(plan, page, server, pair.CONNECTIONS, plan.seconds)


def shortened(plan: Plan) -> Plan:
    rounds = plan.asked_rounds or (QUICK_ROUNDS if plan.quick else ROUNDS)
    seconds = plan.asked_seconds or (QUICK_SECONDS if plan.quick else SECONDS)
    return replace(plan, rounds=rounds, seconds=seconds)


def measure(run: Run, plan: Plan, workload: str, names: Sequence[str]) -> None:
    for program in ("wrk", "taskset"):
        tools.need(program)
    plan, count = shortened(plan), permitted()
    if not count:
        raise BenchError("too few descriptors are allowed (ulimit -Hn)")
    with pair.file_of(plan.bytes) as folder, idle.descriptors(count):
        variants: list[Settings] = [
            {
                "workload": workload,
                "connections": pair.CONNECTIONS,
                "idle": silent_ones,
                "bytes": plan.bytes,
                "model": name,
                "tuning": " ".join(tuning(run, plan, folder, name, count)),
                "cores": 1,
                "seconds": plan.seconds,
                "network": plan.network.kind,
            }
            for name in names
            for silent_ones in (0, count)
        ]
        measure_all(run, plan, BENCH, variants, lambda s: once(plan, folder, s))


# The table.


def compared(
    none: Measurement, many: Measurement | None, series: str
) -> Interval | None:
    return ratio(many.series(series), none.series(series)) if many else None


def row(none: Measurement, many: Measurement | None) -> list[str]:
    """Requests and processor time: beside none, beside many, and their ratio."""
    cells = [str(none.settings["model"])]
    for series, show in ((SERIES, table.rate), ("cpu_us", as_number)):
        cells.append(show(none, series))
        cells.append(show(many, series) if many else table.NOTHING)
        cells.append(table.ratio(compared(none, many, series)))
    return cells


def as_number(measurement: Measurement, series: str) -> str:
    return table.number(measurement.median(series))


def show(run: Run) -> list[str]:
    beside_none = run.of(BENCH, idle=0)
    if not beside_none:
        return []
    beside_many = {
        m.settings["model"]: m for m in run.of(BENCH) if m.settings["idle"] != 0
    }
    count = next((m.settings["idle"] for m in beside_many.values()), 0)
    rows = [row(m, beside_many.get(m.settings["model"])) for m in beside_none]
    head = ["model", "requests/s", "with idle", "ratio", "us/request", "with idle"]
    first = beside_none[0]
    title = (
        f"study idle: {first.settings['connections']} kept connections, beside none "
        f"and beside {count:,} that are silent"
    )
    if count != CONNECTIONS:
        title += f" ({CONNECTIONS:,} aren't permitted: ulimit -Hn)"
    text = table.table([*head, "ratio"], rows)
    return [f"{title}; {table.how(first)}\n{table.explained(text)}"]
