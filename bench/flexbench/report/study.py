# SPDX-License-Identifier: MIT
"""The web server study: what Geneves 2012 and ATC's figure 9 stand beside, and the
figures beyond the papers.

A model's gain has a verdict where FlexSC is in one of two models that are otherwise
alike (TWINS). Other models are told beside each other without one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from .. import chart, machine, table
from ..chart import Scale, curves_of
from ..compare import ratio
from ..papers import Data, Item
from ..samples import Measurement, Settings, distinct
from ..study import subjects
from .figure import Bench, Draw, Figure, Row, State, number_pair
from .runs import Runs, gain

# The names of the study's measurements and series.
STUDY, TUNE = "study", "study-tune"
PEAK, OFFERED, IDLE = "study-peak", "study-offered", "study-idle"
BREAKDOWN, MEMORY = "study-breakdown", "study-memory"
REQUESTS = "requests_per_s"
ANSWERS, MBIT, RESPONSE = "answers_per_s", "answers_mbit_per_s", "response_{}_us"
SPECWEB, PAGES, DISK = "specweb", "pages", "disk"
TWICE, LOADED = "2", 0.8  # times the best model's peak
CLASSES = range(4)

# A model with FlexSC, and the model that it would be without.
TWINS = {
    "loops": subjects.EVENTS,
    "threads-flexsc": "threads",
    "stages-flexsc": "stages",
    subjects.SERVE: subjects.NGINX,
}
CLIENT_PERCENT = 90.0
KEEPS_UP = 0.95


def bench(workload: str, kind: str = OFFERED) -> Bench:
    return Bench(("study", workload), kind, {"workload": workload, "cores": 1})


def hollow(m: Measurement) -> bool:
    """Were the clients saturated, or was the server not busy though it didn't answer all
    that it was offered? A server of files that aren't in memory needn't be busy.
    """
    samples = m.rounds[0]["samples"]
    if "client_percent" in samples and m.median("client_percent") > CLIENT_PERCENT:
        return True
    offered = m.settings.get("offered_per_s")
    if offered and m.median(ANSWERS) >= KEEPS_UP * float(offered):
        return False
    return m.settings["workload"] != DISK and table.limited(m)


def model(m: Measurement) -> str:
    return str(m.settings["model"])


def of_model(found: Sequence[Measurement], name: str) -> Measurement | None:
    return next((m for m in found if model(m) == name), None)


def twin(m: Measurement, found: Sequence[Measurement]) -> Measurement | None:
    return of_model(found, TWINS.get(model(m), ""))


def row_of(
    where: str,
    m: Measurement,
    found: Sequence[Measurement],
    series: str,
    unit: str,
    less: bool = False,
) -> Row:
    """A model's row: beside its twin, with a verdict, or alone."""
    other = twin(m, found)
    if other is None:
        here = f"{table.number(m.median(series))} {unit}"
        return Row(f"{where}, {model(m)}", here=here)
    medians = m.median(series), other.median(series)
    here = number_pair(*medians, f"{unit}, {model(other)}")
    return Row(f"{where}, {model(m)}", here=here, ratio=gain(m, other, series, less))


# Good answers against what is offered (S1, S9).


def offered(runs: Runs, workload: str, cores: int = 1) -> list[Measurement]:
    return runs.of(OFFERED, workload=workload, cores=cores)


def peaks(runs: Runs, workload: str, cores: int = 1) -> list[Measurement]:
    return runs.of(PEAK, workload=workload, cores=cores)


def peak_rows(workloads: Sequence[str], runs: Runs, data: Data) -> list[Row]:
    rows = []
    for workload in workloads:
        found = peaks(runs, workload)
        where = f"{workload}, peak"
        rows += [row_of(where, m, found, ANSWERS, "answers/s") for m in found]
    return rows


def offered_panel(
    workload: str, cores: int, axes: Any, runs: Runs, rows: Sequence[Row]
) -> None:
    found = offered(runs, workload, cores)
    if not found:
        axes.set_axis_off()
        return
    curves = curves_of(found, "offered_per_s", ANSWERS, model, hollow)
    scale = Scale("requests a second, offered", "good answers a second", log_x=False)
    chart.curves(axes, curves, scale)
    axes.set_title(f"{workload}, {cores_of(cores)}")


def cores_of(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


# Peaks against cores (S2).

CORES = (2, 4, 8, 16)
# No command measures these: a file may have them.
SEVERAL = [Bench((), PEAK, {"workload": SPECWEB, "cores": n}) for n in CORES]


def all_cores(runs: Runs) -> list[Measurement]:
    return [m for n in (1, *CORES) for m in peaks(runs, SPECWEB, n)]


def scaling_rows(runs: Runs, data: Data) -> list[Row]:
    found = all_cores(runs)
    rows = []
    for name in distinct(found, "model"):
        mine = [m for m in found if model(m) == name]
        least = mine[0].median(ANSWERS)
        for m in mine:
            times = m.median(ANSWERS) / least
            here = f"{table.number(m.median(ANSWERS))} answers/s, {times:.2f} times"
            rows.append(Row(f"{name}, {cores_of(int(m.settings['cores']))}", here=here))
    return rows


def scaling_panel(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    curves = curves_of(all_cores(runs), "cores", ANSWERS, model, hollow)
    chart.curves(axes, curves, Scale("cores", "good answers a second, peak"))


# Latency against what is offered (S3), and evenness (S4).

PERCENTILES = ("p50", "p90", "p99", "p999")


def loaded(runs: Runs, workload: str) -> list[Measurement]:
    """The models at the highest load up to 0.8 times the best peak."""
    found = offered(runs, workload)
    below = [t for t in distinct(found, "times") if float(t) <= LOADED] if found else []
    at = max(below, key=float) if below else None
    return [m for m in found if m.settings["times"] == at]


def latency_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for workload in (SPECWEB, PAGES):
        found = loaded(runs, workload)
        for m in found:
            where = f"{workload} at {m.settings['times']} times the peak, p99"
            series = RESPONSE.format("p99")
            rows.append(row_of(where, m, found, series, "us", less=True))
    return rows


def latency_panel(
    workload: str, percentile: str, axes: Any, runs: Runs, rows: Sequence[Row]
) -> None:
    series = RESPONSE.format(percentile)
    found = offered(runs, workload)
    curves = curves_of(found, "offered_per_s", series, model, hollow)
    scale = Scale("requests a second, offered", f"{percentile}, us", False, True)
    chart.curves(axes, curves, scale)


def slowdown(m: Measurement, klass: int) -> float | None:
    """How many times longer than the median one of a class' slow answers takes."""
    names = [f"class{klass}_response_{p}_us" for p in ("p50", "p99")]
    if not all(has(m, name) for name in names):
        return None
    middle, slow = (m.median(name) for name in names)
    return slow / middle if middle else None


def evenness_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for workload in (SPECWEB, PAGES):
        for m in peaks(runs, workload):
            here = f"Jain's index {m.median('jain'):.3f}"
            rows.append(Row(f"{workload}, kept connections, {model(m)}", here=here))
    for m in loaded(runs, SPECWEB):
        slow = [slowdown(m, klass) for klass in CLASSES]
        here = "p99/p50 by class " + ", ".join(map(table.number, slow))
        rows.append(Row(f"{SPECWEB} at {m.settings['times']}, {model(m)}", here=here))
    return rows


# Inside a request (S5, S6), and memory (S7).

SHARE = "share_"
# What isn't the server's work.
NOT_ITS = ("others", "idle")
COUNTS = {
    "calls": "system calls",
    "switches": "voluntary switches",
    "futex": "futex",
    "epoll_wait": "epoll_wait",
    "epoll_ctl": "epoll_ctl",
    "io_uring_enter": "io_uring_enter",
    "eagain": "EAGAIN",
    "handed": "hand-overs",
}


def has(m: Measurement, name: str) -> bool:
    return all(name in one["samples"] for one in m.rounds)


def parts_of(m: Measurement) -> dict[str, float]:
    """Microseconds of a request in each part of server and kernel, in their order; empty
    where they couldn't be sampled.
    """
    names = [n for n in m.rounds[0]["samples"] if n.startswith(SHARE) and has(m, n)]
    rates = m.series(REQUESTS)
    parts = {}
    for name in names:
        part = name.removeprefix(SHARE)
        if part not in NOT_ITS:
            shares = zip(m.series(name), rates, strict=True)
            parts[part] = median(share / 100 * 1e6 / rate for share, rate in shares)
    return parts


def part_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for m in runs.of(BREAKDOWN):
        parts = parts_of(m)
        here = ", ".join(f"{part} {us:.2f}" for part, us in parts.items())
        reason = "" if here else "not sampled"
        rows.append(Row(f"us a request, {model(m)}", here=here, reason=reason))
    return rows


def part_panel(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    found = [(model(m), parts) for m in runs.of(BREAKDOWN) if (parts := parts_of(m))]
    names = dict.fromkeys(part for _, parts in found for part in parts)
    stacked = {part: [parts.get(part, 0.0) for _, parts in found] for part in names}
    models = [name.replace("-", "\n") for name, _ in found]
    chart.bars(axes, models, stacked, "us a request")


def count_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for m in runs.of(BREAKDOWN):
        here = ", ".join(
            f"{title} {table.number(m.median(name))}"
            for name, title in COUNTS.items()
            if has(m, name)
        )
        rows.append(Row(f"a request, {model(m)}", here=here))
    return rows


def memory_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for m in runs.of(MEMORY):
        resident, kernel, threads = (
            table.number(m.median(name))
            for name in ("rss_bytes", "kernel_bytes", "threads")
        )
        here = f"{resident} bytes resident, {kernel} of the kernel; {threads} threads"
        rows.append(Row(f"a connection, {model(m)}", here=here))
    return rows


def memory_panel(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    found = runs.of(MEMORY)
    stacked = {
        title: [m.median(name) for m in found]
        for name, title in (("rss_bytes", "resident"), ("kernel_bytes", "the kernel's"))
    }
    models = [model(m).replace("-", "\n") for m in found]
    chart.bars(axes, models, stacked, "bytes a connection")


# Twice the saturation (S8).


def best_of(runs: Runs, m: Measurement) -> float:
    """The most that the model of a measurement answered of this workload."""
    workload = str(m.settings["workload"])
    found = [*peaks(runs, workload), *offered(runs, workload)]
    return max(x.median(ANSWERS) for x in found if model(x) == model(m))


def overload_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for workload in (PAGES, SPECWEB):
        found = runs.of(OFFERED, workload=workload, cores=1, times=TWICE)
        for m in found:
            row = row_of(f"{workload}, twice the peak", m, found, ANSWERS, "answers/s")
            share = m.median(ANSWERS) / best_of(runs, m)
            here = f"{row.here}; {share:.0%} of its peak"
            rows.append(Row(row.where, here=here, ratio=row.ratio))
    return rows


# What was tuned (S10), and which model to choose (S11).


def tuned(found: Sequence[Measurement], series: str) -> str:
    ordered = sorted(found, key=lambda m: m.median(series))
    least, most = (table.number(m.median(series)) for m in (ordered[0], ordered[-1]))
    best = ordered[-1].settings["tuning"] or "no options"
    return f"{len(found)} tunings, from {least} to {most} requests/s; best: {best}"


def tuning_rows(runs: Runs, data: Data) -> list[Row]:
    groups: dict[tuple[Any, ...], list[Measurement]] = {}
    for m in runs.of(TUNE):
        names = ("workload", "model", "connections")
        groups.setdefault(tuple(m.settings[n] for n in names), []).append(m)
    return [
        Row(f"{load}, {count} connections, {name}", here=tuned(found, REQUESTS))
        for (load, name, count), found in groups.items()
    ]


def beside_events(found: Sequence[Measurement], series: str) -> str:
    """The models in the order of their ratios to events, which is not shown."""
    events = of_model(found, subjects.EVENTS)
    if events is None:
        return ""
    beside = [
        (ratio(m.series(series), events.series(series)), model(m))
        for m in found
        if m is not events
    ]
    beside.sort(key=lambda one: -one[0].median)
    return ", ".join(f"{name} {table.ratio(value)}" for value, name in beside)


def situations(runs: Runs) -> list[tuple[str, list[Measurement], str]]:
    """Situations of a service: what it is called, its measurements, and their series."""
    found = []
    for load in distinct(runs.of(STUDY), "workload"):
        these = runs.of(STUDY, workload=load)
        for count in distinct(these, "connections"):
            key: Settings = {"workload": load, "connections": count}
            one = runs.of(STUDY, **key)
            found.append((f"{load}, {count} connections", one, REQUESTS))
    for load in (PAGES, SPECWEB, DISK):
        found.append((f"{load}, peak", peaks(runs, load), ANSWERS))
        twice = runs.of(OFFERED, workload=load, cores=1, times=TWICE)
        found.append((f"{load}, twice the peak", twice, ANSWERS))
    for idle in distinct(runs.of(IDLE), "idle"):
        what = f"128 connections beside {idle:,} that are idle"
        found.append((what, runs.of(IDLE, idle=idle), REQUESTS))
    return found


def choice_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for what, found, series in situations(runs):
        here = beside_events(found, series)
        if here:
            rows.append(Row(what, here=f"of events: {here}"))
    return rows


# The lines of each driver (S12), where the sources are.

SOURCES = Path(__file__).resolve().parents[3] / "examples" / "webserver"
DRIVERS = ["threads.c", "events.c", "loops.c", "stages.c"]


def lines_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for name in DRIVERS:
        text = machine.text_of(SOURCES / name)
        lines = [line for line in (text or "").splitlines() if line.strip()]
        here = f"{len(lines)} lines that aren't empty" if lines else ""
        reason = "" if here else "the source isn't here"
        rows.append(Row(name, here=here, reason=reason))
    return rows


# The figures beyond the papers.


def item(id: str, figure: str, title: str) -> Item:
    return Item(id, "The study", figure, title, "measured", "none", "", "", "", "yes")


DIFFERS = (
    "No paper has this figure. Models with FlexSC have a gain: loops beside events, "
    "threads and stages under flexsc run beside themselves, flexsc serve beside nginx."
)
BOTH = [bench(SPECWEB), bench(PAGES)]
INSIDE = Bench(("study", "breakdown"), BREAKDOWN)
WEIGHED = Bench(("study", "memory"), MEMORY)
# One command measures both.
PAGE = Bench(("study", "page", "--tune"), STUDY, {"workload": "page"})
TUNED = Bench(PAGE.words, TUNE, {"workload": "page"})


def figure(
    id: str,
    rows: Callable[[Runs, Data], list[Row]],
    benches: Sequence[Bench],
    draws: Sequence[Draw] = (),
) -> Figure:
    return Figure(id, State.MEASURED, "", DIFFERS, benches, rows, draws)


def panels(*workloads: str) -> list[Draw]:
    return [partial(offered_panel, workload, 1) for workload in workloads]


ITEMS = [
    item("study-s1", "S1", "Good answers against what is offered, on one core"),
    item("study-s2", "S2", "Peaks against cores"),
    item("study-s3", "S3", "Latency against what is offered"),
    item("study-s4", "S4", "Evenness over connections and sizes"),
    item("study-s5", "S5", "The processor's time of a request, by part"),
    item("study-s6", "S6", "System calls and switches of a request"),
    item("study-s7", "S7", "Memory of a connection"),
    item("study-s8", "S8", "Good answers at twice the saturation"),
    item("study-s9", "S9", "Files that aren't in memory"),
    item("study-s10", "S10", "What was tuned"),
    item("study-s11", "S11", "Which model for a service: requests beside events'"),
    item("study-s12", "S12", "Lines of each model's driver"),
]
FIGURES = [
    figure(
        "study-s1", partial(peak_rows, (SPECWEB, PAGES)), BOTH, panels(SPECWEB, PAGES)
    ),
    Figure(
        "study-s2",
        State.NOT_BUILT,
        "the bench has its servers on one core",
        DIFFERS,
        SEVERAL,
        scaling_rows,
        [scaling_panel],
        cores=4,
    ),
    figure(
        "study-s3",
        latency_rows,
        BOTH,
        [partial(latency_panel, SPECWEB, p) for p in PERCENTILES],
    ),
    figure("study-s4", evenness_rows, BOTH),
    figure("study-s5", part_rows, [INSIDE], [part_panel]),
    figure("study-s6", count_rows, [INSIDE]),
    figure("study-s7", memory_rows, [WEIGHED], [memory_panel]),
    figure("study-s8", overload_rows, BOTH),
    figure("study-s9", partial(peak_rows, (DISK,)), [bench(DISK)], panels(DISK)),
    figure("study-s10", tuning_rows, [TUNED]),
    figure(
        "study-s11",
        choice_rows,
        [
            PAGE,
            Bench(("study", "new"), STUDY, {"workload": "new"}),
            Bench(("study", "idle"), IDLE),
            *BOTH,
        ],
    ),
    Figure("study-s12", State.RECORDED, "of the sources", rows=lines_rows),
]
