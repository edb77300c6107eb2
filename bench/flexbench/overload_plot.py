# SPDX-License-Identifier: MIT
"""The figures of SEND, chapter 4, out of what overload.py has measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .overload_plan import BENCH, GOODPUT, MIX, RESPONSES, SATURATION, TRACE
from .overload_table import label, labels
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

Save = Callable[[Any, Path], Path]


def named(m: Measurement) -> str:
    size = str(m.settings["size"])
    kind = size if size == MIX else f"{size}k"
    return f"{kind}-{m.settings['network']}"


def points(found: Sequence[Measurement], series: str) -> list[tuple[int, float]]:
    return [(int(m.settings["rate"]), m.median(series)) for m in found]


def draw_lines(
    pyplot: Any, found: list[Measurement], series: str, axis: str, figures: str
) -> None:
    pyplot.figure(figsize=(7, 4.5))
    for name in labels(found):
        mine = points([m for m in found if label(m) == name], series)
        pyplot.plot(*zip(*mine, strict=True), "-o", label=name, markersize=4)
    if series in TIMES:
        pyplot.yscale("log")
    else:
        pyplot.ylim(bottom=0)
    pyplot.xlabel("requests a second")
    pyplot.ylabel(axis)
    where = f" (SEND, figures {figures})" if figures else ""
    pyplot.title(f"{named(found[0])}{where}")
    pyplot.grid(visible=True, which="both", alpha=0.3)
    pyplot.legend()


def draw_trace(pyplot: Any, found: list[Measurement]) -> None:
    pyplot.figure(figsize=(7, 4.5))
    for m in found:
        times = [us / 1000 for us in m.rounds[-1]["samples"]["order_us"]]
        pyplot.plot(range(len(times)), times, ".", label=label(m), markersize=1)
    pyplot.xlabel("answers, in order of completion")
    pyplot.ylabel("ms")
    rate = found[0].settings["rate"]
    pyplot.title(f"{named(found[0])}, {rate} requests a second (SEND, figure 4.10)")
    pyplot.legend(markerscale=8)


def draw_saturation(pyplot: Any, found: list[Measurement]) -> None:
    names = [f"{m.settings['variant']}\n{named(m)}" for m in found]
    pyplot.figure(figsize=(max(6, len(names)), 4))
    pyplot.bar(names, [m.median("saturation_per_s") for m in found])
    pyplot.ylabel("saturation point, requests a second")
    pyplot.title("SEND, figure 4.5")


def plot_size(
    pyplot: Any, run: Run, size: str, folder: Path, save: Save
) -> Iterator[Path]:
    for part, series, axis, figures in LINES:
        found = run.of(BENCH, part=part, size=size)
        if len(distinct(found, "rate")) > 1:
            draw_lines(pyplot, found, series, axis, figures)
            what = series.removesuffix("_per_s").removesuffix("_us")
            name = f"overload-{part}-{what.replace('_', '-')}-{named(found[0])}.svg"
            yield save(pyplot, folder / name)
    found = run.of(BENCH, part=TRACE, size=size)
    for times in distinct(found, "times"):
        draw_trace(pyplot, [m for m in found if m.settings["times"] == times])
        name = f"overload-trace-{times}x-{named(found[0])}.svg"
        yield save(pyplot, folder / name)


def plot(pyplot: Any, run: Run, folder: Path, save: Save) -> list[Path]:
    made = []
    found = run.of(BENCH, part=SATURATION)
    if len(found) > 1:
        draw_saturation(pyplot, found)
        made.append(save(pyplot, folder / "overload-saturation.svg"))
    for size in distinct(run.of(BENCH), "size"):
        made += plot_size(pyplot, run, size, folder, save)
    return made
