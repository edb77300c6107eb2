# SPDX-License-Identifier: MIT
"""The study's tables."""

from __future__ import annotations

from flexbench import table
from flexbench.compare import Interval, ratio
from flexbench.samples import Measurement, Run, distinct

from . import offered_tables, subjects
from .closed import WORKLOADS
from .subjects import BENCH
from .tuning import SERIES, TUNE


def cost_series(measurement: Measurement) -> str:
    """The series of a request's processor time: that of bench --raw rounds, if rounds
    were made, or else the server's clock under wrk.
    """
    in_rounds = "cpu_us" in measurement.rounds[0]["samples"]
    return "cpu_us" if in_rounds else "loaded_us"


def beside(
    measurement: Measurement, events: Measurement | None, series: str, more: bool
) -> Interval | None:
    """A model's gain over the model "events": more requests, or less time. None:
    "events" wasn't measured.
    """
    if not events:
        return None
    ours, theirs = measurement.series(series), events.series(series)
    return ratio(ours, theirs) if more else ratio(theirs, ours)


def row(measurement: Measurement, events: Measurement | None) -> list[str]:
    name, cost = str(measurement.settings["model"]), cost_series(measurement)
    requests = beside(measurement, events, SERIES, True)
    return [
        f"{name}: {subjects.titles()[name]}",
        table.rate(measurement, SERIES),
        table.ratio(requests),
        table.number(measurement.median(cost)),
        table.ratio(beside(measurement, events, cost, False)),
        table.number(measurement.median("p99_us")),
        f"{measurement.median('busy_percent'):.0f}",
    ]


HEAD = ["model", "requests/s", "/events", "us/request", "events/", "p99, us", "busy, %"]


def point(found: list[Measurement]) -> str:
    """The table of one workload with one number of connections."""
    first = found[0].settings
    events = next((m for m in found if m.settings["model"] == subjects.EVENTS), None)
    title = (
        f"study {first['workload']}: {WORKLOADS[str(first['workload'])].title}, "
        f"{first['connections']} of them, a file of {first['bytes']} bytes; "
        f"{table.how(found[0])}\n"
    )
    rows = table.table(HEAD, [row(m, events) for m in found])
    return title + table.explained(rows)


def on(m: Measurement) -> str:
    """The number of cores, if there are several. Older files lack it: one core."""
    count = int(m.settings.get("cores", 1))
    return f", {table.cores(count)}" if count > 1 else ""


def tuned(found: list[Measurement]) -> str:
    rows = [
        [
            f"{m.settings['model']}, {m.settings['workload']}, "
            f"{m.settings['connections']} connections{on(m)}: {m.settings['tuning']}",
            table.number(m.median(SERIES)),
        ]
        for m in found
    ]
    return "study: what was tried\n" + table.table(["tuning", "requests/s"], rows)


def show(run: Run) -> list[str]:
    found = run.of(BENCH)
    parts = [
        point(these)
        for workload in distinct(found, "workload")
        for count in distinct(found, "connections")
        if (these := run.of(BENCH, workload=workload, connections=count))
    ]
    parts += offered_tables.show(run)
    tried = run.of(TUNE)
    return parts + ([tuned(tried)] if tried else [])
