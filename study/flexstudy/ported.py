# SPDX-License-Identifier: MIT
"""memcached on libflexsc against stock memcached of the same source: ATC 2011, figure 5.
Both have one worker, run all the time on the same core, and are loaded alternately. A
third variant executes its calls on another core.

Two loads: bench --raw rounds, for the processor time and the system calls of a request
(loops.py), and bench --raw load from other cores, for the rate and the latency.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from flexbench import clients, quiet, servers, sweep, table, tools
from flexbench.idle import descriptors
from flexbench.runner import Plan, raw
from flexbench.running import Program
from flexbench.samples import Json, Measurement, Run, Settings, distinct

from . import looping, loops, ports

BENCH, LINES, NAME = "ported", "ported-lines", "memcached-port"
STOCK, PORTED, REMOTE = "stock", "ported", "remote"
TITLES = {PORTED: "on libflexsc", REMOTE: "on libflexsc, calls on another core"}

COUNTS = [1, 4, 16, 64, 256, 1024]
QUICK_COUNTS = [1, 64]
SPARE = 100  # descriptors of memcached besides its connections
SERIES = sweep.SERIES
KIND = looping.KINDS["memcached"]
# The environment of ports/memcached/flexsc.c.
CORES, POLL = "MEMCACHED_KERNEL_CORES", "MEMCACHED_POLL_US"
POLL_US = 1000


def command(plan: Plan, built: ports.Built, variant: str, folder: Path) -> list[str]:
    place = servers.place(plan.network, folder)
    source = built.stock if variant == STOCK else built.ported
    env = []
    if variant == REMOTE:
        env = ["env", f"{CORES}={plan.cores.load[0]}", f"{POLL}={POLL_US}"]
    return [
        *(*plan.network.server, *plan.under, *env, str(source / "memcached")),
        *(*looping.memcached(place), "-c", str(COUNTS[-1] + SPARE)),
    ]


def cores(plan: Plan, variant: str) -> str:
    """A thread may execute calls only on cores that the process may use."""
    found = str(plan.cores.measured)
    return f"{found},{plan.cores.load[0]}" if variant == REMOTE else found


@contextmanager
def started(plan: Plan, built: ports.Built, variant: str) -> Iterator[Program]:
    name = f"{variant} memcached"
    with ExitStack() as stack:
        within = tempfile.TemporaryDirectory(prefix="flexbench-")
        folder = Path(stack.enter_context(within))
        log = stack.enter_context((folder / "log").open("a+", encoding="utf-8"))
        words = command(plan, built, variant, folder)
        port = int(words[words.index("-p") + 1])
        pinned = servers.pinned(cores(plan, variant), words)
        process = stack.enter_context(servers.process(name, pinned, log.fileno(), log))
        program = Program(name, process.pid, port, log)
        settings = looping.wait(plan.network, program, KIND.question)
        yield replace(program, settings=settings)


def under_load(plan: Plan, program: Program) -> dict[str, list[float]]:
    """The rate and latency, by clients on other cores; with calls there, if possible not
    on the same one."""
    load = plan.cores.load[1:] or plan.cores.load
    plan = replace(plan, cores=replace(plan.cores, load=load))
    args: Settings = {
        **program.settings,
        "connections": plan.connections or 1,
        "port": program.port,
        "address": plan.network.address,
        "seconds": plan.seconds,
        "threads": len(load),
    }
    before, begin = quiet.clock_s(program.pid), time.monotonic()
    found = raw(plan.flexsc, "load", args, clients.placed(plan, []))
    busy, passed = quiet.clock_s(program.pid) - before, time.monotonic() - begin
    return {
        **{name: found["samples"][name] for name in (SERIES, "p50_us", "p99_us")},
        "busy_percent": [100 * busy / passed],
        "loaded_us": [1e6 * busy / found["counts"]["answers"]],
    }


def round_of(plan: Plan, program: Program) -> Json:
    length: Settings = {"seconds": plan.seconds}
    found = loops.in_rounds(plan, program, loops.KEPT, length)
    found["samples"] |= under_load(plan, program)
    return {"samples": found["samples"], "counts": found["counts"]}


def measure(run: Run, plan: Plan) -> None:
    tools.need("taskset")
    built = ports.memcached(plan.flexsc)
    lines = {"samples": {}, "counts": ports.changes(built)}
    run.measurements.append(Measurement(LINES, {"program": "memcached"}, [lines]))
    counts = QUICK_COUNTS if plan.quick else COUNTS
    counts = [plan.connections] if plan.connections else counts
    with descriptors(max(counts)), ExitStack() as stack:
        found = {
            variant: stack.enter_context(started(plan, built, variant))
            for variant in (STOCK, *TITLES)
        }
        for count in counts:
            one = replace(plan, connections=count)
            loops.compare_kept(run, one, BENCH, found, round_of)


ROWS = [
    ("us of the processor a request", loops.SERIES),
    ("the same, clients on another core", "loaded_us"),
    ("requests/s", SERIES),
    ("latency p50, us", "p50_us"),
    ("latency p99, us", "p99_us"),
]


def pair(run: Run, variant: str, count: int) -> tuple[Measurement, Measurement] | None:
    """The measurements of a variant and of the stock one."""
    ours = run.find(BENCH, variant=variant, connections=count)
    theirs = run.find(BENCH, variant=STOCK, connections=count)
    return (ours, theirs) if ours and theirs else None


def rows(both: tuple[Measurement, Measurement], count: int) -> list[list[str]]:
    found = table.beside(ROWS, both, *both)
    calls = [m.rounds[-1]["counts"].get(loops.CALLS) for m in both]
    found.append(["system calls a request", *map(table.number, calls), ""])
    return [[f"{count:,}: {row[0]}", *row[1:]] for row in found]


def show(run: Run) -> list[str]:
    found = run.of(BENCH)
    parts = []
    for variant, title in TITLES.items():
        lines = []
        for count in distinct(found, "connections"):
            both = pair(run, variant, count)
            lines += rows(both, count) if both else []
        if lines:
            head = ["connections", variant, STOCK, f"{variant}/{STOCK}"]
            text = table.explained(table.table(head, lines))
            how = table.how(found[0])
            parts.append(
                f"programs: memcached {title}, GET of 64 bytes;\n{how}\n{text}"
            )
    for m in run.of(LINES):
        each = ", ".join(f"{name} {n}" for name, n in m.rounds[-1]["counts"].items())
        total = sum(m.rounds[-1]["counts"].values())
        parts.append(f"programs: memcached on libflexsc: {total} lines changed: {each}")
    return parts
