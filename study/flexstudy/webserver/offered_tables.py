# SPDX-License-Identifier: MIT
"""The tables of offered.py: a row per model, a column per point."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flexbench import table
from flexbench.samples import Measurement, Run, distinct

from . import limits
from .offered import ANSWERS, OFFERED, PEAK
from .sessions import SESSIONS

Cell = Callable[[Measurement], str]


def rate(series: str) -> Cell:
    def cell(m: Measurement) -> str:
        return table.number(m.median(series)) + table.LIMITED * limits.limited(m)

    return cell


def milliseconds(m: Measurement, series: str) -> str:
    """A time, or nothing if there was no answer."""
    if series not in m.rounds[0]["samples"] or not limits.total(m, "answered"):
        return table.NOTHING
    return table.number(limits.middle(m, series, 0) / 1000)


def times_of(low: str, high: str) -> Cell:
    return lambda m: f"{milliseconds(m, low)}/{milliseconds(m, high)}"


def columns(found: Sequence[Measurement]) -> list[str]:
    """The points in ascending order, as multiples of the best peak."""
    return [str(times) for times in distinct(found, "times")]


def grid(found: Sequence[Measurement], cell: Cell, scale: bool = False) -> str:
    """A row per model, a column per point. scale: with a row of the offered rates."""
    points = columns(found)
    rows = []
    if scale:
        first = {str(m.settings["times"]): m for m in reversed(found)}
        offered = [float(first[times].settings["offered_per_s"]) for times in points]
        rows.append(["offered", *(table.number(one) for one in offered)])
    for name in distinct(found, "model"):
        at = {str(m.settings["times"]): m for m in found if m.settings["model"] == name}
        cells = [cell(at[t]) if t in at else table.NOTHING for t in points]
        rows.append([str(name), *cells])
    return table.table(["model", *(f"{times}x" for times in points)], rows)


def offered(found: list[Measurement]) -> list[str]:
    return [
        "good answers a second\n" + grid(found, rate(ANSWERS), True),
        "good answers, Mbit/s\n" + grid(found, rate("answers_mbit_per_s")),
    ]


def latencies(found: list[Measurement]) -> list[str]:
    low = times_of("response_p50_us", "response_p90_us")
    high = times_of("response_p99_us", "response_p999_us")
    return [
        "an answer's time since it was due, p50/p90, ms\n" + grid(found, low),
        "p99/p99.9, ms\n" + grid(found, high),
    ]


def best(
    name: str, found: Sequence[Measurement], peaks: Sequence[Measurement]
) -> float:
    """The highest rate that the model has answered, in the closed loop or at any point."""
    its = [m for m in (*found, *peaks) if m.settings["model"] == name]
    return max(m.median(ANSWERS) for m in its)


def overload(found: list[Measurement], peaks: list[Measurement]) -> list[str]:
    rows = []
    for m in found:
        if m.settings["times"] != "2":
            continue
        name = str(m.settings["model"])
        share = m.median(ANSWERS) / max(1, best(name, found, peaks))
        marked = table.number(share) + table.LIMITED * limits.limited(m)
        rows.append([name, rate(ANSWERS)(m), marked])
    title = "at twice the best peak: good answers a second\n"
    head = ["model", "answers/s", "of its own best"]
    return [title + table.table(head, rows)] if rows else []


def closed(peaks: list[Measurement]) -> str:
    rows = [
        [
            str(m.settings["model"]),
            rate(ANSWERS)(m),
            table.number(m.median("answers_mbit_per_s")),
            table.number(m.median("server_us")),
            milliseconds(m, "response_p50_us"),
            milliseconds(m, "response_p99_us"),
            table.number(m.median("busy_percent")),
            table.number(m.median("client_percent")),
        ]
        for m in peaks
    ]
    head = ["model", "answers/s", "Mbit/s", "us/answer", "p50, ms", "p99, ms"]
    head += ["busy, %", "clients, %"]
    connections = peaks[0].settings["connections"]
    title = f"closed loop, {connections} sessions that don't think\n"
    return title + table.table(head, rows)


def errors(m: Measurement) -> str:
    """The percentage of requests that failed, without those cut by the end of the run."""
    ended = limits.total(m, "offered") - limits.total(m, "cut")
    lost = ended - limits.total(m, "answered")
    return table.number(100 * lost / ended) if ended else table.NOTHING


def title(m: Measurement) -> str:
    settings = m.settings
    return (
        f"study {settings['workload']}: {SESSIONS[str(settings['workload'])].title}; "
        f"{table.how(m)}\n"
    )


def of_workload(run: Run, workload: str, cores: int) -> list[str]:
    found = run.of(OFFERED, workload=workload, cores=cores)
    peaks = run.of(PEAK, workload=workload, cores=cores)
    if not found and not peaks:
        return []
    parts = [closed(peaks)] if peaks else []
    if found:
        parts += offered(found)
        parts.append(
            "processor time of the server for an answer, us\n"
            + grid(found, lambda m: table.number(m.median("server_us")))
        )
        parts.append("requests that failed, %\n" + grid(found, errors))
        parts += latencies(found)
        parts += overload(found, peaks)
    head = title((found or peaks)[0])
    marked = any(limits.limited(m) for m in (*found, *peaks))
    explained = [limits.EXPLAINED] if marked else []
    return [head + "\n\n".join([*parts, *explained])]


def scaling(run: Run, workload: str) -> list[str]:
    peaks = run.of(PEAK, workload=workload)
    counts = distinct(peaks, "cores") if peaks else []
    if len(counts) < 2:
        return []
    rows = []
    for name in distinct(peaks, "model"):
        its = {m.settings["cores"]: m for m in peaks if m.settings["model"] == name}
        cells = [rate(ANSWERS)(its[n]) if n in its else table.NOTHING for n in counts]
        rows.append([str(name), *cells])
    head = ["model", *(table.cores(int(n)) for n in counts)]
    text = f"study {workload}: peaks against cores, good answers a second\n"
    return [text + table.table(head, rows)]


def show(run: Run) -> list[str]:
    measured = [*run.of(PEAK), *run.of(OFFERED)]
    text = []
    for workload in distinct(measured, "workload"):
        for cores in distinct(measured, "cores"):
            text += of_workload(run, str(workload), int(cores))
        text += scaling(run, str(workload))
        for line in limits.troubles(run, str(workload)):
            run.note(line)
    return text
