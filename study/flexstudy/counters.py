# SPDX-License-Identifier: MIT
"""flexsc study counters: instructions per cycle, and misses per thousand instructions,
by the processor's counters, of programs natively and under flexsc run (OSDI 2010,
tables 4 and 5), of nginx and memcached beside those on libflexsc (ATC 2011, figures 10
and 6), and of the web server's models (Geneves 2012, table 2). perf counts the program's
threads in user and in kernel mode, while clients load it.

A processor has few counters, so perf counts groups of events in turn. Each group also
counts the instructions, and a figure uses the counts of one group only.
"""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from flexbench import pair, servers, table, tools
from flexbench.compare import ratio
from flexbench.runner import Plan, chosen, measure_all, progress
from flexbench.running import FLEXSC
from flexbench.samples import (
    BenchError,
    Json,
    Measurement,
    Run,
    Settings,
    by_cores,
    distinct,
)
from flexbench.servers import Module, Server, Site

from . import apache, loops, mariadb, ported, ports, programs, threaded, under_load
from .webserver import closed, subjects

BENCH = "counters"

INSTRUCTIONS, CYCLES = "instructions", "cycles"
IPC = "ipc"
USER, KERNEL = "user", "kernel"
BITS = {USER: "u", KERNEL: "k"}  # suffix of an event for each mode

# The events of each figure; the first one that perf knows is counted. Misses of level 2
# have no common name: Intel, AMD and Arm have different ones.
METRICS = {
    IPC: [CYCLES],
    "l3_mpki": ["LLC-load-misses"],
    "l2_mpki": [
        "l2_rqsts.miss",
        "l2_cache_req_stat.ic_dc_miss_in_l2",
        "l2d_cache_refill",
    ],
    "dcache_mpki": ["L1-dcache-load-misses"],
    "icache_mpki": ["L1-icache-load-misses"],
    "tlb_mpki": ["dTLB-load-misses"],
    "branch_mpki": ["branch-misses"],
}
TITLES = {
    IPC: "instructions in a cycle",
    "l3_mpki": "L3 misses",
    "l2_mpki": "L2 misses",
    "dcache_mpki": "d-cache misses",
    "icache_mpki": "i-cache misses",
    "tlb_mpki": "d-TLB misses",
    "branch_mpki": "branch misses",
}
APACHE, MARIADB, MEMCACHED, NGINX = "apache", "mariadb", "memcached", "nginx"
MODELS = "webserver"
# The load of each program.
MODES = {
    APACHE: apache.KEPT,
    MARIADB: mariadb.READ_WRITE,
    MEMCACHED: loops.KEPT,
    NGINX: "page",
    MODELS: "page",
}
# Programs that may have several cores.
SEVERAL = [APACHE, MARIADB, NGINX, MODELS]
# The models that differ only in how they wait, the first of which is the base.
WAITING = ["threads", "events", "stages", "loops"]

TRY_S, END_S = 30, 10


# perf.


def series(metric: str, mode: str) -> str:
    return f"{metric}_{mode}"


def group(event: str) -> list[str]:
    """The events of one group, which are counted at the same time."""
    return [f"{name}:{bit}" for bit in BITS.values() for name in (INSTRUCTIONS, event)]


def counts_of(text: str) -> list[tuple[str, int | None]]:
    """Events and counts in the output of perf stat -x, in the order of the command.
    None: the event isn't supported, or wasn't counted.
    """
    found: list[tuple[str, int | None]] = []
    for line in text.splitlines():
        cells = line.split(",")
        if len(cells) > 2 and re.fullmatch(r"\d+|<not \w+>", cells[0]):
            found.append((cells[2], int(cells[0]) if cells[0].isdigit() else None))
    return found


def figures(metric: str, counts: Sequence[int | None]) -> dict[str, float]:
    """The metric's value in each mode, from the counts of its group."""
    found: dict[str, float] = {}
    for index, mode in enumerate(BITS):
        instructions, count = counts[2 * index : 2 * index + 2]
        if not instructions or count is None:
            continue
        if metric != IPC:
            found[series(metric, mode)] = 1000 * count / instructions
        elif count:
            found[series(metric, mode)] = instructions / count
    return found


def figures_of(text: str, events: dict[str, str]) -> dict[str, float]:
    """All figures in the output of perf stat of the events, by their metrics."""
    counts = counts_of(text)
    wanted = [name for event in events.values() for name in group(event)]
    if [name for name, _ in counts] != wanted:
        raise BenchError("perf: " + (" ".join(text.split())[:200] or "no output"))
    found: dict[str, float] = {}
    for index, metric in enumerate(events):
        four = [count for _, count in counts[4 * index : 4 * index + 4]]
        found |= figures(metric, four)
    return found


def words(line: str) -> str:
    """A line of perf's output without a count, made readable."""
    cells = line.split(",")
    return f"{cells[2]} is {cells[0]}" if len(cells) > 2 else line


def tried(event: str) -> str:
    """Empty if perf counts the event here; otherwise perf's message."""
    command = [tools.need("perf"), "stat", "-x,", "-e", f"{event}:u", "--", "true"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TRY_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "perf is still running long after its time"
    lines = done.stderr.strip().splitlines() or ["no output"]
    if done.returncode:
        return lines[0]
    counted = any(count is not None for _, count in counts_of(done.stderr))
    return "" if counted else words(lines[0])


def available(run: Run) -> dict[str, str]:
    """The first event of each metric that can be counted here. BenchError: none can."""
    for event in (INSTRUCTIONS, CYCLES):
        if said := tried(event):
            raise BenchError(
                f"hardware counters are needed, but not available here: {said}"
            )
    found = {}
    for metric, names in METRICS.items():
        known = [name for name in names if not tried(name)]
        if known:
            found[metric] = known[0]
        else:
            run.note(f"{BENCH}: this processor doesn't count {TITLES[metric]}")
    return found


@contextmanager
def counting(
    pids: Sequence[int], events: dict[str, str], output: Path
) -> Iterator[None]:
    """Let perf count the processes' threads meanwhile, and write to the output."""
    every = ",".join(map(str, pids))
    command = [tools.need("perf"), "stat", "-x,", "-o", str(output), "-p", every]
    for event in events.values():
        command += ["-e", "{" + ",".join(group(event)) + "}"]
    perf = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        perf.send_signal(signal.SIGINT)
        try:
            perf.wait(END_S)
        except subprocess.TimeoutExpired:
            perf.kill()
            perf.wait()


# Programs.


# The process of a running variant, and a function that loads it for some seconds.
Loaded = tuple[int, Callable[[], object]]
# Variants by name. Others are compared with the first one.
Found = dict[str, Loaded]


@contextmanager
def threaded_programs(plan: Plan, name: str) -> Iterator[Found]:
    kind, mode = programs.KINDS[name].papers(), MODES[name]
    with threaded.started(plan, kind) as found:
        loops.check(found[FLEXSC])
        yield {
            variant: (
                one.pid,
                partial(under_load.round_of, plan, kind, one, mode, plan.seconds),
            )
            for variant, one in found.items()
        }


@contextmanager
def memcached(plan: Plan, name: str) -> Iterator[Found]:
    built, length = ports.memcached(plan.flexsc), {"seconds": plan.seconds}
    with ExitStack() as stack:
        found = {
            variant: stack.enter_context(ported.started(plan, built, variant))
            for variant in (ported.STOCK, ported.PORTED)
        }
        yield {
            variant: (
                one.pid,
                partial(loops.in_rounds, plan, one, loops.KEPT, dict(length)),
            )
            for variant, one in found.items()
        }


def web(plan: Plan, folder: Path, server: Server) -> Loaded:
    """A web server, which is loaded over kept connections."""
    content = (folder / "root" / pair.FILE).read_bytes()
    servers.check(plan.network, server, pair.FILE, content)
    count = plan.connections or pair.CONNECTIONS
    load = closed.WORKLOADS["page"]
    return server.pid, partial(closed.by_wrk, plan, load, server, count, plan.seconds)


@contextmanager
def nginx(plan: Plan, name: str) -> Iterator[Found]:
    """Stock nginx, nginx with the module, and flexsc serve."""
    with pair.file_of(plan.bytes) as folder, ExitStack() as stack:
        stock = Site(folder / "root")
        sites = {"stock": stock}
        sites[servers.WITH_MODULE] = Site(
            stock.root, module=Module(servers.module(plan.flexsc), 0)
        )
        every = [
            servers.nginx(plan, variant, folder / variant, site)
            for variant, site in sites.items()
        ]
        every.append(servers.flexsc(plan, stock.root, 0))
        found = {}
        for variant, one in zip([*sites, subjects.SERVE], every, strict=True):
            found[variant] = web(plan, folder, stack.enter_context(one))
        yield found


@contextmanager
def models(plan: Plan, name: str) -> Iterator[Found]:
    count = plan.connections or pair.CONNECTIONS
    with pair.file_of(plan.bytes) as folder, ExitStack() as stack:
        found = {}
        for model in WAITING:
            tuning = subjects.tunings(model, count, len(plan.cores.server))[0]
            one = subjects.started(plan, model, tuning, folder)
            found[model] = web(plan, folder, stack.enter_context(one))
        yield found


STARTED = {
    APACHE: threaded_programs,
    MARIADB: threaded_programs,
    MEMCACHED: memcached,
    NGINX: nginx,
    MODELS: models,
}


def round_of(loaded: Loaded, events: dict[str, str]) -> Json:
    pid, load = loaded
    with tempfile.NamedTemporaryFile("r", prefix="flexbench-") as output:
        with counting(servers.family(pid), events, Path(output.name)):
            load()
        found = figures_of(output.read(), events)
    return {"samples": {name: [value] for name, value in found.items()}, "counts": {}}


def variants(plan: Plan, name: str, found: Found) -> list[Settings]:
    return [
        {
            "program": name,
            "mode": MODES[name],
            "variant": variant,
            "cores": len(plan.cores.server),
            "seconds": plan.seconds,
            "network": plan.network.kind,
        }
        for variant in found
    ]


def measure_one(run: Run, plan: Plan, name: str, events: dict[str, str]) -> None:
    with STARTED[name](plan, name) as found:
        progress(f"{BENCH}: warming up {name}")
        for _, load in found.values():
            load()
        measure_all(
            *(run, plan, BENCH, variants(plan, name, found)),
            lambda s: round_of(found[str(s["variant"])], events),
        )


def parse(words: Sequence[str]) -> list[str]:
    return chosen(BENCH, words, MODES)


def parse_several(words: Sequence[str]) -> list[str]:
    for word in words:
        if word not in SEVERAL:
            known = ", ".join(SEVERAL)
            raise BenchError(f"--cores doesn't apply to {word}, only to {known}")
    return chosen(BENCH, words, SEVERAL)


def measure(run: Run, plan: Plan) -> None:
    tools.need("taskset")
    events = available(run)
    for name in (parse_several if plan.numbers else parse)(plan.words):
        try:
            measure_one(run, plan, name, events)
        except BenchError as error:
            progress("")
            run.note(f"{BENCH}: skipping {name}: {error}")


# The table.


def cell(measurement: Measurement, name: str) -> str:
    """The median of a series, which is missing if its events weren't counted."""
    there = all(name in r["samples"] for r in measurement.rounds)
    return table.number(measurement.median(name)) if there else table.NOTHING


def row(base: Measurement, other: Measurement, metric: str, mode: str) -> list[str]:
    name = series(metric, mode)
    cells = [cell(base, name), cell(other, name)]
    counted = table.NOTHING not in cells
    beside = ratio(other.series(name), base.series(name)) if counted else None
    return [f"{mode}: {TITLES[metric]}", *cells, table.ratio(beside)]


def show_pair(base: Measurement, other: Measurement) -> str:
    rows = [row(base, other, metric, mode) for mode in BITS for metric in METRICS]
    program, mode = base.settings["program"], str(base.settings["mode"])
    title = f"counters: {program}, misses in 1,000 instructions; {table.how(base)}\n"
    a, b = str(base.settings["variant"]), str(other.settings["variant"])
    return title + table.table([mode, a, b, f"{b}/{a}"], rows)


def show(run: Run) -> list[str]:
    parts = []
    for name in distinct(run.of(BENCH), "program"):
        for base, *others in by_cores(run.of(BENCH, program=name)).values():
            parts += [show_pair(base, other) for other in others]
    return parts
