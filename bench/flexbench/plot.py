# SPDX-License-Identifier: MIT
"""Figures as SVG files, if matplotlib is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import calls, chart, matplot, running, serve, sweep, threads
from .chart import GREY, Chart, Scale, curves_of
from .samples import BenchError, Measurement, Run, distinct

CALLS = Scale("calls in a batch", "nanoseconds a call", log_y=True)
REQUESTS = "requests a second, server on one core"
ENTRIES = Scale("calls that may execute at once", REQUESTS)
THREADS = Scale("connections, a thread for each but with epoll", REQUESTS)


def calls_charts(run: Run) -> Iterator[Chart]:
    for place in calls.TITLES:
        for call in distinct(run.of(calls.BENCH), "call"):
            found = run.of(calls.BENCH, call=call)
            found = [m for m in found if calls.place_of(m) == place]
            lines = curves_of(found, "batch", calls.SERIES)
            if len(lines) > 1:
                name, title = f"calls-{call}-{place}", f"{call}, {calls.TITLES[place]}"
                dashed = {"plain": "--"}
                lines = [replace(c, line=dashed.get(c.label, "-")) for c in lines]
                yield chart.lines(name, title, lines, CALLS)


def served(name: str, found: list[Measurement], unit: str) -> Iterator[Chart]:
    """Servers beside each other, or, with several numbers of connections, against
    these.
    """
    scale = Scale("connections", f"{unit} a second, one core")
    if len({m.settings["connections"] for m in found}) > 1:
        lines = curves_of(found, "connections", sweep.SERIES)
        yield chart.lines(name, name, lines, scale)
    elif found:
        bars = {
            f"{m.settings['variant']}\n{m.settings['mode']}": m.median(sweep.SERIES)
            for m in found
        }
        yield chart.columns(name, name, bars, scale.y)


def plot_entries(axes: Any, found: list[Measurement]) -> None:
    for m in found:
        if m.settings["variant"] == running.NATIVE:
            rate = m.median(threads.SERIES)
            axes.axhline(rate, linestyle="--", color=GREY, label=running.NATIVE)
    limited = [m for m in found if m.settings["entries"]]
    chart.curves(axes, curves_of(limited, "entries", threads.SERIES), ENTRIES)


def threads_charts(run: Run) -> Iterator[Chart]:
    for mode, title in threads.MODES.items():
        found = run.of(threads.BENCH, part=threads.LOAD, mode=mode, cores=1)
        lines = curves_of(found, "connections", threads.SERIES)
        if len(lines) > 1:
            yield chart.lines(f"threads-{mode}", title, lines, THREADS)
    found = run.of(threads.BENCH, part=threads.ENTRIES)
    if len(distinct(found, "entries")) > 1:
        title = f"{found[0].settings['connections']} connections (figure 16)"
        yield Chart("threads-entries", title, lambda axes: plot_entries(axes, found))


def serve_charts(run: Run) -> Iterator[Chart]:
    return served("serve", run.of(serve.BENCH), "requests")


def plot(charts: Iterable[Chart], folder: Path) -> list[Path]:
    pyplot = matplot.load("plots")
    made = []
    path = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in charts:
            path = folder / f"{one.name}.svg"
            figure = chart.figure_of(pyplot, one.title, [one.draw], one.size)
            path.write_bytes(chart.saved(figure, "svg"))
            pyplot.close(figure)
            made.append(path)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    return made
