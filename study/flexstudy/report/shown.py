# SPDX-License-Identifier: MIT
"""A figure as the page shows it: its state with these measurements, its rows, and the
files that the rows come from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from flexbench.samples import UNREADABLE, BenchError

from .. import papers
from ..papers import Data, Item
from . import draw
from .figure import LOST, Bench, Figure, Row, State
from .runs import Runs, Source


@dataclass(frozen=True)
class Shown:
    """A figure on the page. svg: empty without a drawing."""

    item: Item
    figure: Figure
    data: Data
    state: State
    why: str
    rows: list[Row]
    sources: list[tuple[Source, Bench]]
    svg: str = ""

    @property
    def disturbed(self) -> float:
        """The largest share of the measured cores, in percent, that other processes
        used in a round."""
        return max((s.disturbed(bench) for s, bench in self.sources), default=0.0)

    @property
    def lost(self) -> list[Row]:
        return [row for row in self.rows if row.verdict in LOST]


def too_small(figure: Figure, runs: Runs) -> str:
    if not runs.sources or not figure.cores:
        return ""
    machine = runs.sources[0].machine
    cores = int(machine.get("physical") or machine.get("online") or 0)
    few = f"{cores} physical cores, but it needs {figure.cores}"
    return few if cores < figure.cores else ""


def unmeasured(figure: Figure, runs: Runs) -> str:
    failed = [runs.failed[b.name] for b in figure.benches if b.name in runs.failed]
    return "; ".join(dict.fromkeys(failed)) or "not in any of the files"


def state_of(figure: Figure, runs: Runs) -> tuple[State, str]:
    measured = any(runs.has(bench) for bench in figure.benches)
    if figure.state == State.RECORDED and not runs.sources:
        return State.NOT_MEASURED, "no file of measurements was given"
    if figure.state == State.COUNTERS:
        return (State.MEASURED, "") if measured else (figure.state, figure.why)
    if figure.benches and not measured:
        if too_small(figure, runs):
            return State.TOO_SMALL, too_small(figure, runs)
        return State.NOT_MEASURED, unmeasured(figure, runs)
    return figure.state, figure.why


def show(item: Item, figure: Figure, runs: Runs) -> Shown:
    data = papers.data_of(item)
    state, why = state_of(figure, runs)
    sources = [(s, b) for b in figure.benches if (s := runs.has(b))]
    rows: list[Row] = []
    if state in (State.MEASURED, State.STAND_IN, State.RECORDED):
        try:
            rows = figure.rows(runs, data)
            for source, bench in sources:
                source.disturbed(bench)
        except UNREADABLE:
            names = ", ".join(dict.fromkeys(source.name for source, _ in sources))
            state, sources = State.NOT_MEASURED, []
            why = f"{names}: values of this bench are missing; measure again"
    return Shown(item, figure, data, state, why, rows, sources)


def drawn(shown: Shown, runs: Runs, folder: Path) -> Shown:
    """The figure with its drawing, whose files are in the folder; without a drawing if
    there is nothing to draw.
    """
    how = shown.figure.draws
    if not how or not any(row.here for row in shown.rows):
        return shown
    title = f"{shown.item.paper}, {shown.item.figure}"
    try:
        svg = draw.drawing(shown.item.id, title, how, runs, shown.rows, folder)
    except OSError as error:
        raise BenchError(f"{folder}: {error.strerror}") from error
    return replace(shown, svg=svg)
