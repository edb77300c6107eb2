# SPDX-License-Identifier: MIT
"""The study's answer as one table: situations of a service, models, and how each does
beside the model "events". study/docs/choosing.md has it.

    python3 -m flexstudy.webserver.choosing FILE.json...

prints the table of files of flexsc study webserver, in Markdown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flexbench import samples
from flexbench.compare import Interval, ratio
from flexbench.samples import BenchError, Measurement, Run, Settings

from . import subjects
from .limits import limited

TIME, RATE, LATENCY = "time", "rate", "latency"
NOTHING = "-"


def time_series(measurement: Measurement) -> str:
    """A request's processor time: in rounds, if there were any, or under load."""
    known = measurement.rounds[0]["samples"]
    return next(s for s in ("cpu_us", "server_us", "loaded_us") if s in known)


# What is compared: a series, and whether less of it is better.
SERIES: dict[str, tuple[Callable[[Measurement], str], bool]] = {
    TIME: (time_series, True),
    RATE: (lambda _: "answers_per_s", False),
    LATENCY: (lambda _: "response_p99_us", True),
}


@dataclass(frozen=True)
class Situation:
    """A row of the table: what is compared, and with which measurements."""

    title: str
    compared: str
    bench: str
    settings: Settings


def page(title: str, connections: int) -> Situation:
    found: Settings = {"workload": "page", "connections": connections}
    return Situation(title, TIME, "study", found)


def peak(title: str, compared: str, workload: str) -> Situation:
    found: Settings = {"workload": workload, "cores": 1}
    return Situation(title, compared, "study-peak", found)


def offered(title: str, compared: str, workload: str, times: str) -> Situation:
    found: Settings = {"workload": workload, "cores": 1, "times": times}
    return Situation(title, compared, "study-offered", found)


SITUATIONS = [
    page("one client", 1),
    page("128 clients", 128),
    page("1,024 clients", 1024),
    Situation("a connection for each request", TIME, "study", {"workload": "new"}),
    Situation("128 clients beside idle ones", TIME, "study-idle", {}),
    peak("20 small pages a client", TIME, "pages"),
    peak("SPECweb99's files", TIME, "specweb"),
    peak("files on the disk", RATE, "disk"),
    offered("twice what the best can answer", RATE, "pages", "2"),
    offered("latency at 0.6 of that", LATENCY, "pages", "0.6"),
]
UNITS = {TIME: "time", RATE: "answers", LATENCY: "p99"}


def found(run: Run, situation: Situation) -> dict[str, Measurement]:
    """The situation's measurements, by their models."""
    some = run.of(situation.bench, **situation.settings)
    # Of the numbers of idle clients, the largest.
    most = max((int(m.settings.get("idle", 0)) for m in some), default=0)
    return {
        str(m.settings["model"]): m for m in some if m.settings.get("idle", 0) == most
    }


def gain(situation: Situation, ours: Measurement, theirs: Measurement) -> Interval:
    series, less = SERIES[situation.compared]
    pair = (theirs, ours) if less else (ours, theirs)
    return ratio(*(m.series(series(m)) for m in pair))


def cell(situation: Situation, ours: Measurement | None, events: Measurement) -> str:
    if ours is None or len(ours.rounds) != len(events.rounds):
        return NOTHING
    value = gain(situation, ours, events)
    clients = situation.compared == RATE and (limited(ours) or limited(events))
    mark = "\\*" if clients else ""
    return f"{value.median:.2f} ({value.low:.2f}-{value.high:.2f}){mark}"


def table(run: Run) -> list[str]:
    """Lines of Markdown. A situation that wasn't measured isn't there."""
    names = [model.name for model in subjects.MODELS if model.name != subjects.EVENTS]
    names += subjects.OTHERS
    lines = [
        "| | " + " | ".join(["of", *(f"`{name}`" for name in names)]) + " |",
        "|---|" + "---|" * (1 + len(names)),
    ]
    for situation in SITUATIONS:
        models = found(run, situation)
        events = models.get(subjects.EVENTS)
        if events:
            cells = [cell(situation, models.get(name), events) for name in names]
            words = [situation.title, UNITS[situation.compared], *cells]
            lines.append("| " + " | ".join(words) + " |")
    return lines


def load(paths: Iterable[Path]) -> Run:
    """Several files as one run."""
    run = Run(machine={}, command=[])
    for path in paths:
        run.measurements += samples.load(path).measurements
    return run


def main(argv: Sequence[str]) -> int:
    try:
        if not argv:
            raise BenchError("give files of flexsc study webserver --out")
        print("\n".join(table(load(map(Path, argv)))))
    except BenchError as error:
        print(f"flexsc: choosing: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
