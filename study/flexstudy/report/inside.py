# SPDX-License-Identifier: MIT
"""What is inside a request to the study's servers: the processor's time by part, and
system calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flexbench import chart
from flexbench.samples import Measurement

from ..papers import Data
from ..webserver import breakdown_tables, stacks
from .figure import Row
from .runs import Runs
from .study import BREAKDOWN, has, model


def parts_of(m: Measurement) -> dict[str, float]:
    """Microseconds of a request in each part of server and kernel, in their order; empty
    where they couldn't be sampled.
    """
    parts = [part for part in stacks.PARTS if part not in breakdown_tables.APART]
    return {p: breakdown_tables.part_us(m, p) for p in parts if has(m, f"share_{p}")}


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
            f"{title} {breakdown_tables.count(m, name)}"
            for name, title in breakdown_tables.COUNTS.items()
            if has(m, name)
        )
        rows.append(Row(f"a request, {model(m)}", here=here))
    return rows
