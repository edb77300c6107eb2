# SPDX-License-Identifier: MIT
"""The memory that idle connections take, with a thread each, natively and under flexsc
run. Each has sent one message and received it back, then waits.
"""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from . import examples, table
from .compare import Interval, ratio
from .runner import DISTURBED, Plan, measure_all
from .running import FLEXSC, NATIVE, Program
from .samples import BenchError, Json, Measurement, Run, Settings

PART = "idle"

CONNECTIONS = 10000
ROUNDS = 3
OTHER_FDS = 200
PATIENCE_S = 5
SETTLE_S = 0.5
MESSAGE = b"idle"

ROWS = [
    ("resident, bytes a connection", "rss_bytes"),
    ("kernel, bytes a connection", "kernel_bytes"),
    ("threads", "threads"),
]


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    """Allow this process and the programs that it starts "count" descriptors in the
    with-block.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = count + OTHER_FDS
    if hard != resource.RLIM_INFINITY and hard < need:
        raise BenchError(
            f"{count:,} connections need {need:,} descriptors, but only {hard:,} are "
            "allowed: raise ulimit -Hn"
        )
    if soft != resource.RLIM_INFINITY and soft < need:
        resource.setrlimit(resource.RLIMIT_NOFILE, (need, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def fields(path: str) -> dict[str, int]:
    """The numbers of a file with lines such as "VmRSS:  1234 kB"."""
    found = {}
    for line in Path(path).read_text(encoding="ascii", errors="replace").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            found[name] = int(words[0])
    return found


def kernel_kib() -> int:
    """The machine's kernel memory that grows with threads and sockets."""
    found = fields("/proc/meminfo")
    return sum(found[name] for name in ("KernelStack", "PageTables", "Slab"))


def exchange(client: socket.socket) -> None:
    client.sendall(MESSAGE)
    found = b""
    while len(found) < len(MESSAGE):
        more = client.recv(len(MESSAGE) - len(found))
        if not more:
            raise OSError("the server closed a connection")
        found += more
    if found != MESSAGE:
        raise OSError("the server's answer differs from what was sent")


def opened(stack: ExitStack, address: str, port: int) -> socket.socket:
    client = stack.enter_context(socket.socket())
    client.settimeout(PATIENCE_S)
    client.connect((address, port))
    return client


def connect(stack: ExitStack, port: int) -> socket.socket:
    client = opened(stack, "127.0.0.1", port)
    exchange(client)
    return client


def weigh(program: Program, count: int) -> Json:
    status = f"/proc/{program.pid}/status"
    with ExitStack() as stack:
        clients: list[socket.socket] = []
        try:
            connect(stack, program.port)
            before, kernel = fields(status), kernel_kib()
            clients += (connect(stack, program.port) for _ in range(count))
            time.sleep(SETTLE_S)
            after, grown = fields(status), kernel_kib() - kernel
            for client in clients:
                exchange(client)
        except OSError as error:
            raise program.error(f"of {count:,} idle connections: {error}") from error
    return {
        "samples": {
            "rss_bytes": [1024 * (after["VmRSS"] - before["VmRSS"]) / count],
            "kernel_bytes": [1024 * grown / count],
            "threads": [after["Threads"]],
            DISTURBED: [0.0],  # other processes don't disturb a measurement of memory
        },
        "counts": {},
    }


def measure(run: Run, plan: Plan, bench: str) -> None:
    count = plan.connections or CONNECTIONS
    core = str(plan.cores.measured)

    def once(settings: Settings) -> Json:
        variant = str(settings["variant"])
        args = examples.command(plan, "echo", variant)
        with examples.started(variant, core, args) as program:
            found = weigh(program, count)
            program.check()
            return found

    with descriptors(count):
        variants: list[Settings] = [
            {"part": PART, "variant": variant, "connections": count}
            for variant in (NATIVE, FLEXSC)
        ]
        few = replace(plan, rounds=min(plan.rounds, ROUNDS))
        measure_all(run, few, bench, variants, once)


def compared(a: Measurement, b: Measurement, series: str) -> Interval | None:
    """With few connections, the difference for the whole machine may be negative."""
    values = a.series(series), b.series(series)
    if min(*values[0], *values[1]) <= 0:
        return None
    return ratio(*values)


def show(found: list[Measurement]) -> list[str]:
    by_name = {str(m.settings["variant"]): m for m in found}
    native, flexsc = by_name.get(NATIVE), by_name.get(FLEXSC)
    if not native or not flexsc:
        return []
    rows = []
    for title, series in ROWS:
        cells = [table.number(m.median(series)) for m in (native, flexsc)]
        rows.append(
            [
                title,
                *cells,
                table.ratio(compared(flexsc, native, series)),
            ]
        )
    head = ["memory", NATIVE, FLEXSC, "flexsc/native"]
    return [
        f"threads: {native.settings['connections']:,} idle connections\n"
        + table.table(head, rows)
    ]
