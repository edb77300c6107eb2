# SPDX-License-Identifier: MIT
"""Figures as SVG files, if matplotlib is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import calls, matplot, overload_plot, programs, running, send, serve, threads
from .samples import BenchError, Measurement, Run, distinct


def save(pyplot: Any, path: Path) -> Path:
    pyplot.tight_layout()
    try:
        pyplot.savefig(path, metadata={"Date": None})
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    finally:
        pyplot.close()
    return path


def plot_call(pyplot: Any, found: list[Measurement], place: str, path: Path) -> Path:
    pyplot.figure(figsize=(7, 4.5))
    for variant in distinct(found, "variant"):
        points = sorted(
            (int(m.settings["batch"]), m.median(calls.SERIES))
            for m in found
            if m.settings["variant"] == variant
        )
        style = "--" if variant == "plain" else "-o"
        pyplot.plot(*zip(*points, strict=True), style, label=variant, markersize=4)
    pyplot.xscale("log", base=2)
    batches = distinct(found, "batch")
    pyplot.xticks(batches, [str(batch) for batch in batches])
    pyplot.yscale("log")
    pyplot.xlabel("calls in a batch")
    pyplot.ylabel("nanoseconds a call")
    pyplot.title(f"{found[0].settings['call']}, {calls.TITLES[place]}")
    pyplot.grid(visible=True, which="both", alpha=0.3)
    pyplot.legend()
    return save(pyplot, path)


def plot_calls(pyplot: Any, run: Run, folder: Path) -> list[Path]:
    made = []
    for place in calls.TITLES:
        for call in distinct(run.of(calls.BENCH), "call"):
            found = [
                m for m in run.of(calls.BENCH, call=call) if calls.place_of(m) == place
            ]
            if len(distinct(found, "variant")) > 1:
                path = folder / f"calls-{call}-{place}.svg"
                made.append(plot_call(pyplot, found, place, path))
    return made


def plot_bars(pyplot: Any, found: list[Measurement], unit: str, path: Path) -> Path:
    names = [f"{m.settings['variant']}\n{m.settings['mode']}" for m in found]
    pyplot.figure(figsize=(6, 4))
    pyplot.bar(names, [m.median("requests_per_s") for m in found])
    pyplot.ylabel(f"{unit} a second, one core")
    return save(pyplot, path)


def plot_serve(pyplot: Any, run: Run, folder: Path) -> list[Path]:
    found = run.of(serve.BENCH)
    if not found:
        return []
    return [plot_bars(pyplot, found, "requests", folder / "serve.svg")]


def plot_load(pyplot: Any, found: list[Measurement], path: Path) -> Path:
    pyplot.figure(figsize=(7, 4.5))
    for variant in distinct(found, "variant"):
        points = [
            (int(m.settings["connections"]), m.median(threads.SERIES))
            for m in found
            if m.settings["variant"] == variant
        ]
        pyplot.plot(*zip(*points, strict=True), "-o", label=variant, markersize=4)
    pyplot.xscale("log", base=2)
    counts = distinct(found, "connections")
    pyplot.xticks(counts, [str(count) for count in counts])
    pyplot.ylim(bottom=0)
    pyplot.xlabel("connections, a thread for each but with epoll")
    pyplot.ylabel("requests a second, server on one core")
    pyplot.title(threads.MODES[str(found[0].settings["mode"])])
    pyplot.grid(visible=True, which="both", alpha=0.3)
    pyplot.legend()
    return save(pyplot, path)


def plot_entries(pyplot: Any, found: list[Measurement], path: Path) -> Path:
    limited = [m for m in found if m.settings["entries"]]
    counts = [int(m.settings["entries"]) for m in limited]
    pyplot.figure(figsize=(7, 4.5))
    rates = [m.median(threads.SERIES) for m in limited]
    pyplot.plot(counts, rates, "-o", label=running.FLEXSC, markersize=4)
    for m in found:
        if m.settings["variant"] == running.NATIVE:
            rate = m.median(threads.SERIES)
            pyplot.axhline(rate, linestyle="--", label=running.NATIVE)
    pyplot.xscale("log", base=2)
    pyplot.xticks(counts, [str(count) for count in counts])
    pyplot.ylim(bottom=0)
    pyplot.xlabel("calls that may execute at once")
    pyplot.ylabel("requests a second, server on one core")
    pyplot.title(f"{found[0].settings['connections']} connections (figure 16)")
    pyplot.grid(visible=True, which="both", alpha=0.3)
    pyplot.legend()
    return save(pyplot, path)


def plot_threads(pyplot: Any, run: Run, folder: Path) -> list[Path]:
    made = []
    for mode in threads.MODES:
        found = run.of(threads.BENCH, part=threads.LOAD, mode=mode, cores=1)
        if len(distinct(found, "variant")) > 1:
            made.append(plot_load(pyplot, found, folder / f"threads-{mode}.svg"))
    found = run.of(threads.BENCH, part=threads.ENTRIES)
    if len(distinct(found, "entries")) > 1:
        made.append(plot_entries(pyplot, found, folder / "threads-entries.svg"))
    return made


def plot_send(pyplot: Any, run: Run, folder: Path) -> list[Path]:
    found = run.of(send.BENCH, scenario="dequeue")
    if len(distinct(found, "batch")) < 2:
        return []
    pyplot.figure(figsize=(7, 4.5))
    for variant in distinct(found, "variant"):
        points = [
            (
                int(m.settings["batch"]),
                m.median(send.DEQUEUE) * int(m.settings["batch"]),
            )
            for m in found
            if m.settings["variant"] == variant
        ]
        pyplot.plot(*zip(*points, strict=True), "-o", label=variant, markersize=4)
    pyplot.ylim(bottom=0)
    pyplot.xlabel("events queued")
    pyplot.ylabel("nanoseconds to dequeue all")
    pyplot.title("SEND beside POSIX signals (SEND, figure 4.1)")
    pyplot.grid(visible=True, alpha=0.3)
    pyplot.legend()
    return [save(pyplot, folder / "send-dequeue.svg")]


def plot_programs(pyplot: Any, run: Run, folder: Path) -> list[Path]:
    made = []
    for name, kind in programs.KINDS.items():
        # A point query is a hundred times shorter than a transaction of twenty.
        for mode in kind.modes:
            found = run.of(programs.BENCH, program=name, mode=mode)
            if found:
                path = folder / f"programs-{name}-{mode}.svg"
                made.append(plot_bars(pyplot, found, kind.unit, path))
    return made


def plot(run: Run, folder: Path) -> list[Path]:
    pyplot = matplot.load("plots")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"{folder}: {error.strerror}") from error
    made = plot_calls(pyplot, run, folder) + plot_serve(pyplot, run, folder)
    made += plot_threads(pyplot, run, folder) + plot_send(pyplot, run, folder)
    made += plot_programs(pyplot, run, folder)
    return made + overload_plot.plot(pyplot, run, folder, save)
