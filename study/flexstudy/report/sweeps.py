# SPDX-License-Identifier: MIT
"""Servers against the number of their clients, beside the papers' numbers.

A paper's number is compared with ours for the same number of clients. If it says "up
to", it is compared with our sweep's best point. A point that was limited by its clients
is the best one only if all points were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flexbench import quiet, sweep, table
from flexbench.running import NATIVE
from flexbench.samples import Measurement, by_cores

from ..papers import Data, Point
from . import chart
from .chart import Scale, curves_of
from .figure import Row, number_pair, said
from .runs import Runs, gain

LIMITED = "the clients were the limit"
VERY_FEW = "very few"


@dataclass(frozen=True)
class Pair:
    """Two variants with the same number of clients."""

    ours: Measurement
    theirs: Measurement

    @property
    def count(self) -> int:
        return int(self.ours.settings["connections"])

    @property
    def limited(self) -> bool:
        return table.limited(self.ours) or table.limited(self.theirs)


@dataclass(frozen=True)
class Quantity:
    """A series that is compared. less: less is better."""

    series: str
    unit: str
    less: bool = False


@dataclass(frozen=True)
class Sweep:
    """Measurements against the number of clients. beside: describes the variant
    "theirs". cores: of the server.
    """

    what: str
    clients: str
    beside: str
    pairs: list[Pair]
    cores: int = 1

    def row(self, pair: Pair, quantity: Quantity, point: Point | None = None) -> Row:
        series = quantity.series
        medians = pair.ours.median(series), pair.theirs.median(series)
        here = number_pair(*medians, f"{quantity.unit}, {self.beside}")
        if pair.limited:
            here += f"; {LIMITED}"
        clients = self.clients.removesuffix("s") if pair.count == 1 else self.clients
        return Row(
            f"{self.what}, {pair.count} {clients}",
            point,
            here=here,
            ratio=gain(pair.ours, pair.theirs, series, quantity.less),
        )

    def best(self, pairs: Sequence[Pair], quantity: Quantity) -> Pair:
        def merit(pair: Pair) -> tuple[bool, float]:
            found = gain(pair.ours, pair.theirs, quantity.series, quantity.less)
            return not pair.limited, found.median

        return max(pairs, key=merit)


def pairs_of(found: Sequence[Measurement], ours: str, theirs: str) -> list[Pair]:
    """The pairs of two variants on the same cores, by numbers of clients."""
    return [
        Pair(at[ours], at[theirs])
        for at in sweep.by_connections(found).values()
        if ours in at and theirs in at
    ]


def sweeps_of(
    found: Sequence[Measurement], what: str, clients: str, both: tuple[str, str]
) -> list[Sweep]:
    """A sweep for each number of cores. both: our variant, and theirs."""
    ours, theirs = both
    beside = "natively" if theirs == NATIVE else theirs
    every = (
        Sweep(
            f"{what}, {table.cores(cores)}",
            *(clients, beside, pairs_of(those, ours, theirs), cores),
        )
        for cores, those in by_cores(found).items()
    )
    return [one for one in every if one.pairs]


def fitting(point: Point, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with the number of clients that the sentence states."""
    if point.kind == "up_to" or not point.x:
        return list(pairs)
    if point.x == VERY_FEW:
        return [pair for pair in pairs if pair is pairs[0]]
    count, _, more = point.x.partition(" ")
    return [
        pair
        for pair in pairs
        if pair.count == int(count) or (more and pair.count > int(count))
    ]


def on_cores(point: Point, cores: int) -> bool:
    """Does the sentence apply to a server on so many cores? "1-4" are several numbers;
    without a number it applies to one core.
    """
    first, _, last = (point.cores or "1").partition("-")
    return int(first) <= cores <= int(last or first)


def one_core(point: Point) -> bool:
    return on_cores(point, 1)


def not_on(point: Point) -> str:
    """Why there is no number of ours for other numbers of cores."""
    return f"not measured on {point.cores} cores"


def where(point: Point) -> str:
    cores = {"": "", "1": "1 core"}.get(point.cores, f"{point.cores} cores")
    at = f"{point.x_name} {point.x}".strip()
    return ", ".join(text for text in (point.series, cores, at) if text)


def point_rows(point: Point, sweeps: Sequence[Sweep], quantity: Quantity) -> list[Row]:
    """A row per sweep for a paper's number; or one row with the reason why there is
    none.
    """
    there = [one for one in sweeps if on_cores(point, one.cores)]
    if not there and not one_core(point):
        return [Row(where(point), point, reason=not_on(point))]
    found = []
    for one in there:
        pairs = fitting(point, one.pairs)
        if pairs:
            found.append(one.row(one.best(pairs, quantity), quantity, point))
    reason = f"not measured with {point.x}" if point.x else "not measured"
    return found or [Row(where(point), point, reason=reason)]


def rows(
    data: Data, sweeps: Sequence[Sweep], quantity: Quantity, quantities: set[str]
) -> list[Row]:
    """First the rows of the paper's numbers, which are FlexSC's gains in some
    quantities; then all points of our sweeps.
    """
    found = []
    for point in data.points:
        if point.series.startswith("flexsc/") and point.quantity in quantities:
            found += point_rows(point, sweeps, quantity)
    for one in sweeps:
        found += [one.row(pair, quantity) for pair in one.pairs]
    return found


# Drawings.


def count_of(row: Row) -> int:
    return int(row.where.rpartition(", ")[2].split()[0])


def marks(
    rows: Sequence[Row], sweep: Sweep, quantity: Quantity
) -> dict[tuple[float, float], str]:
    """The paper's gains, as points: each gain applied to "theirs" at our number of
    clients."""
    theirs = {pair.count: pair.theirs.median(quantity.series) for pair in sweep.pairs}
    found: dict[tuple[float, float], str] = {}
    for row in rows:
        if row.point and row.ratio and row.gain and row.where.startswith(sweep.what):
            count = count_of(row)
            times = 1 / row.gain if quantity.less else row.gain
            at = float(count), theirs[count] * times
            found[at] = f"the paper's gain: {said(row.point)}"
    return found


def largest(sweeps: Sequence[Sweep]) -> list[Sweep]:
    """Of each server, the sweep with the most cores."""
    return list({one.what.rpartition(", ")[0]: one for one in sweeps}.values())


def panel(
    sweeps: Callable[[Runs], Sequence[Sweep]],
    index: int,
    quantity: Quantity,
    axes: Any,
    runs: Runs,
    rows: Sequence[Row],
) -> None:
    """Draw the sweep of the server with this index, if it was measured."""
    found = largest(sweeps(runs))
    if index >= len(found):
        axes.set_axis_off()
        return
    one = found[index]
    both = [m for pair in one.pairs for m in (pair.theirs, pair.ours)]
    scale = Scale(one.clients, quantity.unit, log_y=quantity.less)
    curves = curves_of(both, "connections", quantity.series)
    chart.curves(axes, curves, scale, marks(rows, one, quantity))
    axes.set_title(one.what)


# Where a core's time goes.


def shares_of(m: Measurement) -> dict[str, float]:
    """Percentages by name; empty for an older version's file."""
    if "idle_percent" not in m.rounds[0]["samples"]:
        return {}
    return {name.removesuffix("_percent"): m.median(name) for name in quiet.SHARES}


def most(one: Sweep) -> list[Measurement]:
    """Theirs and ours with the largest number of clients."""
    return [one.pairs[-1].theirs, one.pairs[-1].ours] if one.pairs else []


def share_rows(sweeps: Sequence[Sweep]) -> list[Row]:
    found = []
    for one in sweeps:
        for m in most(one):
            shares = shares_of(m)
            variant, count = m.settings["variant"], m.settings["connections"]
            what = f"{one.what}, {variant}, {count} {one.clients}"
            here = ", ".join(f"{name} {value:.0f} %" for name, value in shares.items())
            found.append(Row(what, here=here, reason="" if here else "not recorded"))
    return found


def share_panel(
    sweeps: Callable[[Runs], Sequence[Sweep]],
    axes: Any,
    runs: Runs,
    rows: Sequence[Row],
) -> None:
    found = [(one, m) for one in sweeps(runs) for m in most(one) if shares_of(m)]
    kinds = [one.what.partition(",")[0].replace(" ", "\n") for one, _ in found]
    names = [
        f"{k}\n{m.settings['variant']}" for k, (_, m) in zip(kinds, found, strict=True)
    ]
    shares = [shares_of(m) for _, m in found]
    parts = {
        name: [share[name] for share in shares]
        for name in (shares[0] if shares else {})
    }
    chart.bars(axes, names, parts, "percent of the server's cores")
