# SPDX-License-Identifier: MIT
"""Drawings, if matplotlib is there: an SVG for the page, an SVG and a PNG as files. One
input makes the same bytes.

A paper's number is a marker, never a line: its curve isn't known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexbench import chart, matplot
from flexbench.chart import GREY, PAPER, Curve, Dot, Scale

from .figure import Draw, Row, said

if TYPE_CHECKING:
    from .runs import Runs

WANTED = "drawings"
OURS = "#2a7fc1"
ROW_INCHES, EDGE_INCHES, WIDE_INCHES = 0.32, 1.1, 9
TALL_INCHES, PANEL_INCHES = 4.5, 3.4
BATCHES = Scale("calls in a batch", "speed beside plain calls", log_y=True)


def batches(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    """Draw a line for each call and variant: the gain against the size of the batch."""
    dots: dict[str, list[Dot]] = {}
    marks: dict[tuple[float, float], str] = {}
    for row in rows:
        if row.point and row.gain is not None:
            marks[float(row.point.x), row.gain] = f"OSDI: {said(row.point)}"
        elif row.ratio:
            name, _, rest = row.where.partition(", ")
            place = rest.partition(" (")[2].rstrip(")")
            label = f"{name}, {place}" if place else name
            ends = row.ratio.low, row.ratio.high
            dot = Dot(float(rest.split()[0]), row.ratio.median, ends=ends)
            dots.setdefault(label, []).append(dot)
    axes.axhline(1, color=GREY, linewidth=1)
    found = [Curve(label, these) for label, these in dots.items()]
    chart.curves(axes, found, BATCHES, marks)


def intervals(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    """Draw each ratio's interval in a line of its own, and the paper's gain there."""
    shown = [row for row in rows if row.ratio]
    for y, row in enumerate(shown):
        ratio = row.ratio
        assert ratio
        ends = [[ratio.median - ratio.low], [ratio.high - ratio.median]]
        axes.errorbar([ratio.median], [y], xerr=ends, fmt="o", color=OURS, capsize=3)
        if row.gain is not None:
            axes.plot([row.gain], [y], "D", color=PAPER)
    axes.set_yticks(range(len(shown)), [row.where for row in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.axvline(1, color=GREY, linewidth=1)
    axes.set_xlim(left=0)
    axes.set_xlabel("gain: dots are ours, diamonds the paper's")


def inline(svg: str, name: str) -> str:
    """An SVG file's text as a part of the page: the svg element alone, without metadata
    and style, with ids that no other drawing has, and the page's colour for black.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.S)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    svg = svg.replace("xlink:href", "href").replace("#000000", "currentColor")
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    return re.sub(r"url\(#", f"url(#{name}-", svg)


def panel(draw: Draw, runs: Runs, rows: list[Row]) -> chart.Draw:
    return lambda axes: draw(axes, runs, rows)


def tall(draws: Sequence[Draw], rows: Sequence[Row]) -> float:
    count = sum(row.ratio is not None for row in rows)
    rows_tall = EDGE_INCHES + ROW_INCHES * max(count, 4)
    if intervals in draws:
        return rows_tall
    return TALL_INCHES if len(draws) == 1 else PANEL_INCHES


def drawing(
    name: str,
    title: str,
    draws: Sequence[Draw],
    runs: Runs,
    rows: list[Row],
    folder: Path,
) -> str:
    """Draw a figure, a panel for each function, into two files, SVG and PNG. Returns the
    page's SVG.
    """
    pyplot = matplot.load(WANTED)
    panels = [panel(draw, runs, rows) for draw in draws]
    size = WIDE_INCHES, tall(draws, rows)
    figure = chart.figure_of(pyplot, title, panels, size)
    try:
        (folder / f"{name}.svg").write_bytes(chart.saved(figure, "svg"))
        (folder / f"{name}.png").write_bytes(chart.saved(figure, "png", dpi=120))
        text = chart.saved(figure, "svg", transparent=True).decode()
    finally:
        pyplot.close(figure)
    return inline(text, name)
