# SPDX-License-Identifier: MIT
"""Servers with a thread per connection and blocking calls: natively, under flexsc run,
and compared with the same server using epoll; alternately, on the same cores.

    load        throughput and latency against the number of connections
    entries     throughput against flexsc run's limit of executing calls:
                OSDI 2010, figure 16
    idle        memory: idle.py
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from . import examples, idle, quiet, servers, sweep, table, tools
from .compare import ratio
from .examples import EPOLL
from .runner import Plan, measure_all, raw
from .running import FLEXSC, NATIVE
from .samples import BenchError, Json, Measurement, Run, Settings, distinct

BENCH = "threads"
SERIES = sweep.SERIES
LOAD, ENTRIES = "load", "entries"

MODES = {"echo": "64 bytes echoed", "http": "HTTP, a page of 1 KiB"}
MESSAGE = 64

CONNECTIONS = [1, 16, 128, 512, 2048]
QUICK_CONNECTIONS = [1, 128, 512]
TWO_CORES_CONNECTIONS = [128, 512]
QUICK_TWO_CORES_CONNECTIONS = [128]

ENTRIES_CONNECTIONS = 512
# Entries are allocated in pages of 64.
ENTRIES_OF = [64, 128, 256, 512]
QUICK_ENTRIES_OF = [64, 128, 512]


def seconds(plan: Plan) -> int:
    """Half of serve's time, because there are many variants."""
    return max(1, plan.seconds // 2)


def server_cores(plan: Plan, count: int) -> list[int]:
    return [plan.cores.measured, plan.cores.other][:count]


def client_cores(plan: Plan, server: Sequence[int]) -> list[int]:
    return [core for core in plan.cores.load if core not in server]


def settings_of(
    plan: Plan, part: str, mode: str, variant: str, connections: int, cores: int
) -> Settings:
    return {
        "part": part,
        "mode": mode,
        "variant": variant,
        "connections": connections,
        "cores": cores,
        "seconds": seconds(plan),
    }


def variants(plan: Plan, mode: str, connections: int, cores: int) -> list[Settings]:
    # The epoll server has one thread, which can't use a second core.
    names = [NATIVE, FLEXSC] + ([EPOLL] if cores == 1 else [])
    return [settings_of(plan, LOAD, mode, n, connections, cores) for n in names]


def entries_variants(plan: Plan) -> list[Settings]:
    connections = plan.connections or ENTRIES_CONNECTIONS
    natively = settings_of(plan, ENTRIES, "echo", NATIVE, connections, 1)
    flexsc = settings_of(plan, ENTRIES, "echo", FLEXSC, connections, 1)
    counts = QUICK_ENTRIES_OF if plan.quick else ENTRIES_OF
    return [
        {**natively, "entries": 0},
        *({**flexsc, "entries": count} for count in counts),
        {**flexsc, "entries": 0},
    ]


def load(plan: Plan, port: int, settings: Settings) -> Json:
    """The clients' results. The clients use the cores that the server doesn't."""
    cores = client_cores(plan, server_cores(plan, int(settings["cores"])))
    args: Settings = {
        "port": port,
        "mode": settings["mode"],
        "connections": settings["connections"],
        "seconds": settings["seconds"],
        "bytes": MESSAGE,
        "threads": len(cores),
        # An idle client occupies an entry. With few entries, all would soon be occupied
        # by greeted clients, and no further client would be greeted.
        "greet": int(settings["part"] != ENTRIES or settings["variant"] == NATIVE),
    }
    return raw(plan.flexsc, "load", args, servers.pinned(servers.listed(cores), []))


def once(plan: Plan, settings: Settings) -> Json:
    """Measure with a new server, so that variants don't affect each other."""
    mode, variant = str(settings["mode"]), str(settings["variant"])
    entries = int(settings.get("entries", 0))
    args = examples.command(plan, mode, variant, entries)
    name = f"{variant} {mode}, {settings['connections']} connections"
    if entries:
        name += f", {entries} entries"
    cores = servers.listed(server_cores(plan, int(settings["cores"])))
    with examples.started(name, cores, args) as program:
        before, begin = quiet.clock_s(program.pid), time.monotonic()
        try:
            found = load(plan, program.port, settings)
        except BenchError as error:
            raise program.error(error) from error
        program.check()
        busy = quiet.clock_s(program.pid) - before
        found["samples"]["busy_percent"] = [100 * busy / (time.monotonic() - begin)]
    return found


def measure_load(run: Run, plan: Plan, counts: Sequence[int], cores: int) -> None:
    for mode in MODES:
        for connections in [plan.connections] if plan.connections else counts:
            every = variants(plan, mode, connections, cores)
            measure_all(run, plan, BENCH, every, lambda s: once(plan, s))


def measure(run: Run, plan: Plan) -> None:
    tools.need("taskset")
    quick = plan.quick
    measure_load(run, plan, QUICK_CONNECTIONS if quick else CONNECTIONS, 1)
    if len(client_cores(plan, server_cores(plan, 2))) >= 2:
        counts = QUICK_TWO_CORES_CONNECTIONS if quick else TWO_CORES_CONNECTIONS
        measure_load(run, plan, counts, 2)
    else:
        run.note("threads: a server on two cores takes four of them")
    measure_all(run, plan, BENCH, entries_variants(plan), lambda s: once(plan, s))
    idle.measure(run, plan, BENCH)


# Tables.


def show_load(found: list[Measurement]) -> list[str]:
    names = [n for n in (NATIVE, FLEXSC, EPOLL) if n in distinct(found, "variant")]
    if len(names) < 2:
        return []
    rows = sweep.by_connections(found)
    first = found[0]
    where = "one core" if first.settings["cores"] == 1 else "two cores"
    what = f"threads: {MODES[str(first.settings['mode'])]}, server on {where}"
    rounds = f"{len(first.rounds)} rounds of {first.settings['seconds']} s"
    return [
        f"{what}: requests a second; {rounds}\n{sweep.throughput(rows, names)}",
        f"{what}: latency, us\n{sweep.latency(rows, names, NATIVE)}",
    ]


def show_entries(found: list[Measurement]) -> list[str]:
    natively = next((m for m in found if m.settings["variant"] == NATIVE), None)
    if not found:
        return []
    rows = []
    for m in found:
        entries = m.settings["entries"] or "no limit"
        name = NATIVE if m is natively else str(entries)
        beside = ratio_of(m, natively) if natively and m is not natively else ""
        p99 = table.number(m.median("p99_us"))
        rows.append([name, table.number(m.median(SERIES)), beside, p99])
    head = ["entries", "requests/s", "flexsc/native", "p99, us"]
    connections = found[0].settings["connections"]
    return [
        f"threads: 64 bytes echoed, {connections} connections, by the calls that may\n"
        "execute at once (figure 16); entries come in pages of 64\n"
        + table.table(head, rows)
    ]


def ratio_of(a: Measurement, b: Measurement) -> str:
    return table.ratio(ratio(a.series(SERIES), b.series(SERIES)))


def show(run: Run) -> list[str]:
    parts = []
    for cores in (1, 2):
        for mode in MODES:
            parts += show_load(run.of(BENCH, part=LOAD, mode=mode, cores=cores))
    parts += show_entries(run.of(BENCH, part=ENTRIES))
    return parts + idle.show(run.of(BENCH, part=idle.PART))
