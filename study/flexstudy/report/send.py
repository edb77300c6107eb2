# SPDX-License-Identifier: MIT
"""The figures of the SEND thesis (2000)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from flexbench.samples import Measurement, distinct

from .. import overload_plan, overload_table, papers, send
from ..papers import Data, Point, SendServer
from . import chart
from .chart import Scale, curves_of
from .figure import Bench, Figure, Row, State, number_pair
from .runs import Runs, gain
from .sweeps import where

POINTS = "send-points.csv"
EPOLL = "epoll"
TWICE = "2"

EVENTS = Bench(("send",), send.BENCH, {"scenario": "dequeue"})
OVERLOAD = Bench(("overload", "events=epoll,send,ps1,ps2"), overload_plan.BENCH)
# The thesis' names of SEND's variants, and the corresponding models of http-events.
MODELS = {"SEND": "send", "PS1": "ps1", "PS2": "ps2"}


def dequeue_rows(runs: Runs, point: Point | None) -> list[Row]:
    found = runs.of(send.BENCH, scenario="dequeue")
    rows = []
    for batch in distinct(found, "batch"):
        at = {m.settings["variant"]: m for m in found if m.settings["batch"] == batch}
        for backend in send.BACKENDS:
            if backend in at and send.SIGNAL in at:
                ours, signals = at[backend], at[send.SIGNAL]
                medians = ours.median(send.DEQUEUE), signals.median(send.DEQUEUE)
                rows.append(
                    Row(
                        f"figure 4.1: {batch} events queued, by {backend}",
                        point,
                        here=number_pair(*medians, "ns an event, signals"),
                        ratio=gain(ours, signals, send.DEQUEUE, less=True),
                    )
                )
    return rows


def model_pairs(
    runs: Runs, part: str, times: str
) -> list[tuple[Measurement, Measurement]]:
    """Pairs of a SEND model and epoll, measured with the same size at the same rate."""
    found = runs.of(overload_plan.BENCH, part=part, times=times, admission="none")
    theirs = {m.settings["size"]: m for m in found if m.settings["variant"] == EPOLL}
    return [
        (m, theirs[m.settings["size"]])
        for m in found
        if m.settings["variant"] in MODELS.values() and m.settings["size"] in theirs
    ]


def overload_rows(
    runs: Runs, part: str, times: str, series: str, what: str, point: Point | None
) -> list[Row]:
    return [
        Row(
            f"{what}: {ours.settings['variant']}, {ours.settings['size']} KiB",
            point,
            here=number_pair(ours.median(series), theirs.median(series), "/s, epoll"),
            ratio=gain(ours, theirs, series),
        )
        for ours, theirs in model_pairs(runs, part, times)
    ]


def rows_of(runs: Runs, point: Point) -> list[Row]:
    """Our rows for one number of the thesis."""
    if point.quantity == "time to take the queued":
        return dequeue_rows(runs, point)
    if point.quantity == "saturation point":
        part, what = overload_plan.SATURATION, "figure 4.5: saturation point"
        return overload_rows(runs, part, "", "saturation_per_s", what, point)
    if point.quantity == "throughput beyond saturation":
        part, what = overload_plan.RESPONSES, "figures 4.3, 4.4: twice the saturation"
        return overload_rows(runs, part, TWICE, "responses_per_s", what, point)
    return []


def rows(runs: Runs, data: Data) -> list[Row]:
    found = []
    for point in papers.read(POINTS).points:
        ours = rows_of(runs, point)
        found += ours or [Row(where(point), point, reason="not measured")]
    part, series = overload_plan.GOODPUT, "goodput_per_s"
    what = "answers within a second at twice the saturation"
    return found + overload_rows(runs, part, TWICE, series, what, None)


def models_rows(runs: Runs, data: Data) -> list[Row]:
    """The delivery and notification of each model, as reported by http-events."""
    source = runs.source(overload_plan.BENCH)
    models = source.machine.get("models", []) if source else []
    ours = {line[0]: f"{line[1]}, {line[2]}" for line in models}
    return [
        Row(
            server.server,
            paper=f"{server.delivery}, {server.notification}",
            here=ours.get(MODELS[server.server], ""),
            reason="" if MODELS[server.server] in ours else "doesn't work here",
        )
        for server in data.of(SendServer)
    ]


# Drawings.

# The part, the series and the y axis of each drawing.
LINES = [
    (overload_plan.RESPONSES, "responses_per_s", "answers a second"),
    (overload_plan.RESPONSES, "mbit_per_s", "megabits a second, bodies"),
    (overload_plan.RESPONSES, "connect_mean_us", "mean time to connect, us"),
    (overload_plan.RESPONSES, "response_mean_us", "mean time to the answer, us"),
    (overload_plan.GOODPUT, "goodput_per_s", "answers a second within a second"),
]


def sized(m: Measurement) -> str:
    return f"{overload_table.label(m)}, {m.settings['size']} KiB"


def dequeue_panel(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    found = runs.of(send.BENCH, scenario="dequeue")
    if not found:
        axes.set_axis_off()
        return
    scale = Scale("events queued", "nanoseconds per event", log_x=False)
    chart.curves(axes, curves_of(found, "batch", send.DEQUEUE), scale)
    axes.set_title("figure 4.1")


def saturation_panel(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    found = runs.of(overload_plan.BENCH, part=overload_plan.SATURATION)
    names, rates = map(sized, found), [m.median("saturation_per_s") for m in found]
    chart.bars(axes, list(names), {"": rates}, "saturation point, a second")
    axes.set_title("figure 4.5")


def overload_panel(
    line: tuple[str, str, str], axes: Any, runs: Runs, rows: Sequence[Row]
) -> None:
    part, series, y = line
    found = runs.of(overload_plan.BENCH, part=part)
    if not found:
        axes.set_axis_off()
        return
    scale = Scale("requests a second", y, log_x=False, log_y=series.endswith("_us"))
    chart.curves(axes, curves_of(found, "rate", series, sized), scale)


def trace_panel(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    for m in runs.of(overload_plan.BENCH, part=overload_plan.TRACE):
        times = [us / 1000 for us in m.rounds[-1]["samples"]["order_us"]]
        axes.plot(range(len(times)), times, ".", label=sized(m), markersize=1)
    axes.set_xlabel("answers, in order of completion")
    axes.set_ylabel("ms")
    axes.set_title("figure 4.10")


FIGURES = [
    Figure(
        "send",
        State.MEASURED,
        differs="Events are delivered by io_uring or by the kernel module; epoll, "
        "edge-triggered, stands for /dev/poll. The server has 100 us of work for a "
        "request. study/docs/benches.md has the command of each figure.",
        benches=[EVENTS, OVERLOAD],
        rows=rows,
        draws=[
            dequeue_panel,
            saturation_panel,
            *(partial(overload_panel, one) for one in LINES),
            trace_panel,
        ],
    ),
    Figure(
        "send-f4.11",
        State.MEASURED,
        differs="The variants are those of http-events.",
        benches=[OVERLOAD],
        rows=models_rows,
    ),
]
