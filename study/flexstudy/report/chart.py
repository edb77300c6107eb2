# SPDX-License-Identifier: MIT
"""Axes of matplotlib with the style of all drawings. The same input makes the same
bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flexbench import table
from flexbench.samples import Measurement

GREY, PAPER = "#888888", "#b3008f"
HOLLOW = "hollow: the clients were the limit"
# Metadata set to None, so that files contain no date and no version of matplotlib.
PLAIN = {"svg": ["Date", "Creator", "Format", "Type"], "png": ["Software"]}

Draw = Callable[[Any], None]


@dataclass(frozen=True)
class Dot:
    """A point of a curve. ends: the ends of the interval around y."""

    x: float
    y: float
    hollow: bool = False
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Curve:
    label: str
    dots: Sequence[Dot]
    line: str = "-"


@dataclass(frozen=True)
class Scale:
    """The names of the axes, and whether they are logarithmic."""

    x: str
    y: str
    log_x: bool = True
    log_y: bool = False


def variant(m: Measurement) -> str:
    return str(m.settings["variant"])


def curves_of(
    found: Sequence[Measurement],
    x: str,
    y: str | Callable[[Measurement], float],
    label: Callable[[Measurement], str] = variant,
    hollow: Callable[[Measurement], bool] = table.limited,
) -> list[Curve]:
    """A curve for each label. x: a setting. y: a series, or a function."""
    dots: dict[str, list[Dot]] = {}
    for m in sorted(found, key=lambda m: float(m.settings[x])):
        value = m.median(y) if isinstance(y, str) else y(m)
        dot = Dot(float(m.settings[x]), value, hollow(m))
        dots.setdefault(label(m), []).append(dot)
    names = dict.fromkeys(label(m) for m in found)
    return [Curve(name, dots[name]) for name in names]


def legend(axes: Any) -> None:
    """Put the legend beside the axes, where it covers no point."""
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def curve(axes: Any, one: Curve) -> None:
    where = [dot.x for dot in one.dots], [dot.y for dot in one.dots]
    (line,) = axes.plot(*where, one.line, label=one.label)
    color = line.get_color()
    for hollow, fill in ((False, "full"), (True, "none")):
        some = [dot for dot in one.dots if dot.hollow == hollow]
        if some:
            where = [dot.x for dot in some], [dot.y for dot in some]
            axes.plot(*where, "o", color=color, markersize=4, fillstyle=fill)
    for dot in one.dots:
        if dot.ends:
            axes.plot([dot.x] * 2, dot.ends, color=color, linewidth=1)


def curves(
    axes: Any,
    found: Sequence[Curve],
    scale: Scale,
    marks: Mapping[tuple[float, float], str] | None = None,
) -> None:
    """Draw curves. marks: labelled points of a paper, without a line."""
    for one in found:
        curve(axes, one)
    if any(dot.hollow for one in found for dot in one.dots):
        axes.plot([], [], "o", color=GREY, fillstyle="none", label=HOLLOW)
    for (x, y), label in (marks or {}).items():
        axes.plot([x], [y], "D", color=PAPER, markersize=8, label=label)
    if scale.log_x:
        axes.set_xscale("log", base=2)
        ticks = sorted({dot.x for one in found for dot in one.dots})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    if scale.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(scale.x)
    axes.set_ylabel(scale.y)
    legend(axes)


def bars(
    axes: Any, names: Sequence[str], parts: Mapping[str, Sequence[float]], y: str
) -> None:
    """Draw a stacked bar for each name."""
    bottom = [0.0] * len(names)
    for label, values in parts.items():
        axes.bar(range(len(names)), values, bottom=bottom, label=label)
        bottom = [below + value for below, value in zip(bottom, values, strict=True)]
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel(y)
    if len(parts) > 1:
        legend(axes)


def figure_of(
    pyplot: Any, title: str, draws: Iterable[Draw], size: tuple[float, float]
) -> Any:
    """A figure with a panel per function, one below the other. size: the size of a
    panel."""
    panels = list(draws)
    inches = size[0], size[1] * len(panels)
    figure, all_axes = pyplot.subplots(len(panels), figsize=inches, squeeze=False)
    for axes, draw in zip(all_axes.flat, panels, strict=True):
        draw(axes)
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.set_axisbelow(True)
    figure.suptitle(title)
    figure.tight_layout()
    return figure


def saved(figure: Any, kind: str, **options: Any) -> bytes:
    """The figure's file in a format, svg or png."""
    out = io.BytesIO()
    metadata = dict.fromkeys(PLAIN[kind])
    figure.savefig(out, format=kind, metadata=metadata, bbox_inches="tight", **options)
    return out.getvalue()
