# SPDX-License-Identifier: MIT
"""Drawings, if matplotlib is there: an SVG for the page, an SVG and a PNG as files. One
input makes the same bytes.

A paper's number is a marker, never a line: its curve isn't known.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import matplot
from .figure import Draw, Row, said

if TYPE_CHECKING:
    from .runs import Runs

WANTED = "drawings"
OURS, THEIRS = "#2a7fc1", "#d9660a"
ROW_INCHES, EDGE_INCHES, WIDE_INCHES = 0.32, 1.1, 9
# Metadata that is set to None, so that files have no date and no version of matplotlib.
PLAIN = {"svg": ["Date", "Creator", "Format", "Type"], "png": ["Software"]}


def batches(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    """Draw a line for each call and variant: the gain against the size of the batch."""
    lines: dict[str, list[tuple[int, Row]]] = {}
    markers: dict[tuple[int, float], str] = {}
    for row in rows:
        if row.point and row.gain is not None:
            at = int(float(row.point.x)), row.gain
            markers[at] = f"OSDI: {said(row.point)}"
        elif row.ratio:
            name, _, rest = row.where.partition(", ")
            place = rest.partition(" (")[2].rstrip(")")
            label = f"{name}, {place}" if place else name
            lines.setdefault(label, []).append((int(rest.split()[0]), row))
    for label, found in lines.items():
        ratios = [(batch, row.ratio) for batch, row in found if row.ratio]
        middle = [ratio.median for _, ratio in ratios]
        low = [ratio.median - ratio.low for _, ratio in ratios]
        high = [ratio.high - ratio.median for _, ratio in ratios]
        at_sizes = [batch for batch, _ in ratios]
        axes.errorbar(
            at_sizes, middle, yerr=[low, high], fmt="-o", markersize=3, label=label
        )
    for (x, y), label in markers.items():
        axes.plot([x], [y], "D", color=THEIRS, markersize=8, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({batch for found in lines.values() for batch, _ in found})
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set_xlabel("calls in a batch")
    axes.set_ylabel("speed beside plain calls")
    axes.axhline(1, color="#888888", linewidth=1)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def intervals(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    """Draw each ratio's interval in a line of its own, and the paper's gain there."""
    shown = [row for row in rows if row.ratio]
    for y, row in enumerate(shown):
        ratio = row.ratio
        assert ratio
        ends = [[ratio.median - ratio.low], [ratio.high - ratio.median]]
        axes.errorbar([ratio.median], [y], xerr=ends, fmt="o", color=OURS, capsize=3)
        if row.gain is not None:
            axes.plot([row.gain], [y], "D", color=THEIRS)
    axes.set_yticks(range(len(shown)), [row.where for row in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.axvline(1, color="#888888", linewidth=1)
    axes.set_xlim(left=0)
    axes.set_xlabel("gain: dots are ours, diamonds the paper's")


def saved(figure: Any, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    metadata = dict.fromkeys(PLAIN[kind])
    figure.savefig(out, format=kind, metadata=metadata, bbox_inches="tight", **options)
    return out.getvalue()


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


def drawing(
    name: str, title: str, draw: Draw, runs: Runs, rows: list[Row], folder: Path
) -> str:
    """Draw a figure into two files, SVG and PNG. Returns the page's SVG."""
    pyplot = matplot.load(WANTED)
    count = sum(row.ratio is not None for row in rows)
    tall = EDGE_INCHES + ROW_INCHES * max(count, 4) if draw is intervals else 4.5
    figure, axes = pyplot.subplots(figsize=(WIDE_INCHES, tall))
    try:
        draw(axes, runs, rows)
        axes.set_title(title)
        axes.grid(visible=True, which="major", alpha=0.3)
        (folder / f"{name}.svg").write_bytes(saved(figure, "svg"))
        (folder / f"{name}.png").write_bytes(saved(figure, "png", dpi=120))
        text = saved(figure, "svg", transparent=True).decode()
    finally:
        pyplot.close(figure)
    return inline(text, name)
