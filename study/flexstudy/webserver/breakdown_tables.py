# SPDX-License-Identifier: MIT
"""The tables of where a request's processor time goes, and of its calls."""

from __future__ import annotations

from statistics import median

from flexbench import table
from flexbench.samples import Measurement, Run

from .breakdown import BENCH, COUNTED
from .stacks import PARTS

SERVER = "the server in all"
APART = ["others", "idle"]  # parts that aren't the server's
COUNTS = {
    "calls": "calls",
    **{series: series for series in COUNTED},
    "eagain": "EAGAIN",
    "futex": "futex",
    "io_uring_enter": "io_uring_enter",
    "switches": "switches",
}


def has(measurement: Measurement, series: str) -> bool:
    return series in measurement.rounds[0]["samples"]


def part_us(measurement: Measurement, part: str) -> float:
    """A part's share of the core's time for a request: the median of the rounds."""
    shares = measurement.series(f"share_{part}")
    rates = measurement.series("requests_per_s")
    return median(1e4 * share / rate for share, rate in zip(shares, rates, strict=True))


def title(measurement: Measurement, what: str) -> str:
    settings = measurement.settings
    return (
        f"study breakdown: {what}; {settings['connections']} kept connections, a file "
        f"of {settings['bytes']} bytes; {table.how(measurement)}\n"
    )


def models(found: list[Measurement]) -> list[str]:
    return [str(measurement.settings["model"]) for measurement in found]


def times(found: list[Measurement]) -> str:
    """A row for each part; the server's parts are summed up."""

    def row(name: str, *parts: str) -> list[str]:
        sums = (sum(part_us(m, part) for part in parts) for m in found)
        return [name, *map(table.number, sums)]

    ours = [part for part in PARTS if part not in APART]
    rows = [row(PARTS[part], part) for part in ours]
    rows += [row(SERVER, *ours), *(row(PARTS[part], part) for part in APART)]
    head = ["us a request", *models(found)]
    return title(found[0], "where the core's time goes") + table.table(head, rows)


def count(measurement: Measurement, series: str) -> str:
    if not has(measurement, series):
        return table.NOTHING
    value = measurement.median(series)
    # An exact figure: there is nothing between none and few.
    return f"{value:.2f}" if value >= 0.005 or not value else f"{value:.4f}"


def counts(found: list[Measurement]) -> str:
    columns = [series for series in COUNTS if any(has(m, series) for m in found)]
    rows = [
        [str(m.settings["model"]), *(count(m, series) for series in columns)]
        for m in found
    ]
    head = ["a request's", *(COUNTS[series] for series in columns)]
    return title(found[0], "calls and switches") + table.table(head, rows)


def show(run: Run) -> list[str]:
    found = run.of(BENCH)
    sampled = [m for m in found if has(m, "share_idle")]
    parts = [times(sampled)] if sampled else []
    return parts + ([counts(found)] if found else [])
