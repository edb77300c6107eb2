# SPDX-License-Identifier: MIT
"""The figures of SEND, chapter 4, out of what overload.py has measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flexbench import chart
from flexbench.chart import Chart, Scale, curves_of
from flexbench.samples import Measurement, Run, distinct

from .overload_plan import BENCH, GOODPUT, MIX, RESPONSES, SATURATION, TRACE
from .overload_table import label

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
    where = f" (SEND, figures {figures})" if figures else ""
    what = series.removesuffix("_per_s").removesuffix("_us").replace("_", "-")
    name = f"overload-{found[0].settings['part']}-{what}-{named(found[0])}"
    curves = curves_of(found, "rate", series, label)
    return chart.lines(name, f"{named(found[0])}{where}", curves, scale)


def draw_trace(axes: Any, found: list[Measurement]) -> None:
    for m in found:
        times = [us / 1000 for us in m.rounds[-1]["samples"]["order_us"]]
        axes.plot(range(len(times)), times, ".", label=label(m), markersize=1)
    axes.set_xlabel("answers, in order of completion")
    axes.set_ylabel("ms")
    axes.legend(markerscale=8)


def trace(found: list[Measurement]) -> Chart:
    first = found[0]
    name = f"overload-trace-{first.settings['times']}x-{named(first)}"
    title = f"{named(first)}, {first.settings['rate']} requests a second"
    title += " (SEND, figure 4.10)"
    return Chart(name, title, lambda axes: draw_trace(axes, found))


def of_size(run: Run, size: str) -> Iterator[Chart]:
    for part, series, axis, figures in LINES:
        found = run.of(BENCH, part=part, size=size)
        if len(distinct(found, "rate")) > 1:
            yield lines(found, series, axis, figures)
    found = run.of(BENCH, part=TRACE, size=size)
    for times in distinct(found, "times"):
        yield trace([m for m in found if m.settings["times"] == times])


def charts(run: Run) -> Iterator[Chart]:
    found = run.of(BENCH, part=SATURATION)
    if len(found) > 1:
        series, axis = "saturation_per_s", "saturation point, requests a second"
        bars = {f"{m.settings['variant']}\n{named(m)}": m.median(series) for m in found}
        name, wide = "overload-saturation", max(6, len(found))
        yield chart.columns(name, "SEND, figure 4.5", bars, axis, wide)
    for size in distinct(run.of(BENCH), "size"):
        yield from of_size(run, size)
