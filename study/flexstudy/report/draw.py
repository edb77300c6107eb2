# SPDX-License-Identifier: MIT
"""Drawings, if matplotlib is installed: an SVG for the page, and an SVG and a PNG as
files. The same input makes the same bytes.

A paper's number is drawn as a marker, never as a line, because its curve isn't known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import chart, matplot
from .chart import GREY, Curve, Dot, Scale
from .figure import Draw, Row, said

if TYPE_CHECKING:
    from .runs import Runs

WANTED = "drawings"
WIDE_INCHES, TALL_INCHES, PANEL_INCHES = 9, 4.5, 3.4
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


def inline(svg: str, name: str) -> str:
    """An SVG file's text as a part of the page: only the svg element, without metadata
    and style, with ids that are unique on the page, and the page's colour instead of
    black.
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


def drawing(
    name: str,
    title: str,
    draws: Sequence[Draw],
    runs: Runs,
    rows: list[Row],
    folder: Path,
) -> str:
    """Draw a figure, with a panel per function, into two files, SVG and PNG. Returns
    the SVG for the page.
    """
    pyplot = matplot.load(WANTED)
    panels = [panel(draw, runs, rows) for draw in draws]
    size = WIDE_INCHES, TALL_INCHES if len(draws) == 1 else PANEL_INCHES
    figure = chart.figure_of(pyplot, title, panels, size)
    try:
        (folder / f"{name}.svg").write_bytes(chart.saved(figure, "svg"))
        (folder / f"{name}.png").write_bytes(chart.saved(figure, "png", dpi=120))
        text = chart.saved(figure, "svg", transparent=True).decode()
    finally:
        pyplot.close(figure)
    return inline(text, name)
