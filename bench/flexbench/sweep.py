# SPDX-License-Identifier: MIT
"""One server against the number of its clients: the numbers of clients in the papers'
figures, and tables of measurements with several numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from . import table
from .compare import Interval, ratio
from .runner import Plan
from .running import FLEXSC
from .samples import Measurement, distinct

SERIES = table.RATE


@dataclass(frozen=True)
class Sweep:
    """Numbers of clients. quick: the numbers with --quick."""

    every: list[int]
    quick: list[int]


WEB = Sweep([1, 4, 16, 64, 128, 256, 512, 1000], [1, 16, 256, 1000])
DATABASE = Sweep([1, 4, 16, 32, 64, 128, 256], [1, 64, 256])
NAMES = Sweep([1, 4, 16, 64, 128, 256], [1, 16, 256])


def plans(plan: Plan, sweep: Sweep) -> list[Plan]:
    """A plan for each number of clients; without a sweep, only the plan itself."""
    if not plan.sweep:
        return [plan]
    counts = sweep.quick if plan.quick else sweep.every
    return [replace(plan, connections=count) for count in counts]


# Tables.

Found = dict[str, Measurement]


def by_connections(found: Sequence[Measurement]) -> dict[int, Found]:
    """The measurements by number of connections, then by variant."""
    return {
        count: {
            str(m.settings["variant"]): m
            for m in found
            if m.settings["connections"] == count
        }
        for count in sorted(distinct(found, "connections"))
    }


def compared(found: Found, series: str, a: str, b: str) -> Interval | None:
    if a not in found or b not in found:
        return None
    return ratio(found[a].series(series), found[b].series(series))


def throughput(rows: dict[int, Found], names: Sequence[str]) -> str:
    others = [n for n in names if n != FLEXSC]
    head = ["connections", *names, *(f"flexsc/{n}" for n in others), "busy, %"]
    lines = []
    for connections, found in rows.items():
        ratios = [table.ratio(compared(found, SERIES, FLEXSC, n)) for n in others]
        busy = [f"{found[n].median('busy_percent'):.0f}" for n in names if n in found]
        cells = [
            table.rate(found[n], SERIES) if n in found else table.NOTHING for n in names
        ]
        lines.append([f"{connections:,}", *cells, *ratios, "/".join(busy)])
    return table.explained(table.table(head, lines))


def latency(rows: dict[int, Found], names: Sequence[str], beside: str) -> str:
    """Percentiles of each variant. beside: the variant that flexsc is compared with."""
    head = ["connections"]
    for percentile in ("p50", "p99"):
        head += [f"{percentile} {name}" for name in names] + [f"flexsc/{beside}"]
    lines = []
    for connections, found in rows.items():
        line = [f"{connections:,}"]
        for series in ("p50_us", "p99_us"):
            for name in names:
                m = found.get(name)
                line.append(table.number(m.median(series) if m else None))
            line.append(table.ratio(compared(found, series, FLEXSC, beside)))
        lines.append(line)
    return table.table(head, lines)


def tables(
    title: str, unit: str, found: list[Measurement], names: Sequence[str], beside: str
) -> list[str]:
    """Tables of throughput and latency against connections. title: includes a
    description of the rounds.
    """
    rows = by_connections(found)
    return [
        f"{title}: {unit} a second\n{throughput(rows, names)}",
        f"{title}: latency, us\n{latency(rows, names, beside)}",
    ]
