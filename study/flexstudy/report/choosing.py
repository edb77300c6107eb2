# SPDX-License-Identifier: MIT
"""Which model to choose for a service, by the study: the tunings that were tried, and the
models in each situation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flexbench import table
from flexbench.compare import ratio
from flexbench.samples import Measurement, Settings, distinct

from ..papers import Data
from ..webserver import subjects, tables
from .figure import Row
from .runs import Runs
from .study import (
    ANSWERS,
    OFFERED,
    PAGES,
    REQUESTS,
    SPECWEB,
    STUDY,
    TUNE,
    TWICE,
    model,
    of_model,
    peaks,
)


def tuned(found: Sequence[Measurement], series: str) -> str:
    ordered = sorted(found, key=lambda m: m.median(series))
    least, most = (table.number(m.median(series)) for m in (ordered[0], ordered[-1]))
    best = ordered[-1].settings["tuning"] or "no options"
    return f"{len(found)} tunings, from {least} to {most} requests/s; best: {best}"


KEYS = ("workload", "model", "connections")


def tuning_rows(runs: Runs, data: Data) -> list[Row]:
    groups: dict[tuple[Any, ...], list[Measurement]] = {}
    for m in runs.of(TUNE):
        key = (tables.on(m), *(m.settings[name] for name in KEYS))
        groups.setdefault(key, []).append(m)
    return [
        Row(f"{load}, {count} connections{on}, {name}", here=tuned(found, REQUESTS))
        for (on, load, name, count), found in groups.items()
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
    for load in (PAGES, SPECWEB):
        found.append((f"{load}, peak", peaks(runs, load), ANSWERS))
        twice = runs.of(OFFERED, workload=load, cores=1, times=TWICE)
        found.append((f"{load}, twice the peak", twice, ANSWERS))
    return found


def choice_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for what, found, series in situations(runs):
        here = beside_events(found, series)
        if here:
            rounds = len(found[0].rounds)
            rows.append(Row(what, here=f"of events, {rounds} rounds: {here}"))
    return rows
