# SPDX-License-Identifier: MIT
"""The figures of Geneves 2012: the workload specweb of the web server study, and
settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from flexbench import table
from flexbench.compare import ratio
from flexbench.samples import Measurement

from .. import counters, memory
from ..papers import Data, Point, Setting, Setup
from ..webserver import fileset
from . import chart, efficiency, study, sweeps
from .chart import Curve, Dot, Scale
from .figure import Bench, Figure, Row, State
from .runs import Runs
from .study import ANSWERS, MBIT, SPECWEB

# Each is a row of the table "Not built" in docs/explanation/results.md.
NOT_MADE = "needs counters of stalls or of the memory bus, which the bench doesn't read"

MODELS = (
    "Models are drivers of one web server, so threads stand for Knot, events for "
    "userver, and stages for WatPipe. "
)
HALVES = "At least half of the machine's physical cores are the clients'. "
ONE_CORE = study.bench(SPECWEB)
PEAKS = study.bench(SPECWEB, study.PEAK)
THROUGHPUT = ("maximum throughput", "peak throughput")


def best(found: list[Measurement]) -> Measurement:
    return max(found, key=lambda m: m.median(ANSWERS))


def told(point: Point, found: list[Measurement]) -> str:
    """Our number for a number of the paper; empty: not measured."""
    if point.quantity == "maximum throughput" and point.unit == "times":
        knot, watpipe = (study.of_model(found, n) for n in ("threads", "stages"))
        if knot and watpipe:
            beside = ratio(watpipe.series(ANSWERS), knot.series(ANSWERS))
            return f"stages {table.ratio(beside)} times threads"
    if point.unit == "Gbit/s" and point.quantity in THROUGHPUT and found:
        most = best(found)
        return f"{most.median(MBIT) / 1000:.2f} Gbit/s, {study.model(most)}"
    if point.quantity == "order":
        ordered = sorted(found, key=lambda m: -m.median(ANSWERS))
        return ", ".join(map(study.model, ordered))
    return ""


def point_rows(data: Data, found: list[Measurement]) -> list[Row]:
    """Rows for those numbers of the paper that describe a peak."""
    rows = []
    for point in data.points:
        here = told(point, found)
        reason = "" if here else "not of these measurements"
        rows.append(Row(sweeps.where(point), point, here=here, reason=reason))
    return rows


def one_core_rows(runs: Runs, data: Data) -> list[Row]:
    rows = point_rows(data, study.peaks(runs, SPECWEB))
    return rows + study.peak_rows((SPECWEB,), runs, data)


def with_most(found: list[Measurement]) -> tuple[int, list[Measurement]]:
    """The largest number of server cores, and its measurements."""
    most = max((int(m.settings["cores"]) for m in found), default=1)
    return most, [m for m in found if m.settings["cores"] == most]


def cores_rows(runs: Runs, data: Data) -> list[Row]:
    cores, found = with_most(study.all_cores(runs))
    where = f"{SPECWEB}, {table.cores(cores)}, peak"
    rows = [study.row_of(where, m, found, ANSWERS, "answers/s") for m in found]
    return point_rows(data, found) + rows


def cores_panel(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    cores, found = with_most(study.all_cores(runs, study.OFFERED))
    study.offered_curves(axes, found, SPECWEB, cores)


def scaling_rows(runs: Runs, data: Data) -> list[Row]:
    rows = point_rows(data, [])
    return rows + study.scaling_rows(runs, data)


# Table 1, and the setup.


def setting_rows(runs: Runs, data: Data) -> list[Row]:
    """The settings of the first file's machine, or of the first network that a bench
    made.
    """
    if not runs.sources:
        return []
    made = (one for one in runs.sources if one.machine.get("network"))
    machine = next(made, runs.sources[0]).machine
    recorded = "settings" in machine
    ours = {**(machine.get("settings") or {}), **(machine.get("network") or {})}
    rows = []
    for one in data.of(Setting):
        here = ours.get(one.setting) or ""
        if not recorded:
            reason = "not recorded by this file"
        else:
            reason = "" if here else "this kernel has no such setting"
        rows.append(Row(one.setting, paper=one.value, here=here, reason=reason))
    return rows


def percent_of(seconds: float, m: Measurement) -> str:
    return f"{seconds * float(m.settings['think']) / 100:g} s"


def in_memory(m: Measurement) -> str:
    reads = sum(r["counts"].get("disk_read_bytes", 0) for r in m.rounds)
    return f"{table.number(reads)} bytes were read from the disk" if reads else "yes"


OFF_PERIOD_S, ACTIVE_S = 3.0, 0.343


def setup_of(m: Measurement, kernel: str) -> dict[str, str]:
    """The parts of the paper's setup that a measurement has."""
    folders = int(m.settings["folders"])
    files = list(fileset.classes(folders))
    return {
        "files": f"{len(files):,}",
        "bytes of all files": f"{sum(f.bytes for f in files):,}",
        "popularity": "Zipf",
        "prefetched into memory": in_memory(m),
        "inactive off-period (think time)": percent_of(OFF_PERIOD_S, m),
        "active off-period": percent_of(ACTIVE_S, m),
        "injection": "partly open, sessions by a generator of our own",
        "cores tuned for": str(m.settings["cores"]),
        "runs of a server experiment": f"{len(m.rounds)} rounds by turns",
        "kernel / libc": kernel,
    }


def setup_rows(runs: Runs, data: Data) -> list[Row]:
    source = runs.has(ONE_CORE)
    assert source
    found = source.run.of(ONE_CORE.bench, **ONE_CORE.settings)[0]
    ours = setup_of(found, str(source.machine.get("kernel", "")))
    rows = []
    for one in data.of(Setup):
        here = ours.get(one.what, "")
        reason = "" if here else "not so here"
        rows.append(Row(one.what, paper=one.value, here=here, reason=reason))
    return rows


# Memory.

MEMORY = Bench(("memory",), memory.BENCH)
# The paper's names for the kinds of loads.
LOADS = {"optimised (MMX)": "vector", "standard instructions": "plain"}


def memory_rows(runs: Runs, data: Data) -> list[Row]:
    found = runs.of(memory.BENCH)
    rows = []
    for point in data.points:
        kind = LOADS[point.series]
        for m in found[1:]:
            times = table.ratio(memory.beside_one(found, m, kind))
            here = f"{times} times with {table.cores(memory.count(m))}"
            rows.append(Row(f"{sweeps.where(point)}: {kind}", point, here=here))
    return rows


def memory_panel(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    found = runs.of(memory.BENCH)
    curves = [
        Curve(
            title,
            [Dot(memory.count(m), m.median(memory.series(kind))) for m in found],
        )
        for kind, title in memory.KINDS.items()
    ]
    chart.curves(axes, curves, Scale("cores", "bytes a tick, all cores"))


FIGURES = [
    Figure(
        "geneves-t1",
        State.RECORDED,
        "the settings of the server's network, and the host's",
        differs="A bench sets those that exist per network namespace, unless the "
        "network is lo. The others belong to the host; they are recorded but not set.",
        rows=setting_rows,
    ),
    Figure(
        "geneves-setup",
        State.MEASURED,
        differs="The clients are one program on the same machine.",
        benches=[ONE_CORE],
        rows=setup_rows,
    ),
    Figure(
        "geneves-f1",
        State.MEASURED,
        differs=MODELS
        + "Sessions per second set the rate of requests, and the network is inside the "
        "machine.",
        benches=[PEAKS, ONE_CORE],
        rows=one_core_rows,
        draws=[partial(study.offered_panel, SPECWEB, 1)],
    ),
    Figure(
        "geneves-f2",
        State.MEASURED,
        differs=MODELS + HALVES,
        benches=[study.several(study.OFFERED), study.several(study.PEAK)],
        rows=cores_rows,
        draws=[cores_panel],
        cores=study.LEAST_CORES,
    ),
    Figure(
        "geneves-f4",
        State.MEASURED,
        differs=MODELS + HALVES,
        benches=[study.several(study.PEAK)],
        rows=scaling_rows,
        draws=[study.scaling_panel],
        cores=study.LEAST_CORES,
    ),
    efficiency.figure("geneves-t2", counters.MODELS),
    Figure("geneves-f3", State.COUNTERS, NOT_MADE),
    Figure("geneves-f5", State.COUNTERS, NOT_MADE),
    Figure(
        "geneves-memory",
        State.MEASURED,
        differs="The machine has fewer cores. Each core reads 256 MiB; vectors have 16 bytes.",
        benches=[MEMORY],
        rows=memory_rows,
        draws=[memory_panel],
    ),
]
