# SPDX-License-Identifier: MIT
"""The figures of SEND, chapter 4, out of what overload.py has measured."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from . import chart
from .chart import Chart, Scale, curves_of
from .overload_plan import BENCH, GOODPUT, MIX, RESPONSES, SATURATION, TRACE
from .overload_table import label
from .samples import Measurement, Run, distinct

# By part: the series that is drawn, the y axis, and the figures it stands beside.
LINES = [
    (RESPONSES, "responses_per_s", "answers a second", "4.3, 4.4, 4.12 to 4.14"),
    (RESPONSES, "mbit_per_s", "megabits a second, bodies", "4.6, 4.7"),
    (RESPONSES, "connect_mean_us", "mean time to connect, us", "4.8, 4.9"),
    (RESPONSES, "response_mean_us", "mean time to the answer, us", "4.8, 4.9"),
    (GOODPUT, "goodput_per_s", "answers a second within a second", ""),
    (GOODPUT, "response_p99_us", "99th percentile of answers, us", ""),
]
TIMES = ("connect_mean_us", "response_mean_us", "response_p99_us")


def named(m: Measurement) -> str:
    size = str(m.settings["size"])
    kind = size if size == MIX else f"{size}k"
    return f"{kind}-{m.settings['network']}"


def lines(found: list[Measurement], series: str, axis: str, figures: str) -> Chart:
    scale = Scale("requests a second", axis, log_x=False, log_y=series in TIMES)
    draw = partial(
        chart.curves, found=curves_of(found, "rate", series, label), scale=scale
    )
    where = f" (SEND, figures {figures})" if figures else ""
    what = series.removesuffix("_per_s").removesuffix("_us").replace("_", "-")
    name = f"overload-{found[0].settings['part']}-{what}-{named(found[0])}"
    return Chart(name, f"{named(found[0])}{where}", draw)


def draw_trace(axes: Any, found: list[Measurement]) -> None:
    for m in found:
        times = [us / 1000 for us in m.rounds[-1]["samples"]["order_us"]]
        axes.plot(range(len(times)), times, ".", label=label(m), markersize=1)
    axes.set_xlabel("answers, in order of completion")
    axes.set_ylabel("ms")
    axes.legend(markerscale=8)


def trace(found: list[Measurement]) -> Chart:
    first = found[0]
    title = f"{named(first)}, {first.settings['rate']} requests a second"
    return Chart(
        f"overload-trace-{first.settings['times']}x-{named(first)}",
        f"{title} (SEND, figure 4.10)",
        partial(draw_trace, found=found),
    )


def of_size(run: Run, size: str) -> Iterator[Chart]:
    for part, series, axis, figures in LINES:
        found = run.of(BENCH, part=part, size=size)
        if len(distinct(found, "rate")) > 1:
            yield lines(found, series, axis, figures)
    found = run.of(BENCH, part=TRACE, size=size)
    for times in distinct(found, "times"):
        yield trace([m for m in found if m.settings["times"] == times])


def bar(m: Measurement) -> str:
    return f"{m.settings['variant']}\n{named(m)}"


def charts(run: Run) -> Iterator[Chart]:
    found = run.of(BENCH, part=SATURATION)
    if len(found) > 1:
        axis = "saturation point, requests a second"
        draw = chart.bars_of(found, bar, "saturation_per_s", axis)
        inches = max(6, len(found)), 4
        yield Chart("overload-saturation", "SEND, figure 4.5", draw, inches)
    for size in distinct(run.of(BENCH), "size"):
        yield from of_size(run, size)
