# SPDX-License-Identifier: MIT
"""Figures as SVG files, if matplotlib is there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from . import calls, chart, matplot, overload_plot, programs, running, send, serve
from . import sweep, threads
from .chart import GREY, Chart, Curve, Draw, Scale, curves_of
from .samples import BenchError, Measurement, Run, distinct

CALLS = Scale("calls in a batch", "nanoseconds a call", log_y=True)
QUEUED = Scale("events queued", "nanoseconds to dequeue all", log_x=False)


def requests(x: str) -> Scale:
    return Scale(x, "requests a second, server on one core")


def plot_calls(run: Run) -> Iterator[Chart]:
    for place in calls.TITLES:
        for call in distinct(run.of(calls.BENCH), "call"):
            found = [
                m for m in run.of(calls.BENCH, call=call) if calls.place_of(m) == place
            ]
            if len(distinct(found, "variant")) > 1:
                lines = [
                    Curve(c.label, c.dots, "--" if c.label == "plain" else "-")
                    for c in curves_of(found, "batch", calls.SERIES)
                ]
                title = f"{call}, {calls.TITLES[place]}"
                draw = partial(chart.curves, found=lines, scale=CALLS)
                yield Chart(f"calls-{call}-{place}", title, draw)


def plot_served(name: str, found: list[Measurement], unit: str) -> Iterator[Chart]:
    """Servers beside each other, or, with several numbers of connections, against
    these.
    """
    if not found:
        return
    draw: Draw
    if len(distinct(found, "connections")) > 1:
        lines = curves_of(found, "connections", sweep.SERIES)
        draw = partial(chart.curves, found=lines, scale=requests("connections"))
    else:
        title = f"{unit} a second, one core"
        draw = chart.bars_of(found, bar, sweep.SERIES, title)
    yield Chart(name, name, draw)


def bar(m: Measurement) -> str:
    return f"{m.settings['variant']}\n{m.settings['mode']}"


def plot_entries(axes: Any, found: list[Measurement]) -> None:
    for m in found:
        if m.settings["variant"] == running.NATIVE:
            rate = m.median(threads.SERIES)
            axes.axhline(rate, linestyle="--", color=GREY, label=running.NATIVE)
    limited = [m for m in found if m.settings["entries"]]
    lines = curves_of(limited, "entries", threads.SERIES)
    chart.curves(axes, lines, requests("calls that may execute at once"))


def plot_threads(run: Run) -> Iterator[Chart]:
    for mode in threads.MODES:
        found = run.of(threads.BENCH, part=threads.LOAD, mode=mode, cores=1)
        if len(distinct(found, "variant")) > 1:
            lines = curves_of(found, "connections", threads.SERIES)
            scale = requests("connections, a thread for each but with epoll")
            draw = partial(chart.curves, found=lines, scale=scale)
            yield Chart(f"threads-{mode}", threads.MODES[mode], draw)
    found = run.of(threads.BENCH, part=threads.ENTRIES)
    if len(distinct(found, "entries")) > 1:
        title = f"{found[0].settings['connections']} connections (figure 16)"
        draw = partial(plot_entries, found=found)
        yield Chart("threads-entries", title, draw)


def queued(m: Measurement) -> float:
    return m.median(send.DEQUEUE) * int(m.settings["batch"])


def plot_send(run: Run) -> Iterator[Chart]:
    found = run.of(send.BENCH, scenario="dequeue")
    if len(distinct(found, "batch")) > 1:
        lines = curves_of(found, "batch", queued)
        draw = partial(chart.curves, found=lines, scale=QUEUED)
        title = "SEND beside POSIX signals (SEND, figure 4.1)"
        yield Chart("send-dequeue", title, draw)


def charts(run: Run) -> Iterator[Chart]:
    yield from plot_calls(run)
    yield from plot_served("serve", run.of(serve.BENCH), "requests")
    yield from plot_threads(run)
    yield from plot_send(run)
    for name, kind in programs.KINDS.items():
        # A point query is a hundred times shorter than a transaction of twenty.
        for mode in kind.modes:
            found = run.of(programs.BENCH, program=name, mode=mode)
            yield from plot_served(f"programs-{name}-{mode}", found, kind.unit)
    yield from overload_plot.charts(run)


def plot(run: Run, folder: Path) -> list[Path]:
    pyplot = matplot.load("plots")
    made = []
    path = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in charts(run):
            path = folder / f"{one.name}.svg"
            figure = chart.figure_of(pyplot, one.title, [one.draw], one.size)
            path.write_bytes(chart.saved(figure, "svg"))
            pyplot.close(figure)
            made.append(path)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    return made
